"""What characters do: the callbacks are the official reporter's, and the seed decides every fate."""

import dataclasses
import datetime
import itertools
from collections import Counter
from typing import Any

import pytest

from apps.simulator.characters import CHARACTERS, Character, by_repository
from apps.simulator.downstream import Callback
from apps.simulator.nights import plan_night
from apps.simulator.plan import Job, answers, plan
from apps.simulator.replays import replays_of
from apps.simulator.reporter import callback_body, wants

(
    KESTREL, FEN, PALLAS, MERIDIAN, WREN, QUARRY, LUMEN, TARN, CASCADE, ONYX, LATTICE, SABLE, ROOK, VESPER
) = CHARACTERS  # fmt: skip
AT = datetime.datetime(2026, 9, 1, 12, 0, 0, 250_000, tzinfo=datetime.UTC)
CLIENT_PAYLOAD: dict[str, Any] = {
    "event_type": "pull_request",
    "delivery_id": "0b9e7d1c-1111-4222-8333-444455556666",
    "payload": {"action": "opened", "number": 900_001, "pull_request": {"head": {"sha": "a" * 40}}},
    "accelhub": "a token the hub put there",
}


# --- the body ---------------------------------------------------------------------------------------------------


def test_the_bodies_are_the_documented_ones() -> None:
    job = Job(
        repository="o/r",
        workflow="CI",
        client_payload=CLIENT_PAYLOAD,
        run_id="123",
        run_attempt=2,
        job_name="build-cuda",
        check_run_id="456",
        wait_seconds=0,
        run_seconds=0,
        conclusion="failure",
        test_results={"passed": 42, "failed": 3, "skipped": 5, "total": 50},
        artifact_url="https://artifacts.example/123",
    )
    same = {
        "schema_version": "1",
        "name": "CI",
        "url": "https://github.com/o/r/actions/runs/123",
        "run_id": "123",
        "run_attempt": "2",
        "job_name": "build-cuda",
        "check_run_id": "456",
    }
    assert job.body("in_progress", AT) == {
        **CLIENT_PAYLOAD,
        "workflow": same
        | {
            "status": "in_progress",
            "conclusion": None,
            "started_at": "2026-09-01T12:00:00.250000Z",
            "completed_at": None,
        },
    }
    assert job.body("completed", AT) == {
        **CLIENT_PAYLOAD,
        "workflow": same
        | {
            "status": "completed",
            "conclusion": "failure",
            "started_at": None,
            "completed_at": "2026-09-01T12:00:00.250000Z",
            "test_results": {"passed": 42, "failed": 3, "skipped": 5, "total": 50},
            "artifact_url": "https://artifacts.example/123",
        },
    }


def test_a_body_leaves_out_what_the_job_has_not_got_and_leaves_the_dispatch_alone() -> None:
    before = dict(CLIENT_PAYLOAD)
    body = callback_body(
        CLIENT_PAYLOAD,
        status="completed",
        conclusion="success",
        name="CI",
        url="https://github.com/o/r/actions/runs/1",
        run_id="1",
        run_attempt="1",
        job_name="build",
        check_run_id="2",
        at=AT,
    )
    assert {"test_results", "artifact_url"} & set(body["workflow"]) == set()
    assert before == CLIENT_PAYLOAD


@pytest.mark.parametrize(
    ("event", "payload", "answer"),
    [
        ("pull_request", {"action": "opened"}, True),
        ("pull_request", {"action": "reopened"}, True),
        ("pull_request", {"action": "synchronize"}, True),
        ("pull_request", {"action": "closed"}, False),
        ("push", {"ref": "refs/heads/main"}, True),
        ("push", {"ref": "refs/tags/ciflow/trunk/1"}, False),
        ("push", None, False),
        ("nightly", {}, False),
    ],
)
def test_what_a_downstream_runs_for(event: str, payload: dict | None, answer: bool) -> None:
    assert wants(event, {"payload": payload}) is answer


# --- fate -------------------------------------------------------------------------------------------------------


def test_seed_and_delivery_decide_everything() -> None:
    first = plan(FEN, CLIENT_PAYLOAD, seed=3)
    assert plan(FEN, dict(CLIENT_PAYLOAD), seed=3) == first
    assert plan(FEN, CLIENT_PAYLOAD, seed=4) != first
    assert plan(FEN, CLIENT_PAYLOAD | {"delivery_id": "other"}, seed=3) != first
    assert plan(KESTREL, CLIENT_PAYLOAD, seed=3)[0].run_id != first[0].run_id


def test_pace_scales_time_and_changes_nothing_else() -> None:
    for normal, quick in zip(
        plan(FEN, CLIENT_PAYLOAD, seed=1), plan(FEN, CLIENT_PAYLOAD, seed=1, pace=0.1), strict=True
    ):
        assert quick.run_seconds == pytest.approx(normal.run_seconds / 10)
        assert quick.wait_seconds == pytest.approx(normal.wait_seconds / 10)
        assert (quick.conclusion, quick.test_results, quick.run_id) == (
            normal.conclusion,
            normal.test_results,
            normal.run_id,
        )


def many(character: Character, dispatches: int = 1_500, *, days_ago: float = 40, **payload: Any) -> list[Job]:
    """What a character does on so many dispatches."""
    return [
        job
        for number in range(dispatches)
        for job in plan(character, CLIENT_PAYLOAD | {"delivery_id": str(number)} | payload, seed=1, days_ago=days_ago)
    ]


def share(jobs: list[Job], **wanted: Any) -> float:
    """The share of jobs with these attributes."""
    return sum(all(getattr(job, name) == value for name, value in wanted.items()) for job in jobs) / len(jobs)


@pytest.mark.parametrize("character", CHARACTERS, ids=lambda c: c.full_name)
def test_rates_counts_and_reruns_over_many_dispatches(character: Character) -> None:
    jobs = many(character)
    firsts = [job for job in jobs if job.run_attempt == 1]
    assert share(firsts, conclusion="success") == pytest.approx(character.pass_rate, abs=0.02)
    assert {"success", "failure", "timed_out"} <= {job.conclusion for job in firsts}
    assert share(jobs, reports_end=False) == pytest.approx(character.death_rate, abs=0.02)
    for job in jobs:
        if job.test_results is None:
            assert job.artifact_url is None
            continue
        counts = job.test_results
        assert counts["passed"] + counts["failed"] + counts["skipped"] == counts["total"]
        assert min(counts.values()) >= 0
        if job.conclusion == "failure" or not character.lie_rate:
            assert (counts["failed"] > 0) == (job.conclusion == "failure")
    of = {(job.client_payload["delivery_id"], job.job_name, job.leg, job.run_attempt): job for job in jobs}
    assert len(of) == len(jobs)
    again = [job for job in jobs if job.run_attempt > 1]
    assert 0 < len(again) < len(jobs) / 2
    for job in again:
        before = of[job.client_payload["delivery_id"], job.job_name, job.leg, job.run_attempt - 1]
        assert character.green_rerun_rate or before.conclusion != "success" or not before.reports_end
        assert before.check_run_id != job.check_run_id
        assert job.wait_seconds > before.wait_seconds + before.run_seconds
    assert max(job.run_attempt for job in jobs) == character.most_attempts


def test_most_jobs_last_ten_to_sixty_seconds_at_normal_pace() -> None:
    for character in CHARACTERS:
        for shape in character.jobs + character.sweep:
            assert 10 <= shape.seconds[0] < shape.seconds[1] <= (240 if character is FEN else 60)


def test_the_slow_one_queues_long_and_passes_three_hours_of_history() -> None:
    jobs = many(FEN, 300)
    assert min(job.wait_seconds for job in jobs if job.run_attempt == 1) > 10 * MERIDIAN.queue_seconds[1]
    assert 0.1 < sum(job.run_seconds * 60 > 3 * 3_600 for job in jobs) / len(jobs) < 0.4


def test_the_flaky_one_answers_otherwise_when_the_same_commit_is_run_again() -> None:
    jobs = many(WREN, 300)
    ends: dict[tuple[str, str], list[str]] = {}
    for job in jobs:
        ends.setdefault((job.run_id, job.job_name), []).append(job.conclusion)
    flips = Counter(pair for each in ends.values() for pair in itertools.pairwise(each))
    assert flips["failure", "success"] > flips["failure", "failure"] > 0
    assert flips["success", "failure"] > 0


def test_the_liars_success_counts_failed_tests() -> None:
    green = [job for job in many(LUMEN) if job.conclusion == "success" and job.test_results]
    lies = sum(job.test_results["failed"] > 0 for job in green if job.test_results) / len(green)
    assert lies == pytest.approx(LUMEN.lie_rate, abs=0.02)


def test_the_silent_one_answered_until_nine_days_ago() -> None:
    assert many(TARN, 20, days_ago=9.01)
    assert many(TARN, 20, days_ago=8.99) == many(TARN, 20, days_ago=0) == []


def test_the_bad_week() -> None:
    rates = [share(many(KESTREL, 300, days_ago=days), run_attempt=1, conclusion="success") for days in (20, 15, 11)]
    assert rates[0] > 0.9 > 0.7 > rates[1]
    assert rates[2] == rates[0]


def test_the_flood_comes_with_some_pushes_and_is_more_than_a_minute_holds() -> None:
    pushed = {"event_type": "push", "payload": {"ref": "refs/heads/main"}}
    sizes = [
        len(plan(CASCADE, CLIENT_PAYLOAD | pushed | {"delivery_id": str(number)}, seed=1)) for number in range(300)
    ]
    floods = [size for size in sizes if size > 2]
    assert len(floods) / len(sizes) == pytest.approx(CASCADE.sweep_rate, abs=0.06)
    assert min(floods) * 2 > 100
    assert len(many(CASCADE, 100)) < 120


def test_the_one_on_buildkite_counts_builds_and_names_no_check_run() -> None:
    for job in many(ONYX, 50):
        assert (job.ci, job.check_run_id) == ("buildkite", f"{job.run_id}-{job.run_attempt}")
        assert int(job.run_id) < 100_000
        assert (
            job.body("in_progress", AT)["workflow"]["url"]
            == f"https://buildkite.com/{ONYX.full_name}/builds/{job.run_id}"
        )


def test_the_matrix_reports_one_name_and_a_check_run_for_each_leg() -> None:
    jobs = plan(LATTICE, CLIENT_PAYLOAD, seed=1)
    workflows = [job.body("in_progress", AT)["workflow"] for job in jobs]
    assert {workflow["job_name"] for workflow in workflows} == {"test"}
    assert len({workflow["check_run_id"] for workflow in workflows}) == len(jobs) >= 2
    assert all("leg" not in workflow for workflow in workflows)


def test_the_renamed_one_is_itself_under_both_names() -> None:
    assert by_repository("Sable-demo/SABLE-backend") is by_repository(SABLE.full_name) is SABLE
    assert SABLE.renamed_to.split("/")[0] == SABLE.owner


def test_some_ends_of_the_replaying_one_come_again() -> None:
    jobs = many(ROOK)
    assert share(jobs, is_replayed=True) == pytest.approx(ROOK.replay_rate, abs=0.02)
    assert not any(job.is_replayed for character in (KESTREL, LUMEN, SABLE) for job in many(character, 100))


@pytest.mark.parametrize(("conclusion", "other"), [("success", "failure"), ("timed_out", "success")])
def test_a_replay_is_the_same_another_conclusion_and_an_answer_to_a_stranger(conclusion: str, other: str) -> None:
    job = dataclasses.replace(plan(ROOK, CLIENT_PAYLOAD, seed=1)[0], conclusion=conclusion)
    body = job.body("completed", AT)
    again, changed, stranger = replays_of(body)
    assert (again.body, again.has_own_token) == (body, False)
    assert changed.body == body | {"workflow": body["workflow"] | {"conclusion": other}}
    assert not changed.has_own_token
    assert stranger.body == body | {"delivery_id": stranger.body["delivery_id"]}
    assert stranger.has_own_token
    assert stranger.body["delivery_id"] != body["delivery_id"]
    assert replays_of(body) == (again, changed, stranger)


def test_the_nightly_one_answers_no_dispatch() -> None:
    assert [c for c in CHARACTERS if not answers(c, "pull_request", CLIENT_PAYLOAD)] == [VESPER]


def test_a_night_is_about_a_commit_and_reported_once() -> None:
    night = plan_night(VESPER, night="2026-09-01", commit="c" * 40, seed=1)
    assert night == plan_night(VESPER, night="2026-09-01", commit="c" * 40, seed=1)
    assert {job.run_id for job in night} != {
        job.run_id for job in plan_night(VESPER, night="2026-09-02", commit="c" * 40, seed=1)
    }, "two nights about one commit are two runs"
    assert {job.job_name for job in night} == {shape.name for shape in VESPER.jobs}
    for job in night:
        body = job.body("completed", AT)
        assert {key: body[key] for key in ("event_type", "delivery_id", "payload")} == {
            "event_type": "nightly",
            "delivery_id": "c" * 40,
            "payload": {"head_sha": "c" * 40},
        }
        only = Callback.first(job, 1_000)
        assert only == Callback(job, "completed", 1_000 + job.wait_seconds + job.run_seconds)
        assert only.following() is None


def test_a_stray_night_is_about_a_commit_of_nobody() -> None:
    strays = [plan_night(VESPER, night="n", commit=sha * 40, seed=1, is_stray=True) for sha in "ab"]
    [commit] = {job.client_payload["payload"]["head_sha"] for jobs in strays for job in jobs}
    assert len(commit) == 40
    assert set(commit) > {"a", "b"}
