"""The states of what the hub says and asks at GitHub about a pull request."""

from django.db import models


class SendState(models.TextChoices):
    """Where a row of an outbox is."""

    PENDING = "pending", "pending"
    SENDING = "sending", "sending"
    SENT = "sent", "sent"
    GIVEN_UP = "given_up", "given up"
    REFUSED = "refused", "refused by the hub"


class CheckStatus(models.TextChoices):
    """GitHub's words."""

    IN_PROGRESS = "in_progress", "in progress"
    COMPLETED = "completed", "completed"


class NeutralEnd(models.TextChoices):
    """Why the hub itself ends a check run as neutral."""

    LEVEL = "level", "level"
    LABEL = "label", "label"
    HELD = "held", "held"
    RESULTS_GONE = "results_gone", "results gone"


class Scope(models.TextChoices):
    """What is run again, and the last word of GitHub's route for it."""

    FAILED_JOBS = "rerun-failed-jobs", "failed jobs"
    WHOLE_RUN = "rerun", "whole run"
