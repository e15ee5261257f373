"""What a dispatch leads to: every job of a character's answer, its end already decided.

The seed and the delivery id decide everything. A dispatch of the same delivery therefore leads to the same run again,
which the hub must take as a repetition.
"""

import dataclasses
import datetime
import random
from dataclasses import dataclass
from typing import Any

from apps.simulator.chance import chance
from apps.simulator.characters import Character, JobShape
from apps.simulator.reporter import callback_body, wants

# How the jobs that do not succeed end, and how often.
OTHER_ENDS = {"failure": 85, "timed_out": 10, "cancelled": 5}
# From and to which number runs are called: GitHub counts those of everyone, Buildkite each pipeline's.
RUN_IDS = {"github": (20_000_000_000, 90_000_000_000), "buildkite": (1_000, 90_000)}
# How long until someone looks at an attempt and presses the button.
RERUN_AFTER_SECONDS = (5.0, 15.0)


@dataclass(frozen=True)
class Job:
    """One job of one run attempt. Times in seconds; `wait_seconds` from the dispatch on. Without `reports_end` its
    machine dies: the start is the last that is heard of it. `true_conclusion` is GitHub's where the job lies. `leg` is
    its own business, and not reported. `is_replayed`: its end is sent again, and misused. `uploads`: it sends its
    test report first; `is_mended`: one flaky test fewer."""

    repository: str
    workflow: str
    client_payload: dict[str, Any]
    run_id: str
    run_attempt: int
    job_name: str
    check_run_id: str
    wait_seconds: float
    run_seconds: float
    conclusion: str
    test_results: dict[str, int] | None
    artifact_url: str | None
    reports_end: bool = True
    true_conclusion: str = ""
    ci: str = "github"
    leg: str = ""
    is_replayed: bool = False
    uploads: bool = False
    is_mended: bool = False

    @property
    def is_nightly(self) -> bool:
        """Whether nobody dispatched it: such a run reports its end only."""
        return bool(self.client_payload.get("event_type") == "nightly")

    @property
    def is_on_main(self) -> bool:
        """Whether a push to main started it."""
        return bool(self.client_payload.get("event_type") == "push")

    @property
    def is_on_github(self) -> bool:
        """Whether GitHub has a record of it: it knows nothing of what runs elsewhere."""
        return self.ci == "github"

    def record(self, status: str) -> dict[str, str]:
        """The job as GitHub records it when it reports `status`. It knows better than a job that lies."""
        conclusion = (self.true_conclusion or self.conclusion) if status == "completed" else ""
        return {"name": self.job_name, "check_run_id": self.check_run_id, "status": status, "conclusion": conclusion}

    def body(self, status: str, at: datetime.datetime) -> dict[str, Any]:
        """The callback for `status`, reported at `at`."""
        done = status == "completed"
        return callback_body(
            self.client_payload,
            status=status,
            conclusion=self.conclusion,
            name=self.workflow,
            url=self.url,
            run_id=self.run_id,
            run_attempt=str(self.run_attempt),
            job_name=self.job_name,
            check_run_id=self.check_run_id,
            at=at,
            test_results=self.test_results if done else None,
            artifact_url=self.artifact_url if done else None,
        )

    @property
    def url(self) -> str:
        """Where its run can be looked at."""
        if self.ci == "buildkite":
            return f"https://buildkite.com/{self.repository}/builds/{self.run_id}"
        return f"https://github.com/{self.repository}/actions/runs/{self.run_id}"

    def meta(self) -> dict[str, Any]:
        """What an upload of its test report says about itself."""
        said = {
            "event_type": self.client_payload["event_type"],
            "run_id": self.run_id,
            "run_attempt": self.run_attempt,
            "workflow": self.workflow,
            "job_name": self.job_name,
            "check_run_id": self.check_run_id,
        }
        if self.is_nightly:
            return said | {"head_sha": self.client_payload["payload"]["head_sha"]}
        return said | {"delivery_id": self.client_payload["delivery_id"]}

    def __str__(self) -> str:
        return f"{self.repository} {self.job_name} (run {self.run_id}, attempt {self.run_attempt})"


def plan(
    character: Character,
    client_payload: dict[str, Any],
    *,
    seed: int,
    pace: float = 1.0,
    days_ago: float = 0.0,
    night: str = "",
) -> list[Job]:
    """Every job that a dispatch of `days_ago` leads to, re-runs included. `pace` multiplies all times. `night`: which
    one, of a nightly run (several may be about one commit)."""
    if is_silent(character, days_ago):
        return []
    rng = chance(seed, character.full_name, night or client_payload.get("delivery_id"))
    run_id = str(rng.randrange(*RUN_IDS[character.ci]))
    queued = rng.uniform(*character.queue_seconds)
    jobs = []
    for shape in shapes_for(character, client_payload, rng):
        attempt, wait, pass_rate = 1, queued, pass_rate_at(character, days_ago)
        while True:
            job = _attempt(rng, character, shape, client_payload, run_id, attempt, wait, pass_rate)
            jobs.append(job)
            if not is_run_again(character, job, rng):
                break
            attempt, pass_rate = attempt + 1, character.rerun_pass_rate
            wait += job.run_seconds + rng.uniform(*RERUN_AFTER_SECONDS)
    is_mended = days_ago < character.mended_days
    return [
        dataclasses.replace(
            job, wait_seconds=job.wait_seconds * pace, run_seconds=job.run_seconds * pace, is_mended=is_mended
        )
        for job in jobs
    ]


# --- behaviour ------------------------------------------------------------------------------------------------------


def is_silent(character: Character, days_ago: float) -> bool:
    """Whether it has stopped answering by then."""
    return character.silent_days is not None and days_ago < character.silent_days


def answers(character: Character, event_type: str, client_payload: dict[str, Any]) -> bool:
    """Whether it runs jobs for this dispatch."""
    return not character.is_nightly_only and wants(event_type, client_payload)


def pass_rate_at(character: Character, days_ago: float) -> float:
    """The share of first attempts that passed then."""
    is_bad = character.bad_days is not None and character.bad_days[0] <= days_ago < character.bad_days[1]
    return character.bad_pass_rate if is_bad else character.pass_rate


def shapes_for(character: Character, client_payload: dict[str, Any], rng: random.Random) -> tuple[JobShape, ...]:
    """The jobs it runs for an event: now and then a push starts the flood."""
    is_flood = client_payload.get("event_type") == "push" and rng.random() < character.sweep_rate
    return character.jobs + (character.sweep if is_flood else ())


def is_run_again(character: Character, job: Job, rng: random.Random) -> bool:
    """Whether someone runs this attempt again: mostly a red or vanished one, to see whether it was merely unlucky."""
    is_green = job.conclusion == "success" and job.reports_end
    rate = character.green_rerun_rate if is_green else character.rerun_rate
    return job.run_attempt < character.most_attempts and rng.random() < rate


def _attempt(
    rng: random.Random,
    character: Character,
    shape: JobShape,
    client_payload: dict[str, Any],
    run_id: str,
    attempt: int,
    wait: float,
    pass_rate: float,
) -> Job:
    conclusion = "success"
    if rng.random() >= pass_rate:
        conclusion = rng.choices(list(OTHER_ENDS), weights=list(OTHER_ENDS.values()))[0]
    results = _test_results(rng, shape.tests, character, conclusion)
    is_forged = character.forge_rate > 0 and conclusion == "success" and rng.random() < character.forge_rate
    artifact = f"https://artifacts.{character.owner}.example/{run_id}/{attempt}/{shape.name}/"
    return Job(
        repository=character.full_name,
        workflow=character.workflow,
        client_payload=client_payload,
        run_id=run_id,
        run_attempt=attempt,
        job_name=shape.name,
        check_run_id=_check_run_id(rng, character, run_id, attempt),
        wait_seconds=wait,
        run_seconds=rng.uniform(*shape.seconds),
        conclusion=conclusion,
        test_results=results,
        artifact_url=artifact if results is not None else None,
        reports_end=rng.random() >= character.death_rate,
        true_conclusion="failure" if is_forged else "",
        ci=character.ci,
        leg=shape.leg,
        is_replayed=character.replay_rate > 0 and rng.random() < character.replay_rate,
        uploads=shape.uploads and results is not None,
    )


def _check_run_id(rng: random.Random, character: Character, run_id: str, attempt: int) -> str:
    """As the reporter sends it: GitHub's id of the check run; elsewhere there is none, so the build and the attempt."""
    if character.ci == "buildkite":
        return f"{run_id}-{attempt}"
    return str(rng.randrange(50_000_000_000, 99_000_000_000))


def _test_results(rng: random.Random, tests: int, character: Character, conclusion: str) -> dict[str, int] | None:
    """Counts that agree with the conclusion, unless the character lies; None for a job without tests, or one that was
    stopped before its end."""
    if not tests or conclusion not in {"success", "failure"}:
        return None
    skipped = round(tests * character.skip_share * rng.uniform(0.97, 1.03))
    has_failed = conclusion == "failure" or rng.random() < character.lie_rate
    failed = rng.randint(1, 9) if has_failed else 0
    return {"passed": tests - skipped - failed, "failed": failed, "skipped": skipped, "total": tests}
