"""The words of flaky tests."""

from django.db import models


class FlakeKind(models.TextChoices):
    """What showed that a test is flaky. docs/quarantine.md prints them."""

    RERUN = "rerun", "red, then passed when the same run repeated it"
    EVIDENCE = "evidence", "red and green when upstream's rerun of disabled tests ran it many times"
    ATTEMPTS = "attempts", "two attempts of one run on one commit disagree"
    REPORTS = "reports", "two runs on one commit disagree"


class State(models.TextChoices):
    UNCLEAR = "unclear", "Without effect: its platform is not known"
    PROPOSED = "proposed", "Proposed"
    IN_FORCE = "in_force", "In force"
    RELEASE_PROPOSED = "release_proposed", "Release proposed"
    RELEASED = "released", "Released"
    EXPIRED = "expired", "Expired"
    VANISHED = "vanished", "Ended: not seen any more"
    BROKEN = "broken", "Ended: fails always"
    DECLINED = "declined", "Declined"


class Source(models.TextChoices):
    """Who made a quarantine."""

    HUB = "hub", "the hub, by its rules"
    VENDOR = "vendor", "the platform's members"
    MAINTAINER = "maintainer", "a maintainer"


class ReasonClass(models.TextChoices):
    TIMING = "timing", "timing or ordering"
    VALUE = "value", "values out of tolerance"
    DTYPE = "dtype", "one dtype only"
    MEMORY = "memory", "memory or resources"
    COMMUNICATION = "communication", "communication between processes"
    NOT_SUPPORTED = "not_supported", "not supported on this device"
    MESSAGE = "message", "another error message than expected"
    INFRASTRUCTURE = "infrastructure", "machine or runner"
    OTHER = "other", "other, as the reason says"


class Verb(models.TextChoices):
    """What may be done to a quarantine."""

    NAME_PLATFORM = "name_platform", "name its platform"
    PUT_IN_FORCE = "put_in_force", "put in force"
    DECLINE = "decline", "decline"
    RENEW = "renew", "renew"
    PROPOSE_RELEASE = "propose_release", "propose its release"
    KEEP = "keep", "keep in force"
    RELEASE = "release", "release"
    REOPEN = "reopen", "reopen"
    EXPIRE = "expire", "expire"
    VANISH = "vanish", "end as vanished"
    BREAK = "break", "end as broken"


class ListAlarm(models.TextChoices):
    """Why upstream's list of disabled tests is not taken. What each means stands in disabled_list.GUARDS."""

    HTML = "html", "a web page"
    EMPTY = "empty", "empty"
    UNREADABLE = "unreadable", "no list of disabled tests"
    SHRINK = "shrink", "much is gone"
    REFUSED = "refused", "refused"
    SILENT = "silent", "no answer"
