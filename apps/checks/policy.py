"""Which check runs there are, and what they say: tables and pure functions. /policy/ prints the tables.

Source: docs/protocol.md, "Check runs".
"""

import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apps.checks.enums import CheckStatus, NeutralEnd, Scope
from apps.platforms.policy import CHECKS_FROM, LEVELS, MATURE, STABLE
from apps.relay.checknames import one_line, state_of
from apps.relay.enums import Bucket
from apps.relay.policy import CHECKS_LABEL

# GitHub takes a title of this many characters, and a summary of this many.
MOST_TITLE = 255
MOST_SUMMARY = 65_535

# How long a repository that was sent an event is still expected to answer: as long as upstream's relay keeps its state.
ANSWERS_AWAITED = datetime.timedelta(days=3)
# A second click on “re-run” within this time means the first: until then the new attempt has not spoken yet.
RERUN_ABSORBED = datetime.timedelta(minutes=10)


@dataclass(frozen=True)
class CheckRule:
    """One case of when a check run opens, changes or closes, as /policy/ prints it."""

    when: str
    then: str


RULES: tuple[CheckRule, ...] = (
    CheckRule("a job begins or ends, repository at L4", "its check run says so, on every pull request"),
    CheckRule("a job begins or ends, repository at L3", "its check run says so, where the label asks for it"),
    CheckRule("the label comes before, during or after the run", "the check run says what the job's state is"),
    CheckRule("the label is removed, or the level falls below what asks", "an open check run ends as neutral"),
    CheckRule("the level rises to where check runs are", "its running jobs have theirs from then on"),
    CheckRule("the pull request is closed", "no check run opens any more; open ones end with their jobs"),
    CheckRule("the pull request is reopened", "its labels are read again, and new jobs open new check runs"),
    CheckRule("the label comes to an open one, and no results are kept or awaited", "one neutral check run says so"),
    CheckRule("its job is held, under a new owner", "an open check run ends as neutral, until that owner is accepted"),
    CheckRule("the repository is renamed", "its check runs of a commit that has some keep the name they began with"),
    CheckRule("several legs share a job name", "one check run: open while any runs, then the worst"),
    CheckRule("a job of a nightly, periodic or push event", "never a check run"),
    CheckRule("“re-run” on a check run, L3 or L4", "that run's failed jobs are run again, once"),
    CheckRule("“re-run” on all checks, L3 or L4", "each run is run again, once"),
    CheckRule(
        "“re-run”, of a build on Buildkite", "refused, and the check run says so: builds are started again there"
    ),
    CheckRule("“re-run”, below L3", "refused, and the check run says why"),
)


# --- who asks for check runs ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Told:
    """What one webhook tells of a pull request. `label` is the one that it is about, `devices` all that are there."""

    at: datetime.datetime
    action: str
    is_open: bool
    devices: frozenset[str]
    label: str | None = None


@dataclass(frozen=True)
class Wish:
    """What is known of one head of a pull request."""

    at: datetime.datetime
    is_open: bool
    devices: frozenset[str]


def wish_after(known: Wish | None, told: Told) -> Wish | None:
    """What is known after a webhook; None where it is older than what is known.

    GitHub's times are whole seconds, and webhooks overtake each other. A later one tells everything. Of two in the same
    second the one that came last decides about its own label only, so that neither undoes what the other did.
    """
    if known is None or told.at > known.at:
        return Wish(told.at, told.is_open, _with_own(told.devices, told))
    if told.at < known.at:
        return None
    if told.label is not None:
        return Wish(known.at, known.is_open, _with_own(known.devices, told))
    return Wish(known.at, told.is_open, known.devices)


def _with_own(devices: frozenset[str], told: Told) -> frozenset[str]:
    own = frozenset({told.label} if told.label else ())
    return devices - own if told.action == "unlabeled" else devices | own


# --- what a check run says --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Leg:
    """One job, as far as its check run tells of it."""

    job_pk: int
    bucket: Bucket
    conclusion: str
    run_id: str
    run_attempt: int
    pr_number: int
    failed: int | None
    total: int | None
    counts: str
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Wanted:
    """What a check run is to say."""

    job_pk: int | None
    pr_number: int
    run_id: str
    run_attempt: int
    status: CheckStatus
    conclusion: str
    title: str
    summary: str

    @property
    def run(self) -> str:
        """One attempt of one run."""
        return f"{self.run_id}/{self.run_attempt}"


def code(text: str) -> str:
    """A downstream's text as Markdown shows it and never reads it."""
    return f"`{one_line(text).replace('`', chr(0x2019)).replace('|', chr(0x2502)) or '–'}`"


def cause_of(leg: Leg) -> str:
    """Why a job ended as it did, in a few words."""
    match leg.bucket:
        case Bucket.SUCCESS:
            return "Passed"
        case Bucket.FAILURE:
            return f"{leg.failed:,} of {leg.total:,} tests failed" if leg.failed and leg.total else "Failed"
        case Bucket.CONTRADICTED if leg.failed:
            return f"It says success, and reports {leg.failed:,} failed tests"
        case Bucket.CONTRADICTED:
            return "It says success, and another record says otherwise"
        case Bucket.TIMED_OUT:
            return "Timed out"
        case Bucket.CANCELLED:
            return "Cancelled"
        case Bucket.IN_PROGRESS:
            return "Running"
        case _:
            return f"Ended as {one_line(leg.conclusion)}"


def worst_first(legs: Iterable[Leg], order: Sequence[Bucket]) -> list[Leg]:
    """Legs by what they say; of equals the highest attempt, then the newest."""
    return sorted(legs, key=lambda leg: (order.index(leg.bucket), -leg.run_attempt, -leg.job_pk))


def wanted_of(legs: Iterable[Leg], *, order: Sequence[Bucket], full_name: str, level: int, name: str) -> Wanted:
    """What one check run says of the legs that share its name (at least one): open while any of them runs, then the
    worst, which it leads to."""
    ranked = worst_first(legs, order)
    running = [leg for leg in ranked if leg.bucket is Bucket.IN_PROGRESS]
    leader = (running or ranked)[0]
    worst = next((leg for leg in ranked if leg.bucket is not Bucket.IN_PROGRESS), leader)
    cause = cause_of(worst) if worst is leader else f"{cause_of(worst)}, {len(running):,} still running"
    remarks = [*leader.remarks]
    rows = [
        ("Repository", code(full_name)),
        ("Check", code(name)),
        ("Run", f"{code(leader.run_id)}, attempt {leader.run_attempt}"),
        ("Tests", worst.counts),
        *([("Legs", f"{len(ranked):,}, of which {len(running):,} running")] if len(ranked) > 1 else []),
        *([("Remarks", "; ".join(remarks))] if remarks else []),
        ("Level", f"{LEVELS[level].code} {LEVELS[level].name}; blocks a merge: {LEVELS[level].blocks}"),
    ]
    table = "\n".join(["| | |", "|---|---|", *(f"| {head} | {cell} |" for head, cell in rows)])
    return Wanted(
        job_pk=leader.job_pk,
        pr_number=leader.pr_number,
        run_id=leader.run_id,
        run_attempt=max(leg.run_attempt for leg in ranked),
        status=CheckStatus.IN_PROGRESS if running else CheckStatus.COMPLETED,
        conclusion="" if running else state_of(leg.bucket for leg in ranked),
        title=_cut(cause, MOST_TITLE),
        summary=_cut(f"**{cause}.**\n\n{table}\n\nReported by the repository itself.", MOST_SUMMARY),
    )


@dataclass(frozen=True)
class NeutralRow:
    """Why the hub itself ends a check run as neutral: the case, its title (a heading, `{level}` is the repository's),
    and what comes next."""

    when: str
    title: str
    then: str

    @property
    def pattern(self) -> str:
        """The title as /policy/ prints it."""
        return self.title.format(level="<level>")


_NO_VERDICT = "This check run ended without a verdict on the change."
NEUTRAL_ENDS: dict[NeutralEnd, NeutralRow] = {
    NeutralEnd.LEVEL: NeutralRow(
        "the level has no check runs any more",
        "The repository is at {level} now, which has no check runs",
        _NO_VERDICT,
    ),
    NeutralEnd.LABEL: NeutralRow(
        "the label is gone",
        f"At {{level}} a check run needs its label {CHECKS_LABEL}<device>, and it is not there",
        _NO_VERDICT,
    ),
    NeutralEnd.HELD: NeutralRow(
        "its job was taken over by a new owner of the repository, and is held",
        "The job was reported under a new owner of the repository, whom nobody has accepted",
        f"{_NO_VERDICT} Where the hub's maintainers accept that owner, it says what the job says.",
    ),
    NeutralEnd.RESULTS_GONE: NeutralRow(
        "no results are kept",
        "The hub keeps no results of this repository for this commit",
        "Push a commit, or close and reopen the pull request: then the event is sent anew.",
    ),
}


def neutral_words(end: NeutralEnd, level: int) -> tuple[str, str]:
    """Title and summary of a check run that the hub ends as neutral."""
    row, at = NEUTRAL_ENDS[end], LEVELS[level]
    title = row.title.format(level=f"{at.code} {at.name}")
    return title, f"**{title}.**\n\n{row.then}"


def is_new_run(*, sent_status: str, sent_run: str, status: str, run: str) -> bool:
    """Whether GitHub needs a new check run rather than a change of the one it has: a completed one does not open
    again, and keeps what it said of its own run."""
    if not sent_status:
        return True
    return sent_status == CheckStatus.COMPLETED and (status != CheckStatus.COMPLETED or run != sent_run)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# --- re-runs ----------------------------------------------------------------------------------------------------

SCOPES = {"check_run": Scope.FAILED_JOBS, "check_suite": Scope.WHOLE_RUN}
_ALREADY_RUNNING = re.compile("already running", re.IGNORECASE)


def refuse_rerun(level: int, run_id: str, *, is_of_buildkite: bool) -> str | None:
    """Why “re-run” is not passed on, as a sentence; None where it is."""
    if level < CHECKS_FROM:
        return f"Re-runs are for {LEVELS[STABLE].code} and {LEVELS[MATURE].code}: it is at {LEVELS[level].code} now."
    if not run_id:
        return f"No run is known that could be run again. {NEUTRAL_ENDS[NeutralEnd.RESULTS_GONE].then}"
    if is_of_buildkite:
        return f"Build {run_id} ran on Buildkite, where GitHub starts nothing: it is started again there."
    return None


def is_already_running(status: int, words: str) -> bool:
    """Whether GitHub refuses a re-run because the run is not over: then what was asked for happens anyway."""
    return status == 403 and _ALREADY_RUNNING.search(words) is not None
