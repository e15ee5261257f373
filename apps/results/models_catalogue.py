"""The catalogue: every test and every skip message that a report ever named, each once.

It only grows, because the files of outcomes name its rows by number: triggers refuse UPDATE, DELETE and TRUNCATE.
"""

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q


class Test(models.Model):
    """One test's identity, over devices and spellings (apps/results/names). `digest` is canonical.digest_of its parts.

    Only the digest is indexed: parts may be of any length. Rows are written by apps/results/catalogue.py alone.
    """

    # The class is named for what it is; pytest is not to look for cases in it.
    __test__ = False

    digest = models.UUIDField(unique=True)
    file = models.TextField(blank=True)
    class_name = models.TextField(blank=True)
    name = models.TextField(blank=True)

    def __str__(self) -> str:
        return " ".join(part for part in (self.file, self.class_name, self.name) if part)


class Reason(models.Model):
    """One skip message as reports write it. Its class is looked up when it is read (apps/results/skips.py)."""

    digest = models.UUIDField(unique=True)
    text = models.TextField(blank=True)

    def __str__(self) -> str:
        return self.text


class SearchedTest(models.Model):
    """A test's words under a trigram index, filled in the background: a report of 600,000 new tests does not wait."""

    test = models.OneToOneField(Test, on_delete=models.PROTECT, primary_key=True, related_name="searched")
    words = models.TextField()

    class Meta:
        indexes = [GinIndex(fields=["words"], opclasses=["gin_trgm_ops"], name="results_searched_words")]

    def __str__(self) -> str:
        return self.words


class PublicTest(models.Model):
    """A test that a public report names: what anyone may search for. Names that only private reports know are not here.

    Filled in the background (apps/results/public_names.py), emptied of a report's tests when it is taken down.
    """

    test = models.OneToOneField(Test, on_delete=models.PROTECT, primary_key=True, related_name="public")

    def __str__(self) -> str:
        return f"{self.test_id}"


class Alias(models.Model):
    """A test that was renamed: history and comparisons read `old` as `new`.

    PostgreSQL refuses chains, and so circles: a test that is one alias's old end is no other's new end."""

    old = models.OneToOneField(Test, on_delete=models.PROTECT, related_name="alias")
    new = models.ForeignKey(Test, on_delete=models.PROTECT, related_name="earlier")
    reason = models.CharField(max_length=500)
    by = models.CharField(max_length=200)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "aliases"
        constraints = [
            models.CheckConstraint(condition=~Q(old=F("new")), name="results_alias_of_another"),
            models.CheckConstraint(condition=~Q(reason=""), name="results_alias_reason"),
        ]

    def __str__(self) -> str:
        return f"{self.old} → {self.new}"
