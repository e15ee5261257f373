"""The vocabulary of appeals."""

from django.db import models


class Claim(models.TextChoices):
    """What a vendor says was wrong."""

    UPSTREAM = "upstream", "upstream broke it"
    INFRASTRUCTURE = "infrastructure", "infrastructure failed"
    FLAKE = "flake", "a flake"
    PROCEDURE = "procedure", "the procedure was not kept"


class State(models.TextChoices):
    """Where an appeal is. `paused` is never stored: an open one is paused until a moment, and then runs on."""

    OPEN = "open", "open"
    PAUSED = "paused", "paused"
    UPHELD = "upheld", "upheld"
    AMENDED = "amended", "amended"
    OVERTURNED = "overturned", "overturned"
    WITHDRAWN = "withdrawn", "withdrawn"


class Outcome(models.TextChoices):
    """What is decided about what was contested."""

    UPHOLD = "uphold", "uphold: it stays as it is"
    AMEND = "amend", "amend: some of the rows are set aside"
    OVERTURN = "overturn", "overturn: all rows are set aside, the decision is undone"
