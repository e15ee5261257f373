"""The states of the protocol's three rows, and the words that stand on them."""

from django.db import models


class DeliveryState(models.TextChoices):
    RECEIVED = "received", "received"
    FANNED_OUT = "fanned_out", "fanned out"
    IGNORED = "ignored", "ignored"
    INTENDED = "intended", "intended: computed in shadow mode, sent to nobody"


class DispatchState(models.TextChoices):
    PENDING = "pending", "pending"
    SENDING = "sending", "sending"
    SENT = "sent", "sent"
    GIVEN_UP = "given_up", "given up"


class JobStatus(models.TextChoices):
    IN_PROGRESS = "in_progress", "in progress"
    COMPLETED = "completed", "completed"


class Bucket(models.TextChoices):
    """Where a job counts. Disjoint."""

    SUCCESS = "success", "success"
    FAILURE = "failure", "failure"
    TIMED_OUT = "timed_out", "timed out"
    CANCELLED = "cancelled", "cancelled"
    CONTRADICTED = "contradicted", "contradicted"
    NEUTRAL = "neutral", "neutral"
    IN_PROGRESS = "in_progress", "in progress"


class Flag(models.TextChoices):
    """What a reader of a job must know beside its state."""

    START_LOST = "start_lost", "the start was never reported"
    COUNTS_DIFFER = "counts_differ", "its test counts do not add up"
    LATE_START = "late_start", "the start was reported after the end"
    RELAYED = "relayed", "forwarded by the relay, whose word its identity is"
    IMPORTED = "imported", "imported from the relay's history"


class Answer(models.TextChoices):
    """What the hub answered to a callback, or why it kept one that it refused."""

    APPLIED = "applied", "applied"
    LATE = "late", "late: only the start was filled in"
    DUPLICATE = "duplicate", "duplicate: nothing changed"
    IGNORED = "ignored", "ignored: kept privately"
    CONFLICT = "conflict", "refused: the job had ended otherwise"
