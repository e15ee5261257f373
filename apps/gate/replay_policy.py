"""What a replay found, pure: had this repository been blocking, what the gate would have said of each head.

WRONG says what makes a block wrong; docs/gate.md prints it. A failure that the change brings, or that upstream brings
to several platforms, is what a blocking repository is for. What is not known is unknown, never as if it had passed.
"""

import datetime
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Any

from apps.gate.enums import RowKind
from apps.gate.policy import Row

HOUR = datetime.timedelta(hours=1)


class Outcome(StrEnum):
    """What the gate would have said of a head, or of a pull request by the worst of its heads."""

    BLOCKED = "blocked"
    UNKNOWN = "unknown"
    UNANSWERED = "unanswered"
    PASSED = "passed"


class Wrong(StrEnum):
    """Why a block was wrong."""

    GREEN_AGAIN = "green_again"
    QUARANTINED = "quarantined"
    INFRASTRUCTURE = "infrastructure"


WRONG: dict[Wrong, str] = {
    Wrong.GREEN_AGAIN: "The same check passed in a later run of the same commit.",
    Wrong.QUARANTINED: "Every red test that blocked was quarantined afterwards.",
    Wrong.INFRASTRUCTURE: "Nothing was heard, the job never started, or it fell silent until the hub ended it.",
}
SETTLED: dict[Outcome, str] = {
    Outcome.BLOCKED: "The first moment at which the gate would have said so.",
    Outcome.PASSED: "The last end, or the end of the last wait, that its part came to.",
    Outcome.UNANSWERED: "A newer head came, or the replay was made, while its part was still awaited.",
    Outcome.UNKNOWN: "The hub does not know what the gate would have said.",
}
# Worst first.
_ORDER = list(Outcome)


@dataclass(frozen=True)
class Head:
    """One head of a pull request. `told_at`: when the hub heard of it; `at`: the moment that is told of (SETTLED).
    `wrong`: why the block was wrong, empty where it was right. `hours`: of waiting for the part; None: it never was
    final."""

    pr_number: int
    sha: str
    told_at: datetime.datetime
    at: datetime.datetime
    outcome: Outcome
    policy_number: int
    sentences: tuple[str, ...]
    rows: tuple[Row, ...] = ()
    wrong: tuple[Wrong, ...] = ()
    hours: float | None = None

    def written(self) -> dict[str, Any]:
        """As JSON. Addresses are paths on this hub."""
        return {
            "pr": self.pr_number,
            "sha": self.sha,
            "told_at": self.told_at.isoformat(),
            "at": self.at.isoformat(),
            "outcome": self.outcome.value,
            "wrong": [one.value for one in self.wrong],
            "hours": self.hours,
            "policy": self.policy_number,
            "sentences": list(self.sentences),
            "rows": [{"kind": row.kind.value, "label": row.label, "url": row.url} for row in self.rows],
        }

    @classmethod
    def read(cls, said: dict[str, Any]) -> "Head":
        """One as it was written; a number may be its text."""
        return cls(
            pr_number=said["pr"],
            sha=said["sha"],
            told_at=_moment(said["told_at"]),
            at=_moment(said["at"]),
            outcome=Outcome(said["outcome"]),
            policy_number=said["policy"],
            sentences=tuple(said["sentences"]),
            rows=tuple(Row(RowKind(row["kind"]), row["label"], row["url"]) for row in said["rows"]),
            wrong=tuple(Wrong(word) for word in said["wrong"]),
            hours=None if said["hours"] is None else float(said["hours"]),
        )


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


@dataclass(frozen=True)
class Replay:
    """Every head that the hub was told of in [`since`, `until`), had the repository been blocking; as of `made_at`.
    Pull requests are counted, each once: by the worst of its heads."""

    repository: str
    since: datetime.datetime
    until: datetime.datetime
    made_at: datetime.datetime
    heads: tuple[Head, ...]

    def _of(self, *outcomes: Outcome) -> int:
        return sum(found in outcomes for found in self._worst.values())

    @property
    def _worst(self) -> dict[int, Outcome]:
        worst: dict[int, Outcome] = {}
        for head in self.heads:
            known = worst.get(head.pr_number, head.outcome)
            worst[head.pr_number] = min(known, head.outcome, key=_ORDER.index)
        return worst

    @property
    def looked_at(self) -> int:
        """Pull requests in the window."""
        return len(self._worst)

    @property
    def blocked(self) -> int:
        """Pull requests of which it would have blocked a head, rightly or wrongly."""
        return self._of(Outcome.BLOCKED)

    @property
    def wrongly(self) -> int:
        """Pull requests of which it would have blocked a head wrongly."""
        return len({head.pr_number for head in self.heads if head.wrong})

    @property
    def wrongly_by(self) -> dict[str, int]:
        """By reason, the pull requests that it would have blocked wrongly for it; one may have several."""
        return {why.value: len({head.pr_number for head in self.heads if why in head.wrong}) for why in Wrong}

    @property
    def unknown(self) -> int:
        """Pull requests that none of its heads is known to have been blocked, and one is unknown."""
        return self._of(Outcome.UNKNOWN)

    @property
    def unanswered(self) -> int:
        """Pull requests of which a head never had a final answer, and none is worse."""
        return self._of(Outcome.UNANSWERED)

    @property
    def passed(self) -> int:
        """Pull requests that it would have let pass, every head."""
        return self._of(Outcome.PASSED)

    @property
    def hours(self) -> list[float]:
        """The waiting that its part brought, for each head with a final answer."""
        return [head.hours for head in self.heads if head.hours is not None]

    @property
    def hours_sum(self) -> float:
        """All of it."""
        return round(sum(self.hours), 2)

    @property
    def hours_median(self) -> float | None:
        """The median of a head; None where no head had a final answer."""
        return round(median(self.hours), 2) if self.hours else None

    def by_day(self) -> Mapping[datetime.date, tuple[int, int]]:
        """(blocked wrongly, looked at) of the pull requests of which it is known, by the UTC day of their newest
        head."""
        worst, days = self._worst, dict[int, datetime.date]()
        wrong = {head.pr_number for head in self.heads if head.wrong}
        for head in sorted(self.heads, key=lambda head: head.told_at):
            days[head.pr_number] = head.told_at.astimezone(datetime.UTC).date()
        found: dict[datetime.date, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for number, day in days.items():
            if worst[number] in (Outcome.BLOCKED, Outcome.PASSED):
                wrongly, looked_at = found[day]
                found[day] = (wrongly + (number in wrong), looked_at + 1)
        return dict(found)

    def written(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "repository": self.repository,
            "since": self.since.isoformat(),
            "until": self.until.isoformat(),
            "made_at": self.made_at.isoformat(),
            "pull_requests": self.looked_at,
            "blocked": self.blocked,
            "blocked_wrongly": self.wrongly,
            "blocked_wrongly_by": self.wrongly_by,
            "unknown": self.unknown,
            "unanswered": self.unanswered,
            "passed": self.passed,
            "hours_waited": self.hours_sum,
            "hours_waited_median": self.hours_median,
            "heads": [head.written() for head in self.heads],
        }

    @classmethod
    def read(cls, said: dict[str, Any]) -> "Replay":
        """One as it was written: every count is made again from its heads."""
        since, until, made_at = (_moment(said[end]) for end in ("since", "until", "made_at"))
        heads = tuple(Head.read(head) for head in said["heads"])
        return cls(said["repository"], since, until, made_at, heads)
