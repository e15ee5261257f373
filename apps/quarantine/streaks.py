"""Tests that are red in every run: what one more report makes of them. Pure, but for arrays.

Ended by the first pass; a report that skips a test, or does not name it, changes nothing.
"""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, replace

from apps.quarantine.policy import Rules


@dataclass(frozen=True)
class Look:
    """What one report says, as streaks see it. `red` and `green` hold tests by number."""

    report: int
    sha: str
    at: datetime.datetime
    red: Iterable[int]
    green: Iterable[int]


@dataclass(frozen=True)
class Red:
    """One test that is red since a report, in so many runs and on so many commits that follow on one another."""

    since: int
    last: int
    last_sha: str
    runs: int
    commits: int
    since_at: datetime.datetime
    last_at: datetime.datetime


def advanced(before: dict[int, Red], look: Look) -> dict[int, Red]:
    """The tests that are red once a later report has been looked at."""
    after = dict(before)
    for test in look.green:
        after.pop(test, None)
    for test in look.red:
        known = after.get(test)
        if known is None:
            # A commit that nobody named is no commit of its own.
            after[test] = Red(look.report, look.report, look.sha, 1, int(bool(look.sha)), look.at, look.at)
            continue
        is_new = look.sha not in ("", known.last_sha)
        after[test] = replace(
            known,
            last=look.report,
            last_sha=look.sha or known.last_sha,
            runs=known.runs + 1,
            commits=known.commits + is_new,
            last_at=look.at,
        )
    return after


def is_regression(red: Red, rules: Rules) -> bool:
    """Whether it has been red for so long that it is no flake any more."""
    return red.runs >= rules.broken_runs and red.commits >= rules.broken_commits
