"""The words of reports."""

from django.db import models


class ReportState(models.TextChoices):
    RECEIVED = "received", "received"
    PARSING = "parsing", "parsing"
    READY = "ready", "ready"
    FAILED = "failed", "failed"
    REMOVED = "removed", "removed"


class FileState(models.TextChoices):
    PARSED = "parsed", "parsed"
    PARTIAL = "partial", "partly parsed"
    UNREAD = "unread", "not read"


class ReportFlag(models.TextChoices):
    """What a reader of a report must know beside its counts. Any of them that speaks against green says so."""

    SHARDS_MISSING = "shards_missing", "shards are missing: these are the tests of the others"
    NO_TESTS = "no_tests", "holds no test at all"
    CONTRADICTS_JOB = "contradicts_job", "its job says success, its tests do not"
    UNKNOWN_OUTCOMES = "unknown_outcomes", "holds outcomes that nobody knows: counted as unknown, never as passed"
    DAMAGED = "damaged", "some of its files could not be read to their end"
    FINDINGS_CUT = "findings_cut", "more tests went wrong than are shown one by one; the counts know all"
    COVERAGE_DROP = "coverage_drop", "ran clearly less of its tests than the report before"
    CLAIMED_COMMIT = "claimed_commit", "the commit is its own word: upstream was not asked yet"
    UNKNOWN_COMMIT = "unknown_commit", "upstream does not know the commit that it names"


class TestsVerdict(models.TextChoices):
    """What the uploaded tests say about their job's conclusion. '' while one of the two is missing."""

    __test__ = False  # pytest takes every Test… for one of its own

    CORROBORATED = "corroborated", "the tests agree with the job"
    CONTRADICTED = "contradicted", "the tests contradict the job"
