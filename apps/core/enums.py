"""What the foundation tells apart."""

from django.db import models


class Kind(models.TextChoices):
    """What a hub is, for good: a demo signs anyone in and shows what is fictional, a real one never does."""

    DEMO = "demo", "a demo"
    REAL = "real", "a real hub"
