"""The words of a hub that is being adopted."""

from django.db import models


class ForwardState(models.TextChoices):
    PENDING = "pending", "pending"
    SENDING = "sending", "sending"
    SENT = "sent", "sent"
    GIVEN_UP = "given_up", "given up"
    KEPT = "kept", "kept: no dashboard is set"


class DifferenceKind(models.TextChoices):
    """In what the hub and the relay differ, per (delivery, repository)."""

    NOT_ANSWERED = "not_answered", "intended dispatch that no result answers"
    WITHOUT_INTENT = "without_intent", "result without an intended dispatch"
    JOB_DIFFERS = "job_differs", "another job state"
    CHECK_MISSING = "check_missing", "check run that GitHub does not show"
    CHECK_EXTRA = "check_extra", "check run that the hub would not make"
    CHECK_DIFFERS = "check_differs", "check run that says otherwise"
    NOT_OBSERVABLE = "not_observable", "cannot be observed"
