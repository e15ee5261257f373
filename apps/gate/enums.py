"""The words of the gate."""

import enum

from django.db import models


class Kind(models.TextChoices):
    """What a requirement of the gate is."""

    SATISFIED = "satisfied", "satisfied"
    UNSATISFIED = "unsatisfied", "not satisfied"
    PENDING = "pending", "awaited"
    INFORMATIONAL = "informational", "informational: blocks nothing"
    QUARANTINED = "quarantined", "red in quarantine: excused, and listed"
    OVERRIDDEN = "overridden", "overridden by a maintainer"
    MISSING = "missing", "nothing was heard"
    ERRORED = "errored", "ended without a plain answer"
    EXCLUDED = "excluded", "left out, with the reason"


class Effect(enum.StrEnum):
    """What a requirement does to the verdict."""

    PASSES = "passes"
    WAITS = "waits"
    UNKNOWN = "unknown"
    BLOCKS = "blocks"


class Verdict(models.TextChoices):
    """The gate's answer about one commit."""

    PASS = "pass", "pass"
    FAIL = "fail", "fail"
    PENDING = "pending", "pending"
    UNKNOWN = "unknown", "unknown"


class BaseState(enum.StrEnum):
    """What the base says about a red test: the same repository and variant at the merge base, or at its nearest tested
    ancestor."""

    SAME = "same"  # red there with the same failure
    OTHER = "other"  # red there with another failure
    GREEN = "green"  # not red there
    UNKNOWN = "unknown"  # nothing near says it


class RowKind(enum.StrEnum):
    """What a row behind a requirement leads to."""

    JOB = "job"
    REPORT = "report"
    TEST = "test"
    QUARANTINE = "quarantine"
    COMMIT = "commit"
    OVERRIDE = "override"
    DECISION = "decision"


class TripKind(models.TextChoices):
    """Why a breaker opened."""

    PULL_REQUESTS = "pull_requests", "fails across unrelated pull requests"
    TIMEOUTS = "timeouts", "times out across pull requests"
    CONTRADICTIONS = "contradictions", "contradicts itself"


class Closed(models.TextChoices):
    """What closed a breaker again."""

    EVIDENCE = "evidence", "by evidence"
    DECISION = "decision", "by a decision"
