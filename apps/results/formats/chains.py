"""Several cases of one test in one report are attempts: what they come to. Source: docs/results.md, "Attempts".

Within a file, and from one attempt of a job to the next, cases have an order. Between files of the same order nobody
knows which came first, so the worst counts.
"""

from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import groupby
from typing import Any, NamedTuple

from apps.results.formats.cases import RED, Case, Outcome

# From worst to best. Of two cases the worse one counts, except that a pass after red is flaky. A test that ran counts
# before one that did not.
WORST_FIRST = (
    Outcome.FAILED,
    Outcome.ERROR,
    Outcome.LOST,
    Outcome.XPASSED,
    Outcome.UNKNOWN,
    Outcome.FLAKY,
    Outcome.PASSED,
    Outcome.XFAILED,
    Outcome.SKIPPED,
)
_BADNESS = {outcome: -place for place, outcome in enumerate(WORST_FIRST)}
# How pytest begins the message of an error after the test itself; it writes a second case where the test had failed.
TEARDOWN = "failed on teardown"


class Chain(NamedTuple):
    """A row of the table: what was seen, file by file (`;` between files), and what it comes to."""

    seen: str
    are_ordered: bool
    outcome: Outcome
    attempts: int
    says: str


CHAINS = (
    Chain("failed, passed", True, Outcome.FLAKY, 2, "a pass after red"),
    Chain("failed; passed", True, Outcome.FLAKY, 2, "the same, from one attempt to the next"),
    Chain("failed; passed", False, Outcome.FAILED, 2, "two files, and nobody knows which came first: red stays red"),
    Chain("passed, failed", True, Outcome.FAILED, 2, "the last word is red"),
    Chain("failed, passed, failed", True, Outcome.FAILED, 3, "so it is after a pass in between"),
    Chain("failed, failed, failed", True, Outcome.FAILED, 3, "every attempt was red"),
    Chain("failed, error", True, Outcome.FAILED, 2, "the worse of two"),
    Chain("failed, teardown", True, Outcome.FAILED, 1, "a test and its teardown are one test and one attempt"),
    Chain("passed, teardown", True, Outcome.ERROR, 1, "the same where only the teardown failed"),
    Chain("error; flaky", True, Outcome.FLAKY, 2, "a flaky attempt ended with a pass"),
    Chain("flaky; failed", True, Outcome.FAILED, 2, "red after all"),
    Chain("lost; passed", True, Outcome.FLAKY, 2, "it was run again and passed"),
    Chain("xpassed; passed", True, Outcome.FLAKY, 2, "an unexpected pass is red"),
    Chain("failed, skipped", True, Outcome.FAILED, 2, "a skip takes nothing back"),
    Chain("failed; xfailed", True, Outcome.FAILED, 2, "nor does an expected failure"),
    Chain("unknown; passed", True, Outcome.UNKNOWN, 2, "what nobody knows is never green"),
    Chain("skipped; passed", False, Outcome.PASSED, 2, "it ran in one of two shards"),
    Chain("passed; passed", False, Outcome.PASSED, 2, "it ran in both"),
    Chain("xfailed; skipped", False, Outcome.XFAILED, 2, "an expected failure ran"),
)

# Where a case stands: its file's order, which is anything that sorts, and the file's number.
_Place = tuple[Any, int]
_Seen = tuple[_Place, Case]


def settle(files: Iterable[tuple[Any, Iterable[Case]]]) -> Iterator[Case]:
    """One case a test (file, class and name as written), in the order in which the tests were first seen.

    `files` are pairs of a file's order and its cases: a higher order came later, files of equal order may come in any
    sequence. A case that comes out has the outcome of all its attempts, and one rerun less than there were attempts.
    """
    tests: dict[tuple[str, str], dict[str, _Seen | list[_Seen]]] = {}
    file = class_name = None
    group: dict[str, _Seen | list[_Seen]] = {}
    for number, (order, cases) in enumerate(files):
        place = (order, number)
        for case in cases:
            # Neighbours share their class, mostly as the same object.
            if case[1] is not class_name or case[0] is not file:
                file, class_name = case[0], case[1]
                group = tests.setdefault((file, class_name), {})
            one = (place, case)
            seen = group.setdefault(case[2], one)
            if seen is not one:
                if type(seen) is not list:
                    seen = group[case[2]] = [seen]  # type: ignore[list-item]
                seen.append(one)
    for group in tests.values():
        for seen in group.values():
            yield _chained(seen) if type(seen) is list else seen[1]  # type: ignore[misc]


def _chained(seen: list[_Seen]) -> Case:
    """All attempts of one test as one case."""
    seen.sort(key=lambda one: one[0])  # stable: within a file the sequence stays
    orders = []
    for _, files in groupby(seen, key=lambda one: one[0][0]):
        ends = [
            reduce(_follow, [case for _, case in cases]) for _, cases in groupby(list(files), key=lambda one: one[0])
        ]
        orders.append(reduce(_beside, sorted(ends, key=_weight)))
    return reduce(_follow, orders)


def _follow(earlier: Case, later: Case) -> Case:
    """Two attempts, one after the other."""
    if later.outcome is Outcome.ERROR and later.message.startswith(TEARDOWN):
        return _worse(earlier, later)._replace(reruns=earlier.reruns + later.reruns)
    reruns = earlier.reruns + later.reruns + 1
    if earlier.outcome in RED and later.outcome in (Outcome.PASSED, Outcome.FLAKY):
        return earlier._replace(outcome=Outcome.FLAKY, seconds=later.seconds, reruns=reruns)
    return _worse(earlier, later)._replace(reruns=reruns)


def _beside(one: Case, other: Case) -> Case:
    """Two attempts of which nobody knows the sequence; `other` weighs at least as much."""
    return other._replace(reruns=one.reruns + other.reruns + 1)


def _worse(earlier: Case, later: Case) -> Case:
    return earlier if _BADNESS[earlier.outcome] > _BADNESS[later.outcome] else later


def _weight(case: Case) -> tuple[int, str, str, float, int, str]:
    """Sorts cases from best to worst; the rest makes the choice between equals independent of who came first."""
    seconds = -1.0 if case.seconds is None else case.seconds
    return _BADNESS[case.outcome], case.message, case.trace, seconds, case.reruns, case.word
