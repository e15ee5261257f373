"""The vocabulary of falling."""

from django.db import models


class FallState(models.TextChoices):
    """Where a notice is."""

    OPEN = "open", "open"
    MET_AGAIN = "met_again", "met again"
    DEMOTED = "demoted", "demoted"
    LIFTED = "lifted", "lifted"
    SUPERSEDED = "superseded", "superseded"


class DowngradeState(models.TextChoices):
    """Where a temporary downgrade is."""

    OPEN = "open", "open"
    UNDONE = "undone", "undone"
    CONFIRMED = "confirmed", "confirmed"
    SUPERSEDED = "superseded", "superseded"
