"""`POST /api/crcr/results`: today's relay posts what it took, and the hub keeps it."""

import datetime
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client, override_settings

from apps.core.models import Wakeup
from apps.relay import tasks
from apps.relay.models import Callback, Delivery, Forward, Job, Rejection
from apps.relay.observer import BODY_MAX_BYTES
from apps.relay.policy import trust_of
from tests.factories.listing import listed
from tests.factories.pages import Page
from tests.relay.downstream import HEAD_SHA, PAYLOAD, refusal, send_webhook
from tests.relay.posts import KESTREL, KEY, post, post_body

pytestmark = pytest.mark.django_db
WORKFLOW = "untrusted.callback_payload.workflow"


@pytest.fixture(autouse=True)
def observing() -> Iterator[None]:
    with override_settings(MODE="observer", HUD_BOT_KEY=KEY):
        yield


@pytest.fixture
def kestrel() -> Any:
    return listed({KESTREL: 2})[KESTREL]


def said(response: Any) -> tuple[int, Any]:
    return response.status_code, response.json()


def test_a_start_and_an_end_are_one_job_with_the_relays_word_for_who_it_is(client: Client, kestrel: Any) -> None:
    assert said(post(client, post_body())) == (200, {"ok": True, "status": "applied"})
    counts = {"passed": 40, "failed": 0, "skipped": 2}
    assert said(post(client, post_body("success", test_results=counts)))[1] == {"ok": True, "status": "applied"}
    job = Job.objects.get()
    assert (job.repository, job.dispatch, job.delivery_id, job.event_type) == (kestrel, None, "d-1", "pull_request")
    assert (job.run_id, job.run_attempt, job.workflow, job.job_name, job.leg) == ("7", 1, "CI", "build", "456")
    assert (job.status, job.conclusion, job.bucket, job.total) == ("completed", "success", "success", 42)
    assert (job.flags, job.head_sha, job.pr_number) == (["relayed"], HEAD_SHA, PAYLOAD["number"])
    assert trust_of(job.bucket, flags=job.flags) == {
        "identity": "relay-verified",
        "timing": "self-reported",
        "conclusion": "self-reported",
        "counts": "self-reported",
    }
    claims = {"source": "relay", "repository": KESTREL, "downstream_repo_level": "L2"}
    assert list(Callback.objects.values_list("answer", "claims")) == [("applied", claims)] * 2


def test_its_page_says_whose_word_it_is(client: Client, kestrel: Any) -> None:
    post(client, post_body("success"))
    page = Page(client.get(f"/jobs/{Job.objects.get().public_id}/"))
    assert page.tables["figures"][0] == ("Identity", f"{KESTREL}, run 7", "◇ relay-verified")
    assert [row[0] for row in Page(client.get(f"/pr/{PAYLOAD['number']}/")).tables["nightlies"]] != []


def test_the_same_post_again_changes_nothing_and_another_end_stands_beside_it(client: Client, kestrel: Any) -> None:
    answers = [said(post(client, post_body(end)))[1]["status"] for end in ("", "", "success", "success", "failure")]
    assert answers == ["applied", "duplicate", "applied", "duplicate", "conflict"]
    assert Job.objects.get().conclusion == "success"


def test_a_null_measure_never_overwrites_a_value(client: Client, kestrel: Any) -> None:
    post(client, post_body(metrics={"queue_time": 61.4, "execution_time": None}))
    Wakeup.objects.all().delete()
    post(client, post_body("success", metrics={"queue_time": None, "execution_time": 600}))
    post(client, post_body("success", metrics={"queue_time": None, "execution_time": None}))
    job = Job.objects.get()
    assert (job.relay_queue_seconds, job.relay_execution_seconds, job.queue_seconds) == (61, 600, 61.0)
    assert list(Wakeup.objects.values_list("topic", "key")) == [
        ("job_changed", f"{kestrel.pk}:{job.first_seen_at.date()}")
    ]


def test_counts_and_times_that_an_end_leaves_out_stay_and_count(client: Client, kestrel: Any) -> None:
    """Failed tests that the start has told of make a success none."""
    done = "2026-11-30T20:05:00Z"
    counts = {"passed": 3, "failed": 1}
    post(client, post_body(test_results=counts, started_at="2026-11-30T20:00:00Z", completed_at=done))
    answers = [said(post(client, post_body("success", url=url)))[1]["status"] for url in ("https://a/1", "https://a/2")]
    assert answers == ["applied", "duplicate"]
    job = Job.objects.get()
    assert (job.passed, job.failed, job.skipped, job.total) == (3, 1, None, 4)
    told_at = datetime.datetime(2026, 11, 30, 20, 5, tzinfo=datetime.UTC)
    assert (job.conclusion, job.bucket, job.reported_completed_at) == ("success", "contradicted", told_at)
    more = {"passed": 5, "failed": 0, "skipped": 2}
    assert said(post(client, post_body("success", test_results=more)))[1]["status"] == "conflict"
    post(client, post_body(job_name="other", test_results=counts))
    post(client, post_body("success", job_name="other", test_results=more))
    other = Job.objects.get(job_name="other")
    assert (other.passed, other.failed, other.skipped, other.total, other.bucket) == (5, 0, 2, 7, "success")


def test_what_was_measured_of_an_end_that_does_not_stand_is_not_kept(client: Client, kestrel: Any) -> None:
    post(client, post_body("success", metrics={"queue_time": 1, "execution_time": 10}))
    answer = post(client, post_body("failure", metrics={"queue_time": 2, "execution_time": 99}))
    assert said(answer)[1]["status"] == "conflict"
    assert list(Job.objects.values_list("conclusion", "relay_queue_seconds", "relay_execution_seconds")) == [
        ("success", 1, 10)
    ]


def test_a_measure_that_comes_with_a_duplicate_is_kept_and_an_impossible_one_is_none(
    client: Client, kestrel: Any
) -> None:
    post(client, post_body(metrics={"queue_time": -5}))
    assert Job.objects.get().relay_queue_seconds is None
    assert said(post(client, post_body(metrics={"queue_time": 9})))[1]["status"] == "duplicate"
    assert Job.objects.get().relay_queue_seconds == 9


def test_below_l2_it_is_kept_privately(client: Client) -> None:
    listed({KESTREL: 1})
    assert said(post(client, post_body("success"))) == (200, {"ok": True, "status": "ignored"})
    assert (Job.objects.count(), Callback.objects.get().answer) == (0, "ignored")


@pytest.mark.parametrize("level", [0, 1])
def test_a_job_that_began_before_its_repository_was_lowered_ends_like_any_other(
    client: Client, kestrel: Any, level: int
) -> None:
    post(client, post_body())
    listed({KESTREL: level})
    assert said(post(client, post_body("success"))) == (200, {"ok": True, "status": "applied"})
    assert said(post(client, post_body("success", job_name="another"))) == (200, {"ok": True, "status": "ignored"})
    assert list(Job.objects.values_list("job_name", "conclusion")) == [("build", "success")]
    assert Callback.objects.filter(answer="ignored").count() == level


def test_an_unlisted_repository_is_ignored_and_its_name_stands_for_operators(client: Client) -> None:
    assert said(post(client, post_body("success", repository="who/knows"))) == (200, {"ok": True, "status": "ignored"})
    assert (Job.objects.count(), Callback.objects.count()) == (0, 0)
    assert list(Forward.objects.values_list("repository_name", "answer", "state")) == [("who/knows", "ignored", "kept")]


def test_a_nightly_is_one_informational_end(client: Client, kestrel: Any) -> None:
    body = post_body("success", event="nightly")
    body["untrusted"]["callback_payload"]["payload"] = {"head_sha": "ab" * 20}
    assert said(post(client, body))[1]["status"] == "applied"
    job = Job.objects.get()
    assert (job.event_type, job.head_sha, job.flags, job.pr_number) == ("nightly", "ab" * 20, ["relayed"], None)


@pytest.mark.parametrize("key", [None, "", "another", "ключ"])
def test_without_the_key_nothing_is_taken_and_it_is_counted(client: Client, kestrel: Any, key: str | None) -> None:
    answer = post(client, post_body(), key=key and key.encode().decode("latin-1"))
    assert refusal(answer) == (401, "bot_key_wrong", "x-hud-internal-bot")
    assert (Job.objects.count(), Forward.objects.count()) == (0, 0)
    assert Rejection.objects.get().code == "bot_key_wrong"


def test_a_hub_without_a_key_lets_nobody_in(client: Client) -> None:
    with override_settings(HUD_BOT_KEY=""):
        assert refusal(post(client, post_body(), key=""))[:2] == (401, "bot_key_wrong")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda body: body.pop("trusted"), "trusted"),
        (lambda body: body["trusted"].pop("verified_repo"), "trusted.verified_repo"),
        (lambda body: body["trusted"].update(verified_repo="a\x00/b"), "trusted.verified_repo"),
        (lambda body: body["trusted"].update(verified_repo=7), "trusted.verified_repo"),
        (lambda body: body["trusted"].update(downstream_repo_level=["L2"]), "trusted.downstream_repo_level"),
        (lambda body: body["trusted"].update(ci_metrics={"queue_time": "soon"}), "trusted.ci_metrics.queue_time"),
        (lambda body: body.update(untrusted=[]), "untrusted"),
        (lambda body: body["untrusted"].update(callback_payload=None), "untrusted.callback_payload"),
        (lambda body: body["untrusted"]["callback_payload"].update(workflow="x"), WORKFLOW),
    ],
)
def test_a_body_of_another_shape_is_refused_by_field(client: Client, kestrel: Any, change: Any, field: str) -> None:
    body = post_body()
    change(body)
    assert refusal(post(client, body)) == (400, "malformed", field)
    assert Forward.objects.count() == 0


@pytest.mark.parametrize("name", ["job_name", "check_run_id"])
@pytest.mark.parametrize("value", ["", None])
def test_job_name_and_check_run_id_are_required_here(client: Client, kestrel: Any, name: str, value: Any) -> None:
    assert refusal(post(client, post_body(**{name: value}))) == (400, "malformed", f"{WORKFLOW}.{name}")


def test_what_only_the_hub_refuses_still_goes_to_the_dashboard(client: Client, kestrel: Any) -> None:
    with override_settings(HUD_FORWARD_URL="http://127.0.0.1:9/"):
        answer = post(client, post_body("splendid"))
    assert refusal(answer) == (400, "malformed", f"{WORKFLOW}.conclusion")
    row = Forward.objects.get()
    assert (row.answer, row.state, json.loads(bytes(row.body))) == ("refused", "pending", post_body("splendid"))
    assert row.detail.startswith(f"{WORKFLOW}.conclusion: saw 'splendid', send one of ")


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"\xff", b'{"trusted": NaN}', b"[" * 100_000])
def test_what_is_no_json_object_is_malformed(client: Client, raw: bytes) -> None:
    assert refusal(post(client, raw))[:2] == (400, "malformed")


def test_two_megabytes_are_read_and_one_byte_more_is_not(client: Client, kestrel: Any) -> None:
    body = post_body("success")
    body["untrusted"]["callback_payload"]["payload"]["filler"] = ""
    body["untrusted"]["callback_payload"]["payload"]["filler"] = "x" * (BODY_MAX_BYTES - len(json.dumps(body)))
    assert said(post(client, body))[0] == 200
    body["untrusted"]["callback_payload"]["payload"]["filler"] += "x"
    assert refusal(post(client, body))[:2] == (413, "too_large")


def test_an_observer_takes_no_webhook_and_no_callback(client: Client, downstream: Any, kestrel: Any) -> None:
    answer = send_webhook(client, PAYLOAD)
    assert (answer.status_code, answer.json()["status"]) == (200, "ignored")
    assert refusal(downstream(KESTREL).start())[:2] == (409, "other_mode")
    assert list(Rejection.objects.values_list("code", flat=True)) == ["other_mode"]


def test_an_active_hub_takes_the_end_of_what_the_relay_had_dispatched_and_no_more(
    client: Client, downstream: Any, kestrel: Any
) -> None:
    post(client, post_body())
    downstream(KESTREL)
    with override_settings(MODE="active"):
        assert said(post(client, post_body("success"))) == (200, {"ok": True, "status": "applied"})
        send_webhook(client, PAYLOAD, delivery_id="d-2")
        tasks.fan_out_deliveries([str(Delivery.objects.get().pk)])
        answer = post(client, post_body("success", delivery_id="d-2"))
    assert refusal(answer)[:2] == (409, "other_mode")
    assert answer.json()["detail"] == "This hub runs in the mode active: it dispatched this delivery itself."
    assert list(Job.objects.values_list("delivery_id", "conclusion")) == [("d-1", "success")]
