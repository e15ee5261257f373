"""The rules of flaky tests in words, one row a rule: /policy/ and docs/quarantine.md print it."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

from apps.quarantine.policy import Rules

_DAY = 24


@dataclass(frozen=True)
class Worded:
    """One rule. `part`: what it is about; `says`: what its value means; `unit`: "", "hours" or "share"."""

    part: str
    says: str
    unit: str = ""


WORDS: dict[str, Worded] = {
    "enter_jobs": Worded("entering", "different jobs in which it flaked, at least"),
    "enter_runs": Worded("entering", "different runs, at least"),
    "enter_commits": Worded("entering", "different commits, at least"),
    "window": Worded("entering", "counted back from now", "hours"),
    "newest": Worded("entering", "the newest flake is at most so old", "hours"),
    "only_main": Worded("entering", "only commits of the main branch count"),
    "aggregate_over": Worded("entering", "tests of one file that enter at once and stand alone; more are one record"),
    "incident_least": Worded("incidents", "tests that turn red or flaky in one run, at least"),
    "incident_times": Worded("incidents", "times as many as usual, at least"),
    "leave_passes": Worded("leaving", "executed passes without a red, on commits after the fix, at least"),
    "leave_span": Worded("leaving", "the passes are spread over, at least", "hours"),
    "leave_quiet": Worded("leaving", "without a change of the record, at least", "hours"),
    "expiry": Worded("ending", "it ends after", "hours"),
    "renewals": Worded("ending", "renewals over all records that follow one another, at most"),
    "vanish": Worded("ending", "it ends as vanished when none of its tests was seen for", "hours"),
    "broken_runs": Worded("ending", "it ends as broken, a regression, after so many red runs without a pass"),
    "broken_commits": Worded("ending", "and on so many commits"),
    "cap_share": Worded("room", "of the last report's tests in force at once, at most", "share"),
    "cap_least": Worded("room", "tests in force at once that are always allowed"),
    "budget_days": Worded("room", "test-days for each of these places"),
    "budget_window": Worded("room", "within which test-days are counted", "hours"),
}
assert list(WORDS) == [field.name for field in fields(Rules)]


def shown(name: str, rules: Rules) -> str:
    """A rule's value as people read it."""
    value, unit = getattr(rules, name), WORDS[name].unit
    if isinstance(value, bool):
        return "yes" if value else "no"
    if unit == "share":
        return f"{value * 100:g} %"
    if unit == "hours":
        return f"{value / _DAY:g} days" if value >= 2 * _DAY else f"{value:g} hours"
    return f"{value:g}"


@dataclass(frozen=True)
class Row:
    """A rule, and what each of some sets says of it."""

    name: str
    part: str
    says: str
    values: tuple[str, ...]

    @property
    def is_different(self) -> bool:
        """Whether the sets disagree."""
        return len(set(self.values)) > 1


def table(*sets: Rules) -> Iterator[Row]:
    """Every rule with its value in each of these sets."""
    for name, worded in WORDS.items():
        yield Row(name, worded.part, worded.says, tuple(shown(name, rules) for rules in sets))
