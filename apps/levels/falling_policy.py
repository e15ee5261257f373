"""The rules of falling, pure: when a notice opens and ends by itself, and what changed since somebody looked.

A night is what the hub kept of one evaluation; a night that is missing breaks nothing and counts for nothing. What is
asked of a night is the standing of its criteria: `met`, `not met`, `no result`, or `waived`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.governance.evaluation import Verdict
from apps.levels.falling_enums import DowngradeState, FallState

WAIVED = "waived"
Standings = Mapping[str, str]


def standings(results: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """By criterion, how it stood in a night: `results` as evaluation.Result.written wrote them."""
    return {row["criterion"]: WAIVED if row["waiver"] else row["verdict"] for row in results}


def lasting(nights: Sequence[Standings], dwell: int) -> list[str]:
    """The criteria that were not met in each of the newest `dwell` nights (newest first), in one order; none while
    there are fewer."""
    newest = nights[:dwell]
    if len(newest) < dwell:
        return []
    failing = ({key for key, stood in night.items() if stood == Verdict.NOT_MET} for night in newest)
    return sorted(set.intersection(*failing))


def is_back(nights: Sequence[Standings], criteria: Iterable[str], dwell: int) -> bool:
    """Whether every one of the criteria stood in each of the newest `dwell` nights: met, waived, or asked no more."""
    newest = nights[:dwell]
    keys = list(criteria)
    stands = (Verdict.MET, WAIVED)
    return len(newest) == dwell and all(night.get(key, WAIVED) in stands for night in newest for key in keys)


def changes(seen: Standings, newest: Standings, criteria: Iterable[str]) -> list[str]:
    """What became of the criteria between two nights, a clause each; none where all stand as they did."""
    found = ((key, seen.get(key, "not asked"), newest.get(key, "not asked")) for key in criteria)
    return [f"{key} was {before} and is {after}" for key, before, after in found if before != after]


def way_back(asked: Iterable[tuple[str, str]], dwell: int) -> str:
    """What ends a notice by itself, in one sentence. `asked`: title and threshold of each criterion."""
    listed = "; ".join(f"{title} {words}" for title, words in asked)
    return f"Meets {listed}, in {dwell} nights in a row."


@dataclass(frozen=True)
class End:
    """One way in which something open ends. `by`: who does it. `when`: what has to be so."""

    by: str
    when: str


NOTICE_ENDS: dict[FallState, End] = {
    FallState.MET_AGAIN: End("the hub", "every criterion of the notice was met as many nights in a row as it asks for"),
    FallState.DEMOTED: End("a maintainer of another organisation", "the deadline has passed; with a reason"),
    FallState.LIFTED: End("a maintainer of another organisation", "at any time; with a reason"),
    FallState.SUPERSEDED: End("the hub", "the repository's level was changed in another way"),
}
DOWNGRADE_ENDS: dict[DowngradeState, End] = {
    DowngradeState.UNDONE: End("a maintainer of another organisation", "at any time; back to exactly the level before"),
    DowngradeState.CONFIRMED: End("a maintainer of another organisation", "at any time; with a reason"),
    DowngradeState.SUPERSEDED: End("the hub", "the repository's level was changed in another way"),
}
