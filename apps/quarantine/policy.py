"""Rules of flaky tests, pure: when a test is flaky, when it stops to be, and what a quarantine may become.

A rule set is dated (models.RuleVersion); those that ship stand in SHIPPED. /policy/ prints the one in force.
Source of upstream's set: docs/quarantine.md, "Upstream's precedent".
"""

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import median
from typing import Any

from apps.quarantine.enums import FlakeKind, State, Verb

Hours = float
# So many earlier runs of a job say what is usual.
USUAL_OF = 20
_HOUR = datetime.timedelta(hours=1)


@dataclass(frozen=True)
class Rules:
    """One rule set. Times in hours.

    Entering: flakes of at least `enter_jobs` different jobs (one run's job of one attempt is one), in `enter_runs` runs
    and on `enter_commits` commits, within `window`, the newest within `newest`; with `only_main` those of commits of
    the main branch alone. More than `aggregate_over` tests of one file that enter at once are one record.

    An incident is a run in which at least `incident_least` tests turn red or flaky that were not red before, and
    `incident_times` as many as usual: none of them counts as a flake.

    Leaving: `leave_passes` executed passes and no red, spread over `leave_span`, on commits after the fix, and nothing
    changed for `leave_quiet`.

    A quarantine ends after `expiry`, is renewed at most `renewals` times by as long, ends as vanished when its tests
    were not seen for `vanish`, and as broken when the newest `broken_runs` runs on `broken_commits` commits were red.

    `cap_share` of the tests of the last report, at least `cap_least`, may be in force at once on one platform and
    variant; `budget_days` test-days for each of these places is what a platform may use in `budget_window`.
    """

    enter_jobs: int
    enter_runs: int
    enter_commits: int
    window: Hours
    newest: Hours
    only_main: bool
    aggregate_over: int
    incident_least: int
    incident_times: float
    leave_passes: int
    leave_span: Hours
    leave_quiet: Hours
    expiry: Hours
    renewals: int
    vanish: Hours
    broken_runs: int
    broken_commits: int
    cap_share: float
    cap_least: int
    budget_days: int
    budget_window: Hours


_DAY = 24
HUB = Rules(
    enter_jobs=2,
    enter_runs=2,
    enter_commits=2,
    window=14 * _DAY,
    newest=7 * _DAY,
    only_main=False,
    aggregate_over=4,
    incident_least=10,
    incident_times=3.0,
    leave_passes=20,
    leave_span=7 * _DAY,
    leave_quiet=0,
    expiry=30 * _DAY,
    renewals=1,
    vanish=30 * _DAY,
    broken_runs=5,
    broken_commits=3,
    cap_share=0.01,
    cap_least=10,
    budget_days=45,
    budget_window=90 * _DAY,
)
# "More than two" is at least three. What upstream has no rule for is the hub's own.
UPSTREAM = Rules(
    enter_jobs=3,
    enter_runs=1,
    enter_commits=1,
    window=6,
    newest=5,
    only_main=True,
    aggregate_over=4,
    incident_least=HUB.incident_least,
    incident_times=HUB.incident_times,
    leave_passes=150,
    leave_span=7 * _DAY,
    leave_quiet=14 * _DAY,
    expiry=HUB.expiry,
    renewals=HUB.renewals,
    vanish=HUB.vanish,
    broken_runs=HUB.broken_runs,
    broken_commits=HUB.broken_commits,
    cap_share=HUB.cap_share,
    cap_least=HUB.cap_least,
    budget_days=HUB.budget_days,
    budget_window=HUB.budget_window,
)
SHIPPED: dict[str, Rules] = {"hub": HUB, "upstream": UPSTREAM}


# No rule needs more, be it hours (eleven years), tests or runs.
MOST = 100_000


def rules_of(values: dict[str, Any]) -> Rules:
    """A rule set from the object that a RuleVersion keeps. Raises ValueError naming the field that is missing, unknown,
    of another type, or contradicts another."""
    known = {field.name: field.type for field in fields(Rules)}
    for name in known.keys() ^ values.keys():
        raise ValueError(f"{name}: {'missing' if name in known else 'not a rule'}.")
    for name, value in values.items():
        wanted = type(getattr(HUB, name))
        if (wanted is bool and type(value) is not bool) or (wanted is not bool and type(value) not in (int, float)):
            raise ValueError(f"{name}: saw {value!r}, send {'true or false' if wanted is bool else 'a number'}.")
        if not 0 <= value <= MOST:  # nor is it NaN
            raise ValueError(f"{name}: saw {repr(value)[:20]}, send a number from 0 to {MOST:,}.")
        if wanted is int and int(value) != value:
            raise ValueError(f"{name}: saw {value!r}, send a whole number.")
    rules = Rules(**{name: type(getattr(HUB, name))(value) for name, value in values.items()})
    for name, least in (("enter_jobs", 1), ("leave_passes", 1), ("expiry", 1), ("broken_runs", 2), ("window", 1)):
        if getattr(rules, name) < least:
            raise ValueError(f"{name}: saw {getattr(rules, name)!r}, send at least {least}.")
    if rules.newest > rules.window:
        raise ValueError(f"newest: {rules.newest} h is longer than the window of {rules.window} h.")
    if rules.cap_share > 1:
        raise ValueError(f"cap_share: saw {rules.cap_share!r}, send a share of 0 to 1.")
    return rules


# --- entering -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flake:
    """One flake event of one test, as detection reads it. `job` names one attempt of one job of one run."""

    test: int
    kind: FlakeKind
    run: str
    job: str
    sha: str
    at: datetime.datetime
    is_on_main: bool = False
    is_in_incident: bool = False


@dataclass(frozen=True)
class Seen:
    """What a test's flakes come to within the rules' window. `is_flaky`: it enters."""

    jobs: int
    runs: int
    commits: int
    newest: datetime.datetime | None
    is_flaky: bool


def seen(flakes: Iterable[Flake], rules: Rules, at: datetime.datetime) -> Seen:
    """One test's flakes against the rules for entering, as they stand at `at`."""
    counted = [
        flake
        for flake in flakes
        if not flake.is_in_incident
        and (flake.is_on_main or not rules.only_main)
        and at - rules.window * _HOUR <= flake.at <= at
    ]
    jobs = len({flake.job for flake in counted})
    runs = len({flake.run for flake in counted})
    # A commit that nobody named is no commit of its own.
    commits = len({flake.sha for flake in counted if flake.sha})
    newest = max((flake.at for flake in counted), default=None)
    is_flaky = (
        newest is not None
        and newest >= at - rules.newest * _HOUR
        and jobs >= rules.enter_jobs
        and runs >= rules.enter_runs
        and commits >= rules.enter_commits
    )
    return Seen(jobs, runs, commits, newest, is_flaky)


def usual(sizes: Sequence[int]) -> float | None:
    """How many tests turn red in a run as a rule, of the runs before, oldest first; None where there are none.

    The median, incidents among them: one does not move it, and what goes on and on is no incident any more."""
    return float(median(sizes[-USUAL_OF:])) if sizes else None


def is_incident(size: int, usual: float | None, rules: Rules) -> bool:
    """Whether so many tests that turned red or flaky at once are one incident. `usual`: of earlier runs; where none is
    known, many are one."""
    return size >= rules.incident_least and size >= rules.incident_times * (usual or 0)


def aggregated(files: dict[int, str], rules: Rules) -> dict[str, list[int]]:
    """Of tests that enter at once, by their files, those that become one record: more of one file than may stand alone.
    Tests without a file stay alone."""
    count = Counter(file for file in files.values() if file)
    many = {file for file, tests in count.items() if tests > rules.aggregate_over}
    return {file: sorted(test for test, of in files.items() if of == file) for file in sorted(many)}


@dataclass(frozen=True)
class Entry:
    """Tests that enter as one record, with what each one's flakes come to. `file`: '' for a test that stands alone."""

    file: str
    tests: dict[int, Seen]


def entering(
    flakes: Mapping[int, Sequence[Flake]], files: Mapping[int, str], rules: Rules, at: datetime.datetime
) -> list[Entry]:
    """What the rules make of all flakes of one platform and variant, by test. `files`: of the tests that may enter."""
    found = {test: seen(of, rules, at) for test, of in sorted(flakes.items()) if test in files}
    flaky = {test: one for test, one in found.items() if one.is_flaky}
    together = aggregated({test: files[test] for test in flaky}, rules)
    many = [Entry(file, {test: flaky[test] for test in tests}) for file, tests in together.items()]
    return many + [Entry("", {test: one}) for test, one in flaky.items() if files[test] not in together]


# --- leaving ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ran:
    """One executed run of a quarantined test. `place`: of its commit on main, None where it is not known."""

    at: datetime.datetime
    is_red: bool
    place: int | None
    is_flaky: bool = False


@dataclass(frozen=True)
class Proof:
    """How far a release is proven. `words` say what is missing, '' when nothing is."""

    passes: int
    needed: int
    reds: int
    hours: float
    hours_needed: float
    words: str

    @property
    def is_whole(self) -> bool:
        return not self.words


def proof(
    runs: Iterable[Ran], rules: Rules, *, fixed_at: int | None, changed_at: datetime.datetime, at: datetime.datetime
) -> Proof:
    """Executed passes on commits after the fix (`fixed_at`: its place on main; None: nobody named a fix, so after the
    quarantine's own commit counts as what the caller passed). Commit order counts, not arrival: a red on an older
    commit is no red, and a run whose commit has no known place proves nothing."""
    counted = [ran for ran in runs if ran.place is not None and (fixed_at is None or ran.place >= fixed_at)]
    last_red = max((ran.place for ran in counted if (ran.is_red or ran.is_flaky) and ran.place is not None), default=-1)
    passes = [ran for ran in counted if not ran.is_red and not ran.is_flaky and (ran.place or 0) > last_red]
    reds = sum(ran.is_red or ran.is_flaky for ran in counted)
    hours = (max(r.at for r in passes) - min(r.at for r in passes)) / _HOUR if passes else 0.0
    quiet = (at - changed_at) / _HOUR
    missing = []
    if len(passes) < rules.leave_passes:
        missing.append(f"{rules.leave_passes - len(passes):,} more executed passes")
    if hours < rules.leave_span:
        missing.append(f"passes spread over {(rules.leave_span - hours) / _DAY:.1f} more days")
    if quiet < rules.leave_quiet:
        missing.append(f"{(rules.leave_quiet - quiet) / _DAY:.1f} more days without a change")
    return Proof(len(passes), rules.leave_passes, reds, hours, rules.leave_span, "; ".join(missing))


# --- life ---------------------------------------------------------------------------------------------------------

# The whole life: (state, verb) → state. What is not here is refused.
TRANSITIONS: dict[tuple[State, Verb], State] = {
    (State.UNCLEAR, Verb.NAME_PLATFORM): State.PROPOSED,
    (State.UNCLEAR, Verb.DECLINE): State.DECLINED,
    (State.PROPOSED, Verb.PUT_IN_FORCE): State.IN_FORCE,
    (State.PROPOSED, Verb.DECLINE): State.DECLINED,
    (State.IN_FORCE, Verb.RENEW): State.IN_FORCE,
    (State.IN_FORCE, Verb.PROPOSE_RELEASE): State.RELEASE_PROPOSED,
    (State.RELEASE_PROPOSED, Verb.KEEP): State.IN_FORCE,
    (State.RELEASE_PROPOSED, Verb.RELEASE): State.RELEASED,
    (State.RELEASED, Verb.REOPEN): State.PROPOSED,
    **{
        (state, verb): end
        for state in (State.IN_FORCE, State.RELEASE_PROPOSED)
        for verb, end in ((Verb.EXPIRE, State.EXPIRED), (Verb.VANISH, State.VANISHED), (Verb.BREAK, State.BROKEN))
    },
}
# A failure is listed apart while its quarantine is in one of these.
EFFECTIVE = (State.IN_FORCE, State.RELEASE_PROPOSED)
OPEN = (State.UNCLEAR, State.PROPOSED, *EFFECTIVE)
ENDED = tuple(state for state in State if state not in OPEN)


def next_state(state: State, verb: Verb) -> State | None:
    """What a verb makes of a quarantine in this state; None where it may not be done."""
    return TRANSITIONS.get((state, verb))


def verbs_in(state: State) -> list[Verb]:
    """What may be done in a state."""
    return [verb for (of, verb) in TRANSITIONS if of == state]


def cap(tests: int, rules: Rules) -> int:
    """How many tests may be in force at once where the last report had so many."""
    return max(int(tests * rules.cap_share), rules.cap_least)


def budget(tests: int, rules: Rules) -> int:
    """How many test-days a platform and variant may use within the budget's window."""
    return cap(tests, rules) * rules.budget_days


# Words that name no platform: they never mean all platforms.
PLACEHOLDERS = frozenset(
    {"", "all", "any", "unknown", "n/a", "none", "null", "*", "tbd", "todo", "other", "privateuse1"}
)
