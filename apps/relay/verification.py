"""What GitHub's own record of a run says about a reported conclusion: pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from apps.core.github import RunJob
from apps.relay.enums import Verdict

SAID_MAX = 300


@dataclass(frozen=True)
class Finding:
    """A verdict with the sentence behind it. `verdict` None: GitHub has no end of this job yet, ask again."""

    verdict: Verdict | None
    said: str


def find(records: Iterable[RunJob], *, check_run_id: str, job_name: str) -> RunJob | str:
    """The record of a reported job: by its check run, else by its name where only one job of the run has it. Text says
    why there is none."""
    records = list(records)
    for record in records:
        if check_run_id and record.check_run_id == check_run_id:
            return record
    named = [record for record in records if record.name == job_name]
    if len(named) == 1:
        return named[0]
    if named:
        return f"GitHub lists {len(named)} jobs of this name in the run, and none of this check run"
    return f"GitHub lists {len(records)} jobs in the run, and none of this check run or name"


def finding_of(records: Iterable[RunJob], *, conclusion: str, check_run_id: str, job_name: str) -> Finding:
    """What GitHub's record of the run attempt makes of a reported conclusion."""
    record = find(records, check_run_id=check_run_id, job_name=job_name)
    if isinstance(record, str):
        return Finding(Verdict.UNVERIFIABLE, record)
    said = state_of(record)
    if not record.conclusion:
        return Finding(None, said)
    return Finding(Verdict.VERIFIED if record.conclusion == conclusion else Verdict.CONTRADICTED, said)


def state_of(record: RunJob) -> str:
    """A record as a sentence."""
    name = record.name if len(record.name) <= 100 else record.name[:99] + "…"
    state = f"ended as {record.conclusion}" if record.conclusion else f"is {record.status.replace('_', ' ')}"
    return f"GitHub's job “{name}” {state}"
