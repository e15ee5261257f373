"""A platform in upstream's own tree: a job of upstream's tests each push to main, and tells what the same tests did
there, as pytest-reportlog writes it.
"""

import json
from collections.abc import Iterator
from typing import Any

from apps.simulator.chance import chance
from apps.simulator.junit import Ended, ended, seconds_of
from apps.simulator.plan import RUN_IDS, Job

SLUG, NAME, DEVICE = "cpu", "CPU", "cpu"
WORKFLOW, WORKFLOW_FILE = "linux-cpu", ".github/workflows/linux-cpu.yml"
REF = "refs/heads/main"
JOB = "test-cpu"
TESTS = 460
_SKIPPED = 14
_RED_RATE = 0.3
# How long after the push, in the live demo.
AFTER_SECONDS = 20.0


def baseline_job(repository: str, sha: str, *, seed: int) -> Job:
    """The job about one commit of main. Now and then a few tests are red there too."""
    rng = chance(seed, "baseline", sha)
    failed = rng.randint(1, 3) if rng.random() < _RED_RATE else 0
    counts = {"total": TESTS, "failed": failed, "skipped": _SKIPPED, "passed": TESTS - failed - _SKIPPED}
    return Job(
        repository=repository,
        workflow=WORKFLOW,
        client_payload={"event_type": "push", "payload": {"head_sha": sha}},
        run_id=str(rng.randrange(*RUN_IDS["github"])),
        run_attempt=1,
        job_name=JOB,
        check_run_id="",
        wait_seconds=0.0,
        run_seconds=0.0,
        conclusion="failure" if failed else "success",
        test_results=counts,
        artifact_url=None,
        uploads=True,
    )


def baseline_meta(job: Job) -> dict[str, Any]:
    """What the upload says about itself: no delivery names it, the commit does."""
    return {
        "event_type": "push",
        "head_sha": job.client_payload["payload"]["head_sha"],
        "run_id": job.run_id,
        "run_attempt": job.run_attempt,
        "workflow": job.workflow,
        "job_name": job.job_name,
        "platform": SLUG,
    }


def reportlog(job: Job) -> bytes:
    """The job's tests as pytest-reportlog's JSON lines: one for each phase."""
    rows: list[dict[str, Any]] = [{"pytest_version": "8.4.0", "$report_type": "SessionStart"}]
    for one in ended(job):
        rows += _phases(one)
    rows.append({"exitstatus": 1 if job.conclusion == "failure" else 0, "$report_type": "SessionFinish"})
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def _phases(one: Ended) -> Iterator[dict[str, Any]]:
    case = one.case
    name = f"{case.file}::{case.class_name}{DEVICE.upper()}::{case.name}_{DEVICE}_{case.dtype}"
    words: Any = one.words or None
    outcome, more = one.how, {}
    if outcome == "skipped":
        words = [case.file, 1, f"Skipped: {one.words}"] if one.words else None
        more = {} if one.words else {"wasxfail": "reason: known to fail here"}
    for when in ("setup", "call", "teardown"):
        is_call = when == "call"
        yield {
            "nodeid": name,
            "outcome": outcome if is_call else "passed",
            "longrepr": words if is_call else None,
            "when": when,
            "duration": round(seconds_of(case), 3) if is_call else 0.0,
            **(more if is_call else {}),
            "$report_type": "TestReport",
        }
