"""When a blocking repository loses its say, and when it has it back: pure.

Nobody opens a breaker alone: of each author one pull request counts, and a failure that another platform has too does
not count, since it speaks against the change. What others confirm goes on blocking while the breaker is open.

Nobody closes their own at will either: evidence are the commits of main that the hub sent since, each once, and after a
trip that was not the first for a while nothing but a decision.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from apps.gate.enums import Effect, TripKind
from apps.gate.policy import Requirement, Row
from apps.relay.enums import Bucket


@dataclass(frozen=True)
class Blocked:
    """A pull request whose newest head a repository's part has blocked lately: by whom it is, why it is blocked."""

    pr_number: int
    author: str
    requirements: tuple[Requirement, ...]

    def has(self, outcome: str) -> bool:
        """Whether such an outcome is among what the part says, in time or late."""
        return any(outcome in (one.outcome, one.late_outcome) for one in self.requirements)

    @property
    def counts(self) -> bool:
        """Whether the repository alone blocks it."""
        blocking = [one for one in self.requirements if one.effect is Effect.BLOCKS]
        return bool(blocking) and not any(one.is_confirmed for one in blocking)

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for one in self.requirements for row in one.rows)


@dataclass(frozen=True)
class Trip:
    """Why a breaker is to open, and on what that stands."""

    kind: TripKind
    why: str
    blocked: tuple[Blocked, ...]


# Kind → the policy's limit, what counts, and how it is said.
_KINDS = {
    TripKind.PULL_REQUESTS: ("breaker_pull_requests", "It alone blocked {} unrelated pull requests in {} h."),
    TripKind.TIMEOUTS: ("breaker_timeouts", "It timed out on {} unrelated pull requests in {} h."),
    TripKind.CONTRADICTIONS: (
        "breaker_contradictions",
        "It contradicted itself on {} unrelated pull requests in {} h.",
    ),
}


def trip_of(blocked: Iterable[Blocked], limits: Mapping[str, int]) -> Trip | None:
    """Whether a breaker is to open, given what happened within the policy's hours; the first reason, in order."""
    blocked = list(blocked)
    for kind, (limit, words) in _KINDS.items():
        found = unrelated(one for one in blocked if _counts(one, kind))
        if len(found) >= limits[limit]:
            return Trip(kind, words.format(len(found), limits["breaker_window_hours"]), tuple(found))
    return None


def _counts(one: Blocked, kind: TripKind) -> bool:
    match kind:
        case TripKind.PULL_REQUESTS:
            return one.counts
        case TripKind.TIMEOUTS:
            return one.has("timed_out")
        case TripKind.CONTRADICTIONS:
            return one.has("contradicted")


def unrelated(blocked: Iterable[Blocked]) -> list[Blocked]:
    """Of each author the first pull request: one person's stack is one. Unknown authors are one together."""
    first: dict[str, Blocked] = {}
    for one in sorted(blocked, key=lambda one: one.pr_number):
        first.setdefault(one.author, one)
    return list(first.values())


def is_proven(commits: Iterable[Iterable[str]], limits: Mapping[str, int]) -> bool:
    """Whether a breaker may close by itself. `commits`: of each commit of main that the repository was sent since it
    opened and has answered whole, the newest first, the buckets of its jobs."""
    newest = [set(commit) for commit in commits][: limits["breaker_close_runs"]]
    return len(newest) == limits["breaker_close_runs"] and all(one == {Bucket.SUCCESS.value} for one in newest)
