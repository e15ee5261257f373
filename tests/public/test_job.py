"""`/jobs/<id>/`: one job, what it says, and how far each figure can be trusted."""

import datetime
import uuid
from typing import Any

import pytest
from django.test import Client

from apps.platforms.models import Repository
from apps.relay.enums import Answer
from apps.relay.models import Job
from tests.factories.jobs import callback, dispatch, job
from tests.factories.listing import listed
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
NOON = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)


def minutes(number: int) -> datetime.datetime:
    return NOON + datetime.timedelta(minutes=number)


@pytest.fixture
def acme() -> Repository:
    return listed({"acme/torch": 2})["acme/torch"]


def page_of(client: Client, shown: Job) -> Page:
    answer = client.get(f"/jobs/{shown.public_id}/")
    assert answer.status_code == 200
    return Page(answer)


def test_an_ended_job_shows_every_figure_with_its_trust(client: Client, acme: Repository) -> None:
    sent = dispatch(acme, at=minutes(-1), title="Make it fast", pr_number=4711, head_sha="ab" * 20)
    shown = job(
        acme,
        "failure",
        at=minutes(0),
        run_id="77",
        dispatch=sent,
        pr_number=4711,
        head_sha="ab" * 20,
        leg="cuda 12",
        reported_started_at=minutes(1),
        reported_completed_at=minutes(6),
        passed=90,
        failed=4,
        skipped=6,
        total=100,
        url="https://ci.example/run/77",
        artifact_url="https://ci.example/run/77/artifacts",
    )
    page = page_of(client, shown)
    assert page.heading == "CI / test-ops"
    assert page.tables["figures"] == [
        ("Identity", "acme/torch, run 77", "◆ verified"),
        ("Conclusion", "■ failure", "○ self-reported"),
        ("Timing", "ran 5 min by its own clock", "○ self-reported"),
        ("Queue and run", "queued 1 min, ran 10 min by the hub's clock", "● measured"),
        ("Counts", "90 passed, 4 failed, 6 skipped of 100", "○ self-reported"),
    ]
    assert page.facts["times"] == {
        "Start, it says": "2026-01-31 12:01:00 UTC",
        "Start, received": "2026-01-31 12:00:00 UTC",
        "End, it says": "2026-01-31 12:06:00 UTC",
        "End, received": "2026-01-31 12:10:00 UTC",
        "Dispatch accepted": "2026-01-31 11:59:00 UTC",
    }
    assert page.facts["about"] == {
        "Event": "pull_request",
        "For": "PR #4711 abababababab Make it fast",
        "Delivery": "delivery-1",
        "Leg": "cuda 12",
        "Flags": "none",
        "Artifact": "https://ci.example/run/77/artifacts",
    }
    assert {"https://ci.example/run/77", "https://ci.example/run/77/artifacts"} <= set(page.links)
    assert "/platforms/acme-torch/" in page.links


def test_a_running_job_claims_nothing_that_nobody_said(client: Client, acme: Repository) -> None:
    shown = job(acme, at=minutes(0), run_id="77", start_seen_at=None, flags=["late_start"], event_type="nightly")
    page = page_of(client, shown)
    assert page.tables["figures"] == [
        ("Identity", "acme/torch, run 77", "◆ verified"),
        ("Conclusion", "◐ in progress", ""),
        ("Timing", "no data", ""),
        ("Queue and run", "no data", ""),
        ("Counts", "not reported", ""),
    ]
    assert page.facts["times"] == {
        "Start, it says": "no data",
        "Start, received": "no data",
        "End, it says": "no data",
        "End, received": "no data",
    }
    assert page.facts["about"] == {
        "Event": "nightly, informational",
        "For": "no commit named",
        "Delivery": "delivery-1",
        "Flags": "▲ the start was reported after the end",
    }


def test_a_success_with_failed_tests_is_shown_as_contradicted(client: Client, acme: Repository) -> None:
    shown = job(acme, "success", bucket="contradicted", passed=97, failed=3, skipped=0, total=100, run_id="77")
    page = page_of(client, shown)
    assert page.tables["figures"] == [
        ("Identity", "acme/torch, run 77", "◆ verified"),
        ("Conclusion", "✕ contradicted it says success", "✕ contradicted"),
        ("Timing", "no data", ""),
        ("Queue and run", "queued no data, ran 10 min by the hub's clock", "● measured"),
        ("Counts", "97 passed, 3 failed, 0 skipped of 100", "✕ contradicted"),
    ]
    assert "The job says success while it reports 3 failed tests: it never counts as green." in page.text
    assert "● success" not in page.text


def test_times_that_run_backwards_are_no_data(client: Client, acme: Repository) -> None:
    shown = job(acme, "success", reported_started_at=minutes(5), reported_completed_at=minutes(4))
    assert page_of(client, shown).tables["figures"][2] == ("Timing", "no data", "")


def test_counts_that_are_partly_reported_are_no_zeros(client: Client, acme: Repository) -> None:
    shown = job(acme, "success", passed=5, total=5)
    counts = page_of(client, shown).tables["figures"][4][1]
    assert counts == "5 passed, no data failed, no data skipped of 5"


def test_callbacks_stand_in_the_order_they_came(client: Client, acme: Repository) -> None:
    shown = job(acme, "success")
    callback(shown, at=minutes(3), answer=Answer.CONFLICT, conclusion="failure")
    callback(shown, at=minutes(2), claims={"run_id": "77", "actor": "ada"})
    callback(shown, at=minutes(1), status="in_progress", conclusion="")
    callback(job(acme, "success", job_name="another"), conclusion="cancelled")
    assert page_of(client, shown).items["said"] == [
        "● in_progress applied 2026-01-31 12:01:00 UTC What its token proved",
        "● completed, success applied 2026-01-31 12:02:00 UTC What its token proved actor ada run_id 77",
        "✕ completed, failure refused: the job had ended otherwise 2026-01-31 12:03:00 UTC What its token proved",
    ]


HOSTILE = {
    "script": "<script>alert(1)</script>",
    "attribute": '" onmouseover="alert(1)" x="',
    "template": "{{ request.user }}{% now 'Y' %}",
    "emoji": "🦩 test 日本語 \u202e gnp.exe",
    "long": "x" * 300,
    "entities": "&lt;b&gt; & <b>",
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_stay_text_everywhere(client: Client, acme: Repository, name: str) -> None:
    shown = job(acme, "success", job_name=name, workflow=name, leg=name[:200], delivery_id=name[:200])
    callback(shown, claims={"ref": name, name: "x"}, conclusion=name)
    page = page_of(client, shown)
    words = " ".join(name.split())
    assert page.heading == f"{words} / {words}"
    assert page.facts["about"]["Leg"] == words[:200]
    assert page.facts["about"]["Delivery"] == words[:200]
    assert page.facts["said"] == {"ref": words, words: "x"}
    listed_at = "/platforms/acme-torch/?view=all"
    assert Page(client.get(listed_at)).tables["jobs-head"][0][1].startswith(f"{words} / {words} run")
    for html in (page.html, client.get(listed_at).content.decode()):
        assert "<script>alert" not in html
        assert '" onmouseover=' not in html


def test_an_unknown_job_is_not_found(client: Client) -> None:
    assert client.get(f"/jobs/{uuid.uuid4()}/").status_code == 404
    assert client.get("/jobs/7/").status_code == 404


@pytest.mark.parametrize("rows", [1, 3])
def test_the_page_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, acme: Repository, rows: int, django_assert_num_queries: Any
) -> None:
    shown = job(acme, "success", dispatch=dispatch(acme))
    for _ in range(rows):
        callback(shown)
    with django_assert_num_queries(3):
        assert len(page_of(client, shown).items["said"]) == rows
