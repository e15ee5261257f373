"""An evidence bundle, pure: what a decision about L3 or L4 was made on, and every figure counted again from it alone.

A bundle is one JSON object without floats; its hash is the SHA-256 of its canonical text (apps/audit/chain.py). It
holds the values of the rows that its figures stand on, the policy whole, and what was stated, so that the figures can
be checked when the hub's own rows have been corrected or are gone (docs/levels.md, "The evidence").
"""

import datetime
import hashlib
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from apps.audit.chain import canonical
from apps.gate.replay_policy import Replay
from apps.governance.evaluation import Evaluation, Facts, Refusals, days_held, evaluate
from apps.policies.policy import Contradiction, Use
from apps.policies.policy import read as read_policy
from apps.results.input_rows import FORMULAS, InputRows
from apps.results.set_aside import recount_less

FORMAT = 1
# So large a bundle may be when it is unpacked: 90 days of a thousand jobs a day are a fifth of it.
BYTES_MAX = 200_000_000


class BundleError(ValueError):
    """What is wrong with a bundle: it says what was seen."""


@dataclass(frozen=True)
class Compared:
    """One figure: as the bundle states it, and as its rows give it."""

    criterion: str
    stated: dict[str, Any]
    counted: dict[str, Any]

    @property
    def is_same(self) -> bool:
        return self.stated == self.counted


def hash_of(bundle: dict[str, Any]) -> str:
    """SHA-256, hex, of the canonical text."""
    return hashlib.sha256(canonical(bundle).encode()).hexdigest()


def packed(bundle: dict[str, Any]) -> bytes:
    """The canonical text, compressed."""
    return zlib.compress(canonical(bundle).encode(), 9)


def unpacked(content: bytes) -> dict[str, Any]:
    """What was packed. Raises BundleError for bytes that are cut short, too many, or no bundle."""
    opened = zlib.decompressobj()
    try:
        text = opened.decompress(content, BYTES_MAX)
        if not opened.eof:
            raise BundleError(f"cut short, or larger than {BYTES_MAX:,} bytes")
        return parsed(text)
    except zlib.error as error:
        raise BundleError(f"no compressed bundle: {error}") from None


def parsed(text: bytes) -> dict[str, Any]:
    """A bundle from its JSON. Raises BundleError for another format, or formulas that this hub does not know."""
    try:
        bundle = json.loads(text)
    except (ValueError, RecursionError):
        raise BundleError("no JSON") from None
    if not isinstance(bundle, dict) or bundle.get("format") != FORMAT:
        raise BundleError(f"no bundle of format {FORMAT}")
    if bundle.get("formulas") != FORMULAS:
        raise BundleError(f"formulas {bundle.get('formulas')!r}: this hub counts by formulas {FORMULAS}")
    return bundle


def evaluation_of(bundle: dict[str, Any]) -> Evaluation:
    """Every criterion of the bundle's level, evaluated from its rows under its policy. Raises BundleError where a part
    is missing or of another shape."""
    try:
        policy = read_policy(bundle["policy"]["says"], number=bundle["policy"]["number"])
        return evaluate(
            bundle["target"],
            Use.RISE,
            policy=policy,
            facts=_facts(bundle),
            shown_by=[item["measure"] for item in bundle["evidence"]],
            waivers=bundle["waivers"],
            notes=bundle["notes"],
        )
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError, Contradiction) as error:
        raise BundleError(f"a part is missing or of another shape: {error!r}") from None


def compared(bundle: dict[str, Any]) -> list[Compared]:
    """Each figure as stated beside the same counted from the rows. Raises BundleError."""
    counted = {row["criterion"]: row for row in (result.written() for result in evaluation_of(bundle).results)}
    stated = {row["criterion"]: row for row in bundle["stated"]["results"]}
    return [Compared(key, stated.get(key, {}), counted.get(key, {})) for key in {**counted, **stated}]


def table(rows: Iterable[dict[str, Any]], columns: Iterable[str]) -> dict[str, Any]:
    """Rows as a bundle keeps them: the columns once, the values row by row."""
    columns = list(columns)
    return {"columns": columns, "rows": [[row[column] for column in columns] for row in rows]}


def rows_of(kept: dict[str, Any]) -> list[dict[str, Any]]:
    """The other way round."""
    return [dict(zip(kept["columns"], row, strict=True)) for row in kept["rows"]]


def _facts(bundle: dict[str, Any]) -> Facts:
    now, known = _moment(bundle["frozen_at"]), bundle["facts"]
    first, last = (datetime.date.fromisoformat(bundle["window"][end]) for end in ("first", "last"))
    rows = InputRows(rows_of(bundle["jobs"]), rows_of(bundle["dispatches"]))
    held = [
        (row["level"], _moment(row["from"]), _moment(row["until"]) if row["until"] else None)
        for row in rows_of(bundle["tenure"])
    ]
    refusals = known["refusals"]
    return Facts(
        today=now.date(),
        now=now,
        days=recount_less(rows, first=first, last=last),
        has_other_jobs=known["has_other_jobs"],
        tenure=days_held(held, now),
        answered_at=_known(known["answered_at"]),
        asked_at=_known(known["asked_at"]),
        level_since=_known(known["level_since"]),
        pairs={datetime.date.fromisoformat(day): count for day, count in known["pairs"].items()},
        refusals=Refusals(refusals["refused"], refusals["requests"], datetime.date.fromisoformat(refusals["since"]))
        if refusals
        else None,
        oncalls=tuple(known["oncalls"]),
        verified=known["verified"],
        ended=known["ended"],
        replayed=Replay.read(bundle["replay"]).by_day() if bundle["replay"] else None,
        trips=None
        if known["trips"] is None
        else {datetime.date.fromisoformat(day): count for day, count in known["trips"].items()},
    )


def exact(value: Any) -> Any:
    """JSON without floats: each as its text."""
    if isinstance(value, float):
        return str(value)
    if isinstance(value, dict):
        return {key: exact(inner) for key, inner in value.items()}
    return [exact(inner) for inner in value] if isinstance(value, list) else value


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def _known(text: str | None) -> datetime.datetime | None:
    return _moment(text) if text else None


def changes_since(stated: Iterable[dict[str, Any]], live: Evaluation) -> list[str]:
    """What is different now from what a bundle stated, a sentence for each criterion of which the result or the value
    is another."""
    before = {row["criterion"]: row for row in stated}
    changes = []
    for result in live.results:
        row = before.get(result.criterion.key)
        now = f"{result.shown}, {'waived' if result.waiver else result.verdict.value}"
        if row is None:
            changes.append(f"{result.criterion.of.title}: not asked then, now {now}.")
            continue
        then = f"{row['shown']}, {'waived' if row['waiver'] else row['verdict']}"
        if then != now:
            changes.append(f"{result.criterion.of.title}: {then} then, now {now}.")
    return changes
