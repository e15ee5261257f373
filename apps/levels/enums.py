"""Words of promotions."""

from django.db import models


class PromotionState(models.TextChoices):
    """Where a promotion is."""

    OPEN = "open", "open"
    APPROVED = "approved", "approved"
    DECLINED = "declined", "declined"
    WITHDRAWN = "withdrawn", "withdrawn"
    OVERTAKEN = "overtaken", "overtaken: the level was changed otherwise"


class Form(models.TextChoices):
    """How it is decided."""

    LAZY = "lazy", "lazy: in force once the time for objections is over"
    EXPLICIT = "explicit", "explicit: in force with the last approval"
