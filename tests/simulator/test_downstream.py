"""Fictional downstreams: their callbacks are the official reporter's, their fate is the seed's, their posts persist."""

import datetime
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from apps.simulator import loopback
from apps.simulator.characters import CHARACTERS, by_repository
from apps.simulator.dispatches import Dispatch
from apps.simulator.downstream import Downstreams, Job, plan
from apps.simulator.reporter import callback_body, wants
from apps.simulator.standin import GitHubStandIn
from apps.simulator.timetable import Timetable
from tests.simulator.tiny_hub import AUDIENCE, TinyHub, eventually

KESTREL, FEN, PALLAS = CHARACTERS
AT = datetime.datetime(2026, 9, 1, 12, 0, 0, 250_000, tzinfo=datetime.UTC)
CLIENT_PAYLOAD: dict[str, Any] = {
    "event_type": "pull_request",
    "delivery_id": "0b9e7d1c-1111-4222-8333-444455556666",
    "payload": {"action": "opened", "number": 900_001, "pull_request": {"head": {"sha": "a" * 40}}},
    "accelhub": "a token the hub put there",
}


def dispatch(repository: str, delivery_id: str = "d-1", **payload: Any) -> Dispatch:
    client_payload = CLIENT_PAYLOAD | {"delivery_id": delivery_id, "payload": CLIENT_PAYLOAD["payload"] | payload}
    return Dispatch(1, repository, "pull_request", client_payload, AT.isoformat())


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


@pytest.mark.parametrize("character", CHARACTERS, ids=lambda c: c.full_name)
def test_rates_counts_and_reruns_over_many_dispatches(character: Any) -> None:
    jobs = [
        job for number in range(1_500) for job in plan(character, CLIENT_PAYLOAD | {"delivery_id": str(number)}, seed=1)
    ]
    firsts = [job for job in jobs if job.run_attempt == 1]
    passed = sum(job.conclusion == "success" for job in firsts) / len(firsts)
    assert passed == pytest.approx(character.pass_rate, abs=0.02)
    assert {job.conclusion for job in firsts} == {"success", "failure", "timed_out", "cancelled"}
    for job in jobs:
        if job.test_results is None:
            assert job.artifact_url is None
            continue
        counts = job.test_results
        assert counts["passed"] + counts["failed"] + counts["skipped"] == counts["total"]
        assert min(counts.values()) >= 0
        assert (counts["failed"] > 0) == (job.conclusion == "failure")
    again = [job for job in jobs if job.run_attempt == 2]
    assert 0 < len(again) < len(firsts) - sum(job.conclusion == "success" for job in firsts)
    first_of = {(job.run_id, job.job_name): job for job in firsts}
    for job in again:
        first = first_of[job.run_id, job.job_name]
        assert first.conclusion != "success"
        assert first.check_run_id != job.check_run_id
        assert job.wait_seconds > first.wait_seconds + first.run_seconds


def test_jobs_last_ten_to_sixty_seconds_at_normal_pace() -> None:
    for character in CHARACTERS:
        for shape in character.jobs:
            assert 10 <= shape.seconds[0] < shape.seconds[1] <= 60


# --- reporting --------------------------------------------------------------------------------------------------


@pytest.fixture
def timetable() -> Iterator[Timetable]:
    with Timetable() as timetable:
        yield timetable


@pytest.fixture
def downstreams(github: GitHubStandIn, tiny_hub: TinyHub, timetable: Timetable) -> Downstreams:
    for c in CHARACTERS:
        github.add_repository(c.full_name, repository_id=c.repository_id, owner_id=c.owner_id)
    return Downstreams(
        hub_url=tiny_hub.url,
        github_url=github.url,
        audience=AUDIENCE,
        seed=1,
        timetable=timetable,
        pace=0.002,
        retry_seconds=0.02,
    )


def test_each_job_reports_its_start_and_its_end_with_a_token_of_its_own(
    downstreams: Downstreams, tiny_hub: TinyHub
) -> None:
    sent = dispatch(KESTREL.full_name)
    downstreams.on_dispatch(sent)
    eventually(lambda: len(tiny_hub.callbacks) == 6 and not downstreams.pending())
    by_job: dict[str, list[str]] = {}
    for claims, body in tiny_hub.callbacks:
        workflow = body.pop("workflow")
        assert body == sent.client_payload
        assert claims["repository_id"] == str(KESTREL.repository_id)
        assert (claims["run_id"], claims["run_attempt"]) == (workflow["run_id"], workflow["run_attempt"])
        by_job.setdefault(workflow["job_name"], []).append(workflow["status"])
    assert by_job == {shape.name: ["in_progress", "completed"] for shape in KESTREL.jobs}
    assert len({claims["jti"] for claims, _ in tiny_hub.callbacks}) == 6


def test_strangers_and_closed_pull_requests_start_nothing(downstreams: Downstreams) -> None:
    downstreams.on_dispatch(dispatch("someone-demo/else"))
    downstreams.on_dispatch(dispatch(PALLAS.full_name, action="closed"))
    assert downstreams.pending() == []


@pytest.mark.parametrize("status", [500, 503, 429])
def test_passing_trouble_is_tried_again(downstreams: Downstreams, tiny_hub: TinyHub, status: int) -> None:
    tiny_hub.answers = [status, status]
    downstreams.on_dispatch(dispatch(PALLAS.full_name))
    eventually(lambda: len(tiny_hub.callbacks) == 2)
    assert [body["workflow"]["status"] for _, body in tiny_hub.callbacks] == ["in_progress", "completed"]
    assert tiny_hub.attempts == 4


def test_a_refusal_is_final_and_logged_in_one_line(
    downstreams: Downstreams, tiny_hub: TinyHub, caplog: pytest.LogCaptureFixture
) -> None:
    tiny_hub.answers = [403]
    downstreams.on_dispatch(dispatch(PALLAS.full_name))
    eventually(lambda: len(tiny_hub.callbacks) == 1 and not downstreams.pending())
    assert tiny_hub.callbacks[0][1]["workflow"]["status"] == "completed"
    [line] = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert "the hub refused in_progress: 403" in line
    assert "\n" not in line


def test_without_a_token_nothing_is_sent(
    downstreams: Downstreams, github: GitHubStandIn, tiny_hub: TinyHub, caplog: pytest.LogCaptureFixture
) -> None:
    github.fail(r"/_actions/token", 401, times=2)
    downstreams.on_dispatch(dispatch(PALLAS.full_name))
    eventually(lambda: not downstreams.pending())
    assert tiny_hub.attempts == 0
    assert caplog.text.count("no OIDC token: 401") == 2


def test_a_hub_that_is_gone_is_given_up_after_a_bound(
    github: GitHubStandIn, timetable: Timetable, caplog: pytest.LogCaptureFixture
) -> None:
    github.add_repository(PALLAS.full_name)
    downstreams = Downstreams(
        hub_url="http://127.0.0.1:9",
        github_url=github.url,
        audience=AUDIENCE,
        seed=1,
        timetable=timetable,
        pace=0.001,
        retry_seconds=0.001,
    )
    downstreams.on_dispatch(dispatch(PALLAS.full_name))
    eventually(lambda: not downstreams.pending())
    assert caplog.text.count("was not reported") == 2


def test_what_is_owed_at_the_end_is_reported_by_the_next_process(
    github: GitHubStandIn, downstreams: Downstreams, tiny_hub: TinyHub, timetable: Timetable
) -> None:
    downstreams.pace = 1.0
    downstreams.on_dispatch(dispatch(PALLAS.full_name))
    timetable.close()
    [owed] = downstreams.pending()
    assert owed["status"] == "in_progress"
    owed["due"] = 0.0
    with Timetable() as second_life:
        again = Downstreams(
            hub_url=tiny_hub.url, github_url=github.url, audience=AUDIENCE, seed=1, timetable=second_life
        )
        again.resume([owed])
        eventually(lambda: len(tiny_hub.callbacks) == 2)
    assert Counter(body["workflow"]["status"] for _, body in tiny_hub.callbacks) == {"in_progress": 1, "completed": 1}


def test_closing_interrupts_the_wait_between_attempts() -> None:
    closing = threading.Event()
    threading.Timer(0.1, closing.set).start()
    with pytest.raises(loopback.Interrupted):
        loopback.send_with_retries("GET", "http://127.0.0.1:9/", closing=closing, first_wait=30)


def test_characters_answer_only_for_themselves() -> None:
    assert by_repository(KESTREL.full_name) is KESTREL
