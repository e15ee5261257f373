"""What the gate answers, pure: facts of one commit and a policy → requirements → verdict.

Each rule has its row in RULES, which docs/gate.md prints, and its test. Only repositories that block (L4 at that time)
decide; everything else is told and decides nothing. What is not known is unknown, never green.
"""

import datetime
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from apps.gate.enums import BaseState, Effect, Kind, RowKind, Verdict
from apps.platforms.policy import LEVELS
from apps.policies.policy import Act, Policy
from apps.relay.enums import Bucket

# Outcomes of a job beside those of relay's buckets.
UNKNOWN, UNHEARD, UNEXPECTED, INFORMATIONAL = "unknown", "unheard", "unexpected", "informational"

RULES: dict[str, str] = {
    "only_l4_blocks": "A repository blocks while it is at L4; at L2 and L3 its part is informational. L1 is private.",
    "newest_counts": "Of the runs of one check the newest by time counts, with each job's newest attempt.",
    "running_beats_finished": "A run that goes on beats an older one that has ended, until the wait for it is over.",
    "failure_wins_a_tie": "Where several count equally, the worst says what the check says.",
    "silence_is_recorded": "A part that was not heard is missing, and says so, also once it passes.",
    "missing_names_the_nearest": "A part that never came names the nearest commit where it did.",
    "outcomes_are_policy": "Whatever is neither success nor failure is handled as the policy's row says.",
    "named_tests_decide": "A failure counts by the tests that its reports name; without any it is “no tests named”.",
    "quarantine_excuses": "A red test that was in quarantine when its result came is excused, and listed.",
    "base_excuses": "A red test with the same failure at the merge base, or its nearest tested ancestor, is excused; "
    "where its check has ended nearer without a report, the base is unknown.",
    "base_unknown_excuses_nothing": "A red test of which nothing near the merge base is known is handled by its row.",
    "other_failure_is_new": "A test that was red at the base in another way is red anew.",
    "a_cut_list_excuses_nothing": "A failure whose list of red tests is not whole is not excused by those it names.",
    "platforms_strengthen": "The same failure, new there too, on other platforms stands against the change, and "
    "excuses nothing. Upstream's own count, and those at L3 or above that no organisation of this one speaks for.",
    "late_cannot_launder": "An answer is late only where its check had no other end in time.",
    "held_is_not_heard": "What a new owner sends is not heard before somebody accepts that owner.",
    "unknown_is_never_green": "What the hub cannot know as of the asked moment makes the verdict unknown, unless it is"
    " fail.",
    "overrides_let_pass": "An override in force lets its repository's part pass, and says what it hides.",
    "breaker_silences": "While its breaker is open, a repository's part is informational.",
    "confirmed_still_blocks": "A new failure that another platform has too goes on blocking while the breaker is open.",
}

# The worst effect is the verdict.
VERDICTS: dict[Effect, Verdict] = {
    Effect.PASSES: Verdict.PASS,
    Effect.WAITS: Verdict.PENDING,
    Effect.UNKNOWN: Verdict.UNKNOWN,
    Effect.BLOCKS: Verdict.FAIL,
}
SEVERITY = list(VERDICTS)

# --- facts ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One thing behind a requirement. `url` is a path on this hub."""

    kind: RowKind
    label: str
    url: str


@dataclass(frozen=True)
class RedTest:
    """A red test of a report: by what it is quarantined, what the base says and where, on how many other platforms the
    same failure stands at this commit."""

    row: Row
    quarantine: Row | None = None
    base: BaseState = BaseState.UNKNOWN
    base_row: Row | None = None
    elsewhere: int = 0


@dataclass(frozen=True)
class JobFact:
    """A job as it stood: `outcome` is a bucket, or one of the words above. Of a failure `reports` are those it sent
    and `tests` what they name as red; `is_whole`: no red test of it is left out of them."""

    number: int
    name: str
    run: str
    attempt: int
    outcome: str
    began_at: datetime.datetime
    ended_at: datetime.datetime | None
    row: Row
    reports: tuple[Row, ...] = ()
    tests: tuple[RedTest, ...] = ()
    is_whole: bool = True


@dataclass(frozen=True)
class Override:
    """A maintainer's override that holds."""

    row: Row
    by: str
    reason: str
    until: datetime.datetime


@dataclass(frozen=True)
class Breaker:
    """An open breaker of the repository."""

    row: Row
    since: datetime.datetime
    why: str


@dataclass(frozen=True)
class Part:
    """What a repository has to do with the commit. `sent_at`: when the hub sent it the event, None where it did not;
    `asked_at`: when upstream's event came. `left_out`: why it takes no part. `nearest`: where it was heard last."""

    repository: str
    level: int
    blocks: bool
    asked_at: datetime.datetime
    sent_at: datetime.datetime | None = None
    left_out: str = ""
    jobs: tuple[JobFact, ...] = ()
    held: int = 0
    nearest: Row | None = None
    override: Override | None = None
    breaker: Breaker | None = None


@dataclass(frozen=True)
class Facts:
    """All that the gate looks at for one commit, as it stood at a moment."""

    sha: str
    pr_number: int | None
    parts: tuple[Part, ...]


# --- answers ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Requirement:
    """One requirement of the gate: what it is, what it does to the verdict, one plain sentence, the rows behind it.
    `outcome`: the policy's row that decided, '' where none was asked. `is_confirmed`: another platform has the failure
    too. `late_outcome`: of an answer that came late, the row that would have decided in time."""

    type: Kind
    effect: Effect
    repository: str
    level: int
    sentence: str
    rows: tuple[Row, ...] = ()
    outcome: str = ""
    is_confirmed: bool = False
    late_outcome: str = ""


@dataclass(frozen=True)
class Answer:
    """What the gate says of one commit."""

    verdict: Verdict
    requirements: tuple[Requirement, ...]


def answer(facts: Facts, policy: Policy, at: datetime.datetime) -> Answer:
    """The verdict about a commit at a moment, with its reasons: those that block first."""
    found = [one for part in facts.parts for one in requirements_of(part, policy, at)]
    found.sort(key=lambda one: (-SEVERITY.index(one.effect), -one.level, one.repository, list(Kind).index(one.type)))
    return Answer(VERDICTS[worst(one.effect for one in found)], tuple(found))


def worst(effects: Iterable[Effect]) -> Effect:
    """The worst of several effects; of none, passing: nobody blocks."""
    return max(effects, key=SEVERITY.index, default=Effect.PASSES)


def requirements_of(part: Part, policy: Policy, at: datetime.datetime) -> list[Requirement]:
    """What one repository's part asks for, at least one requirement."""
    if not part.blocks:
        return [_told(part)]
    own = own_requirements(part, policy, at)
    if part.breaker is not None and part.override is None:
        confirmed = [one for one in own if one.is_confirmed]
        return [_silenced(part, part.breaker, [one for one in own if not one.is_confirmed]), *confirmed]
    if part.override is not None:
        return [_overridden(part, part.override, own)]
    return own


def part_effect(requirements: Sequence[Requirement]) -> Effect:
    """What a part's requirements together do."""
    return worst(one.effect for one in requirements)


# --- one part ---------------------------------------------------------------------------------------------------


def _told(part: Part) -> Requirement:
    """A part that does not block, in a few words."""
    code = LEVELS[part.level].code
    if part.left_out:
        sentence = f"Not sent: {part.left_out}"
    else:
        counts: dict[str, int] = defaultdict(int)
        for job in current(part.jobs):
            counts[job.outcome] += 1
        said = ", ".join(f"{count} {_word(outcome)}" for outcome, count in sorted(counts.items()))
        sentence = f"{said}; {code} never blocks." if said else f"Nothing heard; {code} never blocks."
    rows = tuple(job.row for job in current(part.jobs))
    return Requirement(Kind.INFORMATIONAL, Effect.PASSES, part.repository, part.level, sentence, rows)


def _silenced(part: Part, breaker: Breaker, own: list[Requirement]) -> Requirement:
    sentence = f"Breaker open since {_minute(breaker.since)}: {breaker.why} Blocks nothing. {_hidden(own)}"
    rows = (breaker.row, *_rows_of(own))
    return Requirement(Kind.INFORMATIONAL, Effect.PASSES, part.repository, part.level, sentence, rows)


def _overridden(part: Part, override: Override, own: list[Requirement]) -> Requirement:
    sentence = f"Overridden by {override.by} until {_minute(override.until)}: {override.reason} {_hidden(own)}"
    rows = (override.row, *_rows_of(own))
    return Requirement(Kind.OVERRIDDEN, Effect.PASSES, part.repository, part.level, sentence, rows)


def _hidden(own: list[Requirement]) -> str:
    if not own:
        return "What another platform confirms still counts."
    leading = max(own, key=lambda one: SEVERITY.index(one.effect))
    return f"Without that it {leading.effect}: {leading.sentence}"


def _rows_of(found: Iterable[Requirement]) -> tuple[Row, ...]:
    return tuple(row for one in found for row in one.rows)


@dataclass(frozen=True)
class _Case:
    """A part and the rules that are put to it."""

    part: Part
    policy: Policy
    at: datetime.datetime

    @property
    def since(self) -> datetime.datetime:
        """From when its waits are counted: the hub's dispatch, else upstream's event."""
        return self.part.sent_at or self.part.asked_at

    def deadline(self, outcome: str) -> datetime.datetime | None:
        """Until when the gate waits for the part, by this row; None where it does not wait and then pass."""
        row = self.policy.handling[outcome]
        if row.act is not Act.WAIT or row.then is not Act.PASS:
            return None
        return self.since + datetime.timedelta(hours=row.hours)

    def effect(self, outcome: str, since: datetime.datetime) -> tuple[Effect, str]:
        """What the policy's row does with an outcome that is there since then, and the words for it."""
        row = self.policy.handling[outcome]
        act = row.act
        if act is Act.WAIT:
            until = since + datetime.timedelta(hours=row.hours)
            if self.at < until:
                return Effect.WAITS, f"awaited until {_minute(until)}"
            assert row.then is not None, "checked when the policy was read"
            act = row.then
        if act is Act.BLOCK:
            return Effect.BLOCKS, "blocks, by policy"
        return Effect.PASSES, "passes, by policy; recorded here"

    def says(
        self, kind: Kind, effect: Effect, sentence: str, rows: Iterable[Row] = (), outcome: str = ""
    ) -> Requirement:
        kind = Kind.PENDING if effect is Effect.WAITS else kind
        return Requirement(kind, effect, self.part.repository, self.part.level, sentence, tuple(rows), outcome)

    def handled(
        self, kind: Kind, outcome: str, since: datetime.datetime, what: str, rows: Iterable[Row] = ()
    ) -> Requirement:
        effect, words = self.effect(outcome, since)
        return self.says(kind, effect, f"{what}: {words}.", rows, outcome)


def own_requirements(part: Part, policy: Policy, at: datetime.datetime) -> list[Requirement]:
    """What a part that blocks asks for, without what lets it pass anyway."""
    case = _Case(part, policy, at)
    if part.left_out:
        return [case.says(Kind.EXCLUDED, Effect.PASSES, f"Not sent: {part.left_out}")]
    deadline = case.deadline("running")
    is_over = deadline is not None and at >= deadline
    counting = [job for job in current(part.jobs, only_ended=is_over) if job.outcome != INFORMATIONAL]
    if not counting:
        return [_unheard(case)]
    late = [job for job in counting if _is_late(job, case)]
    found = _judged(case, [job for job in counting if job not in late])
    for one in _judged(case, late):
        effect, words = case.effect("late", case.since)
        softer = min(one.effect, effect, key=SEVERITY.index)
        sentence = f"Late: {one.sentence}" if softer is one.effect else f"Late, so it {words}: {one.sentence}"
        found.append(replace(one, effect=softer, sentence=sentence, outcome="late", late_outcome=one.outcome))
    return found


def _unheard(case: _Case) -> Requirement:
    part = case.part
    if part.sent_at is None and not part.held:
        return case.handled(Kind.MISSING, "undispatched", part.asked_at, "The hub has not sent it the event")
    held = f"{_many(part.held, 'job')} came under a new owner and {'is' if part.held == 1 else 'are'} held"
    what = held if part.held else "No job of it was heard for this commit"
    if part.nearest is not None:
        what += f"; it was heard last at {part.nearest.label}"
    return case.handled(Kind.MISSING, "missing", case.since, what, [part.nearest] if part.nearest else [])


def _is_late(job: JobFact, case: _Case) -> bool:
    """Whether an answer came after the wait for it, and its check had none in time. A success never is late."""
    if job.ended_at is None or job.outcome == Bucket.SUCCESS:
        return False
    running, missing = case.deadline("running"), case.deadline("missing")
    is_after = (running is not None and job.ended_at > running) or (missing is not None and job.began_at > missing)
    if not is_after:
        return False
    in_time = running or missing
    return not any(
        other.name == job.name and other.ended_at is not None and in_time is not None and other.ended_at <= in_time
        for other in case.part.jobs
    )


# What a job's outcome is called in the policy, what requirement it makes, and how it is said.
_HANDLED: dict[str, tuple[str, Kind, str]] = {
    Bucket.IN_PROGRESS: ("running", Kind.MISSING, "running"),
    UNHEARD: ("running", Kind.MISSING, "silent while the hub was out"),
    Bucket.TIMED_OUT: ("timed_out", Kind.ERRORED, "timed out"),
    Bucket.CANCELLED: ("cancelled", Kind.ERRORED, "cancelled"),
    Bucket.NEUTRAL: ("neutral", Kind.ERRORED, "skipped or neutral"),
    Bucket.CONTRADICTED: ("contradicted", Kind.ERRORED, "a success that is contradicted"),
    UNEXPECTED: ("unexpected", Kind.UNSATISFIED, "ended otherwise than declared"),
}


def _judged(case: _Case, jobs: list[JobFact]) -> list[Requirement]:
    """What these jobs, which count, ask for."""
    by_outcome: dict[str, list[JobFact]] = defaultdict(list)
    for job in sorted(jobs, key=lambda job: (job.name, job.number)):
        by_outcome[job.outcome].append(job)
    found = []
    for outcome, them in sorted(by_outcome.items()):
        rows = [job.row for job in them]
        if outcome == Bucket.SUCCESS:
            found.append(case.says(Kind.SATISFIED, Effect.PASSES, f"{_many(len(them), 'job')} passed.", rows))
        elif outcome == Bucket.FAILURE:
            found += _failed(case, them)
        elif outcome == UNKNOWN:
            what = f"What {_many(len(them), 'job')} said at that moment is not known any more."
            found.append(case.says(Kind.ERRORED, Effect.UNKNOWN, what, rows))
        else:
            name, kind, words = _HANDLED[outcome]
            since = case.since if name == "running" else max(job.ended_at or job.began_at for job in them)
            found.append(case.handled(kind, name, since, f"{_many(len(them), 'job')} {words}", rows))
    return found


def _failed(case: _Case, jobs: list[JobFact]) -> list[Requirement]:
    """Failures, by the red tests that their reports name."""
    found = []
    unnamed = [job for job in jobs if not job.tests or not job.is_whole]
    if unnamed:
        since = max(job.ended_at or job.began_at for job in unnamed)
        what = f"{_many(len(unnamed), 'job')} failed, and no report names all tests that did"
        rows = [row for job in unnamed for row in (job.row, *job.reports)]
        found.append(case.handled(Kind.ERRORED, "no_tests_named", since, what, rows))
    tests = list(dict.fromkeys(test for job in jobs for test in job.tests))
    quarantined = [test for test in tests if test.quarantine is not None]
    others = [test for test in tests if test.quarantine is None]
    before = [test for test in others if test.base is BaseState.SAME]
    unknown = [test for test in others if test.base is BaseState.UNKNOWN]
    new = [test for test in others if test.base in (BaseState.GREEN, BaseState.OTHER)]
    if new:
        what = f"{_many(len(new), 'new failure')} of {_many(len(tests), 'red test')}.{_strengthened(new)}"
        one = case.says(Kind.UNSATISFIED, Effect.BLOCKS, what, _test_rows(new))
        found.append(replace(one, is_confirmed=any(test.elsewhere for test in new)))
    if unknown:
        what = f"{_many(len(unknown), 'red test')} of which the base is unknown"
        ended = max(job.ended_at or job.began_at for job in jobs)
        one = case.handled(Kind.UNSATISFIED, "base_unknown", ended, what, _test_rows(unknown))
        found.append(replace(one, is_confirmed=any(test.elsewhere for test in unknown)))
    if quarantined:
        what = f"{_many(len(quarantined), 'red test')} in quarantine when the result came."
        found.append(case.says(Kind.QUARANTINED, Effect.PASSES, what, _test_rows(quarantined)))
    if before:
        what = f"{_many(len(before), 'red test')} with the same failure at the base already."
        found.append(case.says(Kind.EXCLUDED, Effect.PASSES, what, _test_rows(before)))
    return found


def _strengthened(new: list[RedTest]) -> str:
    shared = [test for test in new if test.elsewhere]
    if not shared:
        return ""
    most = max(test.elsewhere for test in shared)
    verb = "has" if len(shared) == 1 else "have"
    return (
        f" {len(shared)} of them {verb} the same failure on {_many(most, 'more platform')}: this points to the change."
    )


def _test_rows(tests: list[RedTest]) -> list[Row]:
    return list(
        dict.fromkeys(row for test in tests for row in (test.row, test.quarantine, test.base_row) if row is not None)
    )


# --- which jobs count -------------------------------------------------------------------------------------------


def current(jobs: Iterable[JobFact], *, only_ended: bool = False) -> list[JobFact]:
    """Of each check the jobs that count, whatever the order they came in: the newest run's, by its newest attempts.
    `only_ended`: what still runs gives way to an older end where there is one."""
    jobs = list(jobs)
    if len({job.name for job in jobs}) == len(jobs):
        return sorted(jobs, key=lambda job: (job.name, job.number))  # as most commits are: nothing to choose from
    by_name: dict[str, dict[str, list[JobFact]]] = defaultdict(lambda: defaultdict(list))
    for job in jobs:
        by_name[job.name][job.run].append(job)
    found: list[JobFact] = []
    for runs in by_name.values():
        states = [state for legs in runs.values() for state in _states(legs)]
        ended = [state for state in states if all(job.ended_at for job in state.standing)]
        chosen = ended if only_ended and ended else states
        newest = max(state.began_at for state in chosen)
        of_runs = {state.run: state for state in chosen if state.began_at == newest}
        found += [job for state in of_runs.values() for job in state.standing]
    return sorted(found, key=lambda job: (job.name, job.number))


@dataclass(frozen=True)
class _State:
    """What stands of one run's check after one of its attempts."""

    run: str
    began_at: datetime.datetime
    standing: tuple[JobFact, ...]


def _states(legs: list[JobFact]) -> list[_State]:
    """The n legs of an attempt take the place of n that stand: those without success first, of them the oldest. The
    same as apps/relay/superseding.py, which says it over all that is known now."""
    attempts: dict[int, list[JobFact]] = defaultdict(list)
    for leg in legs:
        attempts[leg.attempt].append(leg)
    states, standing = [], list[JobFact]()
    for _, new in sorted(attempts.items()):
        standing.sort(key=lambda job: (job.outcome == Bucket.SUCCESS, job.attempt, job.number))
        standing = standing[len(new) :] + new
        states.append(_State(new[0].run, max(job.began_at for job in new), tuple(standing)))
    return states


# --- words ------------------------------------------------------------------------------------------------------


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _word(outcome: str) -> str:
    return outcome.replace("_", " ")


def _minute(moment: datetime.datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
