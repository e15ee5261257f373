"""The states of the protocol's three rows, and the words that stand on them."""

from django.db import models


class DeliveryState(models.TextChoices):
    RECEIVED = "received", "received"
    FANNED_OUT = "fanned_out", "fanned out"
    HANDLED = "handled", "handled by the hub itself"
    IGNORED = "ignored", "ignored"
    INTENDED = "intended", "intended: computed in shadow mode, sent to nobody"


class DispatchState(models.TextChoices):
    PENDING = "pending", "pending"
    SENDING = "sending", "sending"
    SENT = "sent", "sent"
    GIVEN_UP = "given_up", "given up"


class Rule(models.TextChoices):
    """Why a listed repository was not sent an event. In the order in which they are asked."""

    LISTING = "listing", "the allowlist's events"
    EVENT = "event", "events"
    REF = "ref", "refs"
    LABEL = "label", "labels"
    SAMPLE = "sample", "sample"
    MAINTENANCE = "maintenance", "maintenance window"


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
    JOINED = "joined", "its end came from another check run, and joined the only open leg"
    ABSURD_TIMES = "absurd_times", "the times it reports cannot be true"
    INFERRED = "inferred", "ended by the hub: nothing was heard until its limit"
    UNHEARD = "unheard", "silent while the hub was out: its end may have been lost, and counts in no rate"
    UNKNOWN_COMMIT = "unknown_commit", "upstream does not know the commit that it names"
    HELD = "held", "held: sent under a new owner of the repository, counts only once that owner is accepted"
    RELAYED = "relayed", "forwarded by the relay, whose word its identity is"
    IMPORTED = "imported", "imported from the relay's history"
    CORROBORATED = "corroborated", "the tests that it uploaded agree with it"
    TESTS_CONTRADICT = "tests_contradict", "it says success, the tests that it uploaded do not"
    RED_APART = "red_apart", "all its failed tests were in quarantine: passed in the adjusted pass rate alone"


class Provenance(models.TextChoices):
    """Whether a job's callbacks brought back the token of their dispatch. '' where nothing was dispatched."""

    CONFIRMED = "confirmed", "dispatched by the hub, confirmed by its token"
    EXPIRED = "expired", "the dispatch's token was echoed after it had expired"
    NOT_ECHOED = "not_echoed", "the dispatch's token was not echoed"


class Verdict(models.TextChoices):
    """What GitHub's own record of the run says about a reported conclusion. '' while GitHub was not asked."""

    VERIFIED = "verified", "GitHub says the same"
    CONTRADICTED = "contradicted", "GitHub says otherwise"
    UNVERIFIABLE = "unverifiable", "GitHub cannot say"


class Answer(models.TextChoices):
    """What the hub answered to a callback, or why it kept one that it refused."""

    APPLIED = "applied", "applied"
    LATE = "late", "late: only the start was filled in"
    DUPLICATE = "duplicate", "duplicate: nothing changed"
    HELD = "held", "held: counts once the repository's new owner is accepted"
    IGNORED = "ignored", "ignored: kept privately"
    CONFLICT = "conflict", "refused: the job had ended otherwise"


class Conclusion(models.TextChoices):
    """What a check run concludes, in GitHub's words, as far as the hub uses them."""

    SUCCESS = "success", "success"
    FAILURE = "failure", "failure"
    TIMED_OUT = "timed_out", "timed out"
    CANCELLED = "cancelled", "cancelled"
    NEUTRAL = "neutral", "neutral"


class Declared(models.TextChoices):
    """What a maintainer may declare a job to be. All but the last are buckets in which it is meant to end."""

    FAILURE = "failure", "meant to fail"
    CANCELLED = "cancelled", "meant to be cancelled"
    TIMED_OUT = "timed_out", "meant to time out"
    INFORMATIONAL = "informational", "informational: counts in no rate"
