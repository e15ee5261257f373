"""What comes to be known late rebuilds the rollups of its day: told through the front door, read from the API."""

import copy
import datetime
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.relay.lookups import close_silent, excuse, silent_runs
from apps.relay.models import Dispatch, HubOutage, Job
from apps.results import tasks
from tests.factories.listing import listed, user
from tests.factories.pages import Page
from tests.relay.downstream import PAYLOAD, Downstream
from tests.relay.test_callback import KESTREL, dispatch

pytestmark = pytest.mark.django_db
HOUR = datetime.timedelta(hours=1)
TONE = {"success": "●", "informational": "○", "unexpected": "▲"}
METRICS = f"/api/v1/repositories/{KESTREL}/metrics/"
DECLARED = f"/repositories/{KESTREL}/declared/"


@pytest.fixture
def kestrel(downstream: Callable[..., Downstream], client: Client) -> Downstream:
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    dispatch(client)
    return made


def figures(client: Client) -> dict[str, Any]:
    """The buckets that hold anything, their parts, and the rates, once every day that was woken is counted."""
    if keys := list(Wakeup.objects.filter(topic="job_changed").values_list("key", flat=True)):
        tasks.count_days(keys)
    Wakeup.objects.all().delete()
    body = client.get(METRICS).json()
    return {
        "buckets": {bucket: count for bucket, count in body["buckets"].items() if count},
        "parts": {part: count for part, count in body["parts"].items() if count},
        "pass_rate": body["pass_rate"],
        "upstream": body["figures"]["pass_rate"]["upstream_value"],
        "answers": (body["answer_rate"], body["silence_count"]),
    }


def sweep() -> None:
    """What beat does, seven hours later."""
    moment = now() + 7 * HOUR
    for run, pks in silent_runs(now=moment).items():
        close_silent(run=run, job_pks=pks, now=moment)


def said(*, pass_rate: Any, upstream: Any, answers: Any, parts: Any = None, **buckets: int) -> dict[str, Any]:
    return {
        "buckets": buckets,
        "parts": parts or {},
        "pass_rate": pass_rate,
        "upstream": upstream,
        "answers": answers,
    }


def test_a_real_end_replaces_the_one_that_the_hub_inferred(client: Client, kestrel: Downstream) -> None:
    kestrel.start()
    Dispatch.objects.update(sent_at=now() - 7 * HOUR)
    assert figures(client) == said(in_progress=1, pass_rate=None, upstream=None, answers=(None, None))
    sweep()
    assert figures(client) == said(timed_out=1, pass_rate=0, upstream=0, answers=(0, 1))
    kestrel.end()
    assert figures(client) == said(success=1, pass_rate=1, upstream=1, answers=(1, 0))


def test_a_correction_by_a_re_run(client: Client, kestrel: Downstream) -> None:
    kestrel.start()
    kestrel.end("failure")
    assert figures(client) == said(failure=1, pass_rate=0, upstream=0, answers=(1, 0))
    again = kestrel.token(run_attempt="2")
    kestrel.post(kestrel.body(run_attempt="2"), token=again)
    # Ours waits for the newer attempt; upstream's still looks at the last one that is completed.
    assert figures(client) == said(in_progress=1, superseded=1, pass_rate=None, upstream=0, answers=(1, 0))
    kestrel.post(kestrel.body(run_attempt="2", conclusion="success"), token=kestrel.token(run_attempt="2"))
    assert figures(client) == said(success=1, superseded=1, pass_rate=1, upstream=1, answers=(1, 0))


def test_an_outage_that_is_found_later(client: Client, kestrel: Downstream) -> None:
    kestrel.start()
    Dispatch.objects.update(sent_at=now() - 7 * HOUR)
    sweep()
    assert figures(client) == said(timed_out=1, pass_rate=0, upstream=0, answers=(0, 1))
    HubOutage.objects.create(started_at=now() - HOUR, ended_at=now() + HOUR)
    assert excuse(now=now() + 7 * HOUR) == 1
    assert figures(client) == said(unheard=1, pass_rate=None, upstream=0, answers=(None, None))


def test_a_dispatch_is_silent_once_its_answer_is_due(client: Client, kestrel: Downstream) -> None:
    tasks.recount_recent()
    assert figures(client)["answers"] == (None, None)
    Dispatch.objects.update(sent_at=now() - 7 * HOUR)
    tasks.recount_recent()
    assert figures(client) == said(pass_rate=None, upstream=None, answers=(0, 1))


def test_a_closed_pull_request_asks_for_no_answer(client: Client, downstream: Callable[..., Downstream]) -> None:
    downstream(KESTREL)
    listed({KESTREL: 2})
    dispatch(client, body=PAYLOAD | {"action": "closed"})
    Dispatch.objects.update(sent_at=now() - 7 * HOUR)
    tasks.recount_recent()
    assert figures(client)["answers"] == (None, None)


def test_what_was_sent_below_l2_asks_for_no_answer(client: Client, downstream: Callable[..., Downstream]) -> None:
    downstream(KESTREL)
    listed({KESTREL: 1}, now=now() - 9 * HOUR)
    dispatch(client)
    Dispatch.objects.update(sent_at=now() - 7 * HOUR)
    listed({KESTREL: 2})
    tasks.recount_recent()
    assert figures(client)["answers"] == (None, None)


def test_cancelled_by_a_newer_push_is_told_apart_from_cancelled_alone(client: Client, kestrel: Downstream) -> None:
    kestrel.start()
    kestrel.end("cancelled", job_name="alone", check_run_id="7")
    newer = copy.deepcopy(PAYLOAD) | {"action": "synchronize"}
    newer["pull_request"]["head"]["sha"] = "ab" * 20
    dispatch(client, "d-2", newer)
    kestrel.end("cancelled")
    assert figures(client) == said(
        cancelled=1,
        superseded=1,
        parts={"superseded_by_push": 1},
        pass_rate=0,
        upstream=0,
        answers=(1, 0),
    )
    rows = client.get("/api/v1/jobs/", {"repository": KESTREL}).json()["results"]
    assert {row["job_name"]: (row["conclusion"], row["bucket"], row["superseded_by"]) for row in rows} == {
        "alone": ("cancelled", "cancelled", None),
        "build": ("cancelled", "superseded", "push"),
    }
    page = Page(client.get(f"/jobs/{Job.objects.get(job_name='build').public_id}/"))
    assert page.tables["figures"][2] == ("In figures", "◇ superseded a newer push cancelled it", "")


def test_the_same_commit_sent_again_is_no_newer_push(client: Client, kestrel: Downstream) -> None:
    kestrel.start()
    dispatch(client, "d-2", PAYLOAD | {"action": "reopened"})
    kestrel.end("cancelled")
    assert figures(client)["buckets"] == {"cancelled": 1}


def test_a_push_to_the_same_ref_is_newer_and_one_to_another_is_not(client: Client, kestrel: Downstream) -> None:
    def push(delivery_id: str, ref: str, after: str) -> None:
        body = {"ref": ref, "before": "00" * 20, "after": after * 20, "repository": {"full_name": "pytorch/pytorch"}}
        dispatch(client, delivery_id, body, event="push")

    push("p-1", "refs/heads/main", "a1")
    for name in ("one", "two"):
        kestrel.post(kestrel.body("p-1", job_name=name, check_run_id=name) | {"event_type": "push"})
    push("p-2", "refs/tags/trunk/1", "a2")
    ended = {"conclusion": "cancelled", "status": "completed"}
    kestrel.post(kestrel.body("p-1", job_name="one", check_run_id="one", **ended) | {"event_type": "push"})
    push("p-3", "refs/heads/main", "a3")
    kestrel.post(kestrel.body("p-1", job_name="two", check_run_id="two", **ended) | {"event_type": "push"})
    rows = client.get("/api/v1/jobs/", {"repository": KESTREL}).json()["results"]
    assert {row["job_name"]: row["superseded_by"] for row in rows} == {"one": None, "two": "push"}


def declare(client: Client, outcome: str, job_name: str = "build") -> Any:
    today = now().date()
    body = {"act": "declare", "workflow": "CI", "job_name": job_name, "outcome": outcome, "reason": "It tests the hub."}
    return client.post(DECLARED, body | {"starts_at": today, "ends_at": today + datetime.timedelta(days=9)})


def test_a_declaration_that_is_made_later_and_taken_back(client: Client, kestrel: Downstream) -> None:
    kestrel.start()
    kestrel.end("failure")
    as_it_was = said(failure=1, pass_rate=0, upstream=0, answers=(1, 0))
    assert figures(client) == as_it_was
    client.force_login(user(Role.MAINTAINER, username="ada"))
    assert declare(client, "failure").status_code == 302
    assert figures(client) == said(success=1, parts={"as_declared": 1}, pass_rate=1, upstream=0, answers=(1, 0))
    declared = client.get(f"/api/v1/repositories/{KESTREL}/declared/").json()["results"][0]["id"]
    assert client.post(DECLARED, {"act": "withdraw", "declared": declared, "reason": "A mistake."}).status_code == 302
    assert figures(client) == as_it_was


@pytest.mark.parametrize(
    ("outcome", "bucket"), [("timed_out", "unexpected"), ("informational", "informational"), ("failure", "success")]
)
def test_where_a_declared_job_counts(client: Client, kestrel: Downstream, outcome: str, bucket: str) -> None:
    kestrel.end("failure")
    client.force_login(user(Role.MAINTAINER))
    declare(client, outcome)
    assert figures(client)["buckets"] == {bucket: 1}
    assert client.get("/api/v1/jobs/", {"repository": KESTREL}).json()["results"][0]["bucket"] == bucket
    found = Job.objects.get()
    assert found.bucket == "failure"
    rows = Page(client.get(f"/jobs/{found.public_id}/")).tables["figures"]
    said_of_it = ("In figures", f"{TONE[bucket]} {bucket} a maintainer declared what it is meant to be", "")
    assert rows[1:3] == [("Conclusion", "■ failure", "○ self-reported"), said_of_it]


def test_a_declaration_holds_for_exactly_its_job(client: Client, kestrel: Downstream) -> None:
    kestrel.end("failure")
    client.force_login(user(Role.MAINTAINER))
    declare(client, "failure", "buil")
    declare(client, "failure", "Build")
    assert figures(client)["buckets"] == {"failure": 1}
