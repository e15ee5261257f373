"""How much may be uploaded: one table, printed in docs/reports.md. What files may expand to: formats/limits.py."""

from dataclasses import dataclass

from django.conf import settings

from apps.core import clock
from apps.core.limits import Limit
from apps.results.formats.limits import MIB, Limits

UPLOAD_MAX_BYTES = Limits().compressed
DAY_MAX_BYTES = 4_096 * MIB
UPLOADS_PER_MINUTE = 120
PARTS_MAX = settings.DATA_UPLOAD_MAX_NUMBER_FILES
META_MAX_BYTES = 16_384
SHARDS_MAX = 1_000
# What surrounds the files in a multipart body: its lines, and the meta.
ENVELOPE_BYTES = MIB

RATE = Limit("report", UPLOADS_PER_MINUTE, "uploads of this repository")


@dataclass(frozen=True)
class Quota:
    """One row: what is limited, to how much, and what the answer is past it."""

    what: str
    limit: str
    answer: str


QUOTAS: tuple[Quota, ...] = (
    Quota("the files of one upload, as sent", f"{UPLOAD_MAX_BYTES // MIB} MiB", "413 `too_large`"),
    Quota("files of one upload", f"{PARTS_MAX}", "400 `malformed`"),
    Quota("`meta`", f"{META_MAX_BYTES // 1024} KiB", "413 `too_large`"),
    Quota("shards of one report", f"{SHARDS_MAX}", "400 `malformed`"),
    Quota(
        "bytes of a repository and UTC day",
        f"{DAY_MAX_BYTES // MIB:,} MiB",
        "429 `quota_used`, `Retry-After` until midnight UTC",
    ),
    Quota("uploads of a repository and minute", f"{UPLOADS_PER_MINUTE}", "429 `rate_limited`, `Retry-After`"),
)


def check_rate(number: str) -> None:
    """Count one upload of a repository or pipeline, by the number of its identity. Raises Problem `rate_limited`.

    As with callbacks, what happens in a demo's pretended time is not counted in real minutes.
    """
    if clock.pretended() is None:
        RATE.take(number)
