"""Fictional downstreams: their callbacks are the official reporter's, their fate is the seed's, their posts persist."""

import datetime
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from apps.simulator import loopback
from apps.simulator.characters import CHARACTERS, by_repository
from apps.simulator.dispatches import Dispatch
from apps.simulator.downstream import Downstreams
from apps.simulator.plan import plan
from apps.simulator.standin import GitHubStandIn
from apps.simulator.timetable import Timetable
from tests.simulator.tiny_hub import AUDIENCE, TinyHub, eventually

KESTREL, PALLAS, QUARRY, ROOK = CHARACTERS[0], CHARACTERS[2], CHARACTERS[5], CHARACTERS[12]
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


# With seed 1 one of its jobs dies for this delivery, and another ends.
DEADLY = "d-1"

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


def test_a_hub_without_room_is_asked_again_when_it_said(downstreams: Downstreams, tiny_hub: TinyHub) -> None:
    """And nobody else waits for it: a flood must not hold up the threads."""
    flood = [dispatch(PALLAS.full_name, delivery_id=f"flood-{number}") for number in range(12)]
    starts = sum(len(plan(PALLAS, each.client_payload, seed=1)) for each in flood)
    tiny_hub.answers, tiny_hub.retry_after = [429] * starts, "60"
    for each in flood:
        downstreams.on_dispatch(each)
    eventually(lambda: tiny_hub.attempts == starts)
    downstreams.on_dispatch(dispatch(PALLAS.full_name))
    eventually(lambda: len(tiny_hub.callbacks) == 2)
    assert {body["delivery_id"] for _, body in tiny_hub.callbacks} == {"d-1"}
    eventually(lambda: len(downstreams.pending()) == starts)
    for row in downstreams.pending():
        assert (row["status"], row["tries"]) == ("in_progress", 1)
        assert 30 < row["due"] - time.time() < 70


def test_a_hub_that_never_has_room_is_given_up(
    downstreams: Downstreams, tiny_hub: TinyHub, caplog: pytest.LogCaptureFixture
) -> None:
    tiny_hub.answers = [429] * 200
    downstreams.on_dispatch(dispatch(PALLAS.full_name))
    eventually(lambda: not downstreams.pending(), seconds=10)
    assert caplog.text.count("never had room for") == 2


def test_a_job_whose_machine_dies_reports_no_end(downstreams: Downstreams, tiny_hub: TinyHub) -> None:
    downstreams.on_dispatch(dispatch(QUARRY.full_name, delivery_id=DEADLY))
    eventually(lambda: tiny_hub.callbacks and not downstreams.pending())
    jobs = plan(QUARRY, dispatch(QUARRY.full_name, delivery_id=DEADLY).client_payload, seed=1)
    told = Counter(body["workflow"]["status"] for _, body in tiny_hub.callbacks)
    assert told == {"in_progress": len(jobs), "completed": sum(job.reports_end for job in jobs)}
    assert told["in_progress"] > told["completed"] > 0


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


def test_a_replayed_end_comes_again_and_misused(
    github: GitHubStandIn, downstreams: Downstreams, tiny_hub: TinyHub, caplog: pytest.LogCaptureFixture
) -> None:
    dispatches = (dispatch(ROOK.full_name, f"r-{number}") for number in range(100))
    sent = next(d for d in dispatches if any(job.is_replayed for job in plan(ROOK, d.client_payload, seed=1)))
    tiny_hub.webhooks.append(("pull_request", sent.client_payload["delivery_id"], {}))
    downstreams.on_dispatch(sent)
    eventually(lambda: tiny_hub.callbacks and not downstreams.pending())
    replayed = sum(job.is_replayed for job in plan(ROOK, sent.client_payload, seed=1))
    assert len(tiny_hub.repeated) == replayed
    assert Counter(status for status, _ in tiny_hub.refused) == {409: replayed, 403: replayed}
    assert "refused" not in caplog.text, "the log is for what went wrong"


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
