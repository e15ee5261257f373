"""The vocabulary of an allowlist that is kept upstream."""

from django.db import models


class EditState(models.TextChoices):
    """Where a decision is that waits for the file."""

    PENDING = "pending", "pull request is being prepared"
    OPENING = "opening", "pull request is being opened"
    OPENED = "opened", "waits for its pull request"
    MERGED = "merged", "in force"
    CLOSED = "closed", "pull request closed, not in force"
    FAILED = "failed", "no pull request could be opened"


# While a decision is in one of these, no other can be made about its repository.
OPEN_EDITS = (EditState.PENDING, EditState.OPENING, EditState.OPENED)
# The file does not say what was decided, and will not: the decision is for somebody to take again.
PUT_BACK = (EditState.CLOSED, EditState.FAILED)


class AlarmKind(models.TextChoices):
    """Why a file is not taken. What each means stands in sync_policy.GUARDS."""

    HTML = "html", "a web page"
    EMPTY = "empty", "empty"
    UNREADABLE = "unreadable", "not an allowlist"
    SHRINK = "shrink", "much is gone"
    REFUSED = "refused", "refused by GitHub"
    SILENT = "silent", "GitHub is silent"


class DemotionState(models.TextChoices):
    """Where upstream's own pull request is."""

    OPEN = "open", "open"
    MERGED = "merged", "merged"
    CLOSED = "closed", "closed"
