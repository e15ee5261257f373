"""How check runs are named, what they say, and who wishes for one: what publishes and what compares with them ask here.

Source: docs/protocol.md, "Check runs".
"""

import hashlib
from collections.abc import Iterable

from django.conf import settings

from apps.platforms.policy import CHECKS_FROM, MATURE
from apps.relay.enums import Bucket, Conclusion, JobStatus
from apps.relay.policy import CHECKS_LABEL, WORST

# GitHub takes a name of this many characters.
MOST_NAME = 255
_DIGEST = 12

# Where a job counts → what its check run concludes. What is not here has not ended.
CONCLUSIONS: dict[Bucket, Conclusion] = {
    Bucket.SUCCESS: Conclusion.SUCCESS,
    Bucket.FAILURE: Conclusion.FAILURE,
    Bucket.TIMED_OUT: Conclusion.TIMED_OUT,
    Bucket.CANCELLED: Conclusion.CANCELLED,
    Bucket.CONTRADICTED: Conclusion.FAILURE,
    Bucket.NEUTRAL: Conclusion.NEUTRAL,
}


def state_of(buckets: Iterable[str]) -> str:
    """What the check run of the legs (at least one) that count there says: `in_progress` while any of them runs, then
    what the worst concludes."""
    legs = {Bucket(bucket) for bucket in buckets}
    if Bucket.IN_PROGRESS in legs:
        return JobStatus.IN_PROGRESS.value
    return CONCLUSIONS[next(bucket for bucket in WORST if bucket in legs)].value


def name_of(full_name: str, workflow: str, job_name: str) -> str:
    """`crcr/<owner>/<repo>/<workflow>/<job>`, printable; a name too long for GitHub ends in a digest of the rest."""
    name = "/".join((settings.CHECK_PREFIX, full_name, *(one_line(part) for part in (workflow, job_name) if part)))
    if len(name) <= MOST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: MOST_NAME - _DIGEST - 1]}~{digest}"


def repository_in(name: str) -> str:
    """The repository in a name that `name_of` made: no prefix holds a slash, and no digest reaches so far."""
    return "/".join(name.split("/")[1:3])


def one_line(text: str) -> str:
    """A downstream's text without line ends and control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def device_of(label: str) -> str | None:
    """The device that a label asks for, in lower case as GitHub compares labels; None for another label."""
    word = label.lower().removeprefix(CHECKS_LABEL)
    return word if word and word != label.lower() else None


def is_wished(*, level: int, device: str, devices: Iterable[str]) -> bool:
    """Whether a repository's jobs have check runs on a pull request whose labels name these devices."""
    return level >= MATURE or (level >= CHECKS_FROM and device.lower() in set(devices))
