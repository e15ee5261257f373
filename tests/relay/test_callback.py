"""`POST /github/callback`: identity, levels, the life of a job."""

import dataclasses
import datetime
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client, override_settings

from apps.audit.models import Event
from apps.core import alarms
from apps.core.clock import now
from apps.core.models import Alarm
from apps.platforms.models import Repository
from apps.relay import fields, limits, outbox
from apps.relay.models import Callback, Delivery, Dispatch, Job, Rejection
from apps.relay.services import fan_out
from apps.results.models import DayFigures
from apps.results.services import count_days
from apps.simulator.standin import GitHubStandIn
from tests.factories.listing import listed
from tests.live import redis_client
from tests.relay.downstream import HEAD_SHA, PAYLOAD, Downstream, answer, refusal, send_webhook

pytestmark = pytest.mark.django_db
Make = Callable[..., Downstream]
KESTREL, FEN = "kestrel-demo/torch-kestrel", "fen-demo/torch-fen"
APPLIED = (200, {"ok": True, "status": "applied", "job": True})
DUPLICATE = (200, {"ok": True, "status": "duplicate", "job": True})
LATE = (200, {"ok": True, "status": "late", "job": True})
IGNORED = (200, {"ok": True, "status": "ignored"})


def dispatch(client: Client, delivery_id: str = "d-1", body: Any = PAYLOAD, event: str = "pull_request") -> None:
    """A delivery that was sent to everyone listed now."""
    assert send_webhook(client, body, event=event, delivery_id=delivery_id).status_code == 202
    fan_out(delivery_pk=Delivery.objects.get(delivery_id=delivery_id).pk, now=now())
    for dispatch in Dispatch.objects.filter(delivery__delivery_id=delivery_id):
        outbox.send_dispatch(dispatch_pk=dispatch.pk, now=now(), chance=0.5)


@pytest.fixture
def kestrel(downstream: Make, client: Client) -> Downstream:
    """Listed at L2, with one delivery dispatched to it."""
    made = downstream(KESTREL, repository_id=5001, owner_id=6001)
    listed({KESTREL: 2})
    dispatch(client)
    return made


def jobs() -> list[tuple[Any, ...]]:
    return list(Job.objects.order_by("pk").values_list("status", "conclusion", "bucket", "flags"))


def answers() -> list[str]:
    return list(Callback.objects.order_by("pk").values_list("answer", flat=True))


def test_what_has_not_left_yet_cannot_be_answered(downstream: Make, client: Client) -> None:
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    send_webhook(client, PAYLOAD)
    fan_out(delivery_pk=Delivery.objects.get().pk, now=now())
    dispatch = Dispatch.objects.get()
    never_dispatched = (403, "never_dispatched", "delivery_id")
    assert (dispatch.state, refusal(made.start()), Job.objects.count()) == ("pending", never_dispatched, 0)
    Dispatch.objects.update(state="given_up", next_attempt_at=None)
    assert refusal(made.start()) == never_dispatched
    Dispatch.objects.update(state="pending", next_attempt_at=now())
    # GitHub may have taken what it did not answer.
    made.github.fail("/dispatches$", status=502)
    outbox.send_dispatch(dispatch_pk=dispatch.pk, now=now(), chance=0.5)
    dispatch.refresh_from_db()
    assert ((dispatch.state, dispatch.attempts), answer(made.start())) == (("pending", 1), APPLIED)


# --- the life of a job ------------------------------------------------------------------------------------------


def test_start_and_end_make_one_job_with_everything_said(kestrel: Downstream) -> None:
    results = {"passed": 42, "failed": 0, "skipped": 5, "total": 47}
    assert answer(kestrel.start()) == APPLIED
    assert jobs() == [("in_progress", "", "in_progress", [])]
    response = kestrel.end(test_results=results, artifact_url="https://example.org/a.zip")
    assert answer(response) == APPLIED
    job = Job.objects.get()
    assert response.json()["job"] == f"{settings.BASE_URL}/jobs/{job.public_id}/"
    said = {
        name: getattr(job, name)
        for name in (
            *("delivery_id", "event_type", "run_id", "run_attempt", "workflow", "job_name", "leg", "check_run_id"),
            *("url", "artifact_url", "head_sha", "pr_number", "status", "conclusion", "bucket", "flags"),
            *("passed", "failed", "skipped", "total", "revision"),
        )
    }
    assert said == {
        "delivery_id": "d-1",
        "event_type": "pull_request",
        "run_id": kestrel.run_id,
        "run_attempt": 1,
        "workflow": "CI",
        "job_name": "build",
        "leg": "456",
        "check_run_id": "456",
        "url": f"https://github.com/{KESTREL}/actions/runs/{kestrel.run_id}",
        "artifact_url": "https://example.org/a.zip",
        "head_sha": HEAD_SHA,
        "pr_number": 184233,
        "status": "completed",
        "conclusion": "success",
        "bucket": "success",
        "flags": [],
        "passed": 42,
        "failed": 0,
        "skipped": 5,
        "total": 47,
        "revision": 1,
    }
    assert job.dispatch == Dispatch.objects.get(repository__full_name=KESTREL)
    assert (job.reported_seconds, job.completed_at is not None, job.start_seen_at == job.first_seen_at) == (
        715.0,
        True,
        True,
    )
    kept = Callback.objects.order_by("pk").values_list("answer", "report__status", "claims__run_id", "job")
    assert list(kept) == [
        ("applied", "in_progress", kestrel.run_id, job.pk),
        ("applied", "completed", kestrel.run_id, job.pk),
    ]


def test_duplicates_answer_so_and_change_nothing(kestrel: Downstream) -> None:
    def rows() -> list[Any]:
        return [*Job.objects.values(), *Callback.objects.values()]

    kestrel.start()
    before = rows()
    assert answer(kestrel.start()) == DUPLICATE
    assert rows() == before
    kestrel.end()
    before = rows()
    assert [answer(kestrel.end()), answer(kestrel.start())] == [DUPLICATE, DUPLICATE]
    assert rows() == before


def test_an_end_whose_start_was_lost_is_kept_and_flagged(kestrel: Downstream) -> None:
    assert answer(kestrel.end("failure")) == APPLIED
    assert jobs() == [("completed", "failure", "failure", ["start_lost"])]
    assert Job.objects.get().start_seen_at is None


def test_a_start_that_comes_long_after_the_end_says_nothing_about_times(kestrel: Downstream) -> None:
    Dispatch.objects.update(sent_at=now() - datetime.timedelta(hours=3))
    assert [answer(kestrel.end()), answer(kestrel.start())] == [APPLIED, LATE]
    job = Job.objects.get()
    assert (job.flags, job.queue_seconds, job.execution_seconds) == (["late_start"], None, None)
    count_days([(job.repository_id, job.first_seen_at.date())], now=now())
    row = DayFigures.objects.get(day=job.first_seen_at.date())
    assert (row.success, row.queued, row.queue_seconds, row.timed, row.runs) == (1, 0, 0, 0, [])
    assert row.last_callback_at == job.start_seen_at


def test_a_late_start_only_fills_in_the_start(kestrel: Downstream) -> None:
    kestrel.end("failure")
    before = Job.objects.values().get()
    assert answer(kestrel.start()) == LATE
    after = Job.objects.values().get()
    changed = {name for name, value in after.items() if dict(before)[name] != value}
    assert changed == {"reported_started_at", "start_seen_at", "flags", "revision"}
    assert (after["flags"], answers()) == (["late_start"], ["applied", "late"])
    assert answer(kestrel.start()) == DUPLICATE


@pytest.mark.parametrize(
    "other",
    [
        {"conclusion": "success"},
        {"conclusion": "failure", "test_results": {"passed": 1, "failed": 2, "skipped": 0}},
    ],
)
def test_another_end_is_refused_and_kept_on_record(kestrel: Downstream, other: dict[str, Any]) -> None:
    kestrel.start()
    kestrel.end("failure", test_results={"passed": 2, "failed": 1, "skipped": 0})
    before = Job.objects.values().get()
    for _ in range(2):
        assert refusal(kestrel.end(**other)) == (409, "completion_conflict", "workflow.conclusion")
    assert Job.objects.values().get() == before
    assert answers() == ["applied", "applied", "conflict"]
    conflict = Callback.objects.get(answer="conflict")
    assert (conflict.job_id, conflict.report["conclusion"]) == (before["id"], other["conclusion"])
    assert list(Rejection.objects.values_list("code", "count")) == [("completion_conflict", 2)]


def test_a_success_with_failed_tests_is_contradicted(kestrel: Downstream) -> None:
    assert answer(kestrel.end(test_results={"passed": 9, "failed": 1, "skipped": 0})) == APPLIED
    assert jobs() == [("completed", "success", "contradicted", ["start_lost"])]


def test_attempts_legs_names_and_runs_are_jobs_of_their_own(kestrel: Downstream) -> None:
    kestrel.start()
    kestrel.start(check_run_id="457")
    kestrel.start(leg="cuda-12")
    kestrel.start(job_name="test")
    kestrel.start(name="Nightly CI")
    again = kestrel.body(run_attempt="2", check_run_id="458")
    assert answer(kestrel.post(again, token=kestrel.token(run_attempt="2"))) == APPLIED
    assert list(Job.objects.order_by("pk").values_list("workflow", "job_name", "leg", "run_attempt")) == [
        ("CI", "build", "456", 1),
        ("CI", "build", "457", 1),
        ("CI", "build", "cuda-12", 1),
        ("CI", "test", "456", 1),
        ("Nightly CI", "build", "456", 1),
        ("CI", "build", "458", 2),
    ]


def test_the_same_job_in_other_letters_of_its_ids_is_the_same_job(kestrel: Downstream) -> None:
    kestrel.start()
    assert answer(kestrel.start(run_id=int(kestrel.run_id), run_attempt=1, check_run_id=456)) == DUPLICATE


def test_long_names_full_of_emoji_have_a_place(kestrel: Downstream) -> None:
    long = "🦅🔥" * 150
    assert answer(kestrel.start(job_name=long, name=long, leg="🦅" * 200)) == APPLIED
    assert answer(kestrel.start(job_name=long, name=long, leg="🦅" * 200)) == DUPLICATE
    assert answer(kestrel.start(job_name=long[:-1], name=long, leg="🦅" * 200)) == APPLIED


def test_commit_and_pull_request_come_from_our_delivery_never_from_the_body(kestrel: Downstream) -> None:
    body = kestrel.body()
    body["event_type"] = "push"
    body["payload"]["pull_request"]["head"]["sha"] = "f" * 40
    body["payload"]["pull_request"]["number"] = body["payload"]["number"] = 1
    body["payload"]["head_sha"] = "e" * 40
    assert answer(kestrel.post(body)) == APPLIED
    assert list(Job.objects.values_list("event_type", "head_sha", "pr_number")) == [("pull_request", HEAD_SHA, 184233)]


@pytest.mark.parametrize("event", ["nightly", "periodic"])
def test_a_nightly_is_one_informational_callback_without_a_dispatch(kestrel: Downstream, event: str) -> None:
    body = kestrel.body("f" * 40, conclusion="success") | {"event_type": event, "payload": {"head_sha": "f" * 40}}
    assert answer(kestrel.post(body)) == APPLIED
    job = Job.objects.get()
    assert (job.event_type, job.head_sha, job.pr_number, job.dispatch, job.flags) == (event, "f" * 40, None, None, [])
    assert answer(kestrel.post(body)) == DUPLICATE


def test_a_nightly_that_names_a_delivery_does_not_stand_for_it(kestrel: Downstream) -> None:
    body = kestrel.body("d-1", conclusion="success") | {"event_type": "nightly"}
    assert answer(kestrel.post(body)) == APPLIED
    job = Job.objects.get()
    assert (job.event_type, job.head_sha, job.pr_number, job.dispatch) == ("nightly", "", None, None)


# --- levels -----------------------------------------------------------------------------------------------------


def test_l1_goes_through_the_same_checks_and_is_kept_privately(downstream: Make, client: Client) -> None:
    pallas = downstream("pallas-demo/torch-pallas")
    listed({"pallas-demo/torch-pallas": 1})
    dispatch(client)
    body = pallas.body()
    assert [answer(pallas.post(body)), answer(pallas.post(body)), answer(pallas.end())] == [IGNORED] * 3
    assert jobs() == []
    assert answers() == ["ignored", "ignored"]
    assert refusal(pallas.start(run_id="abc")) == (400, "malformed", "workflow.run_id")
    assert refusal(pallas.post(pallas.body("d-2"))) == (403, "never_dispatched", "delivery_id")


def test_an_unlisted_repository_is_answered_the_same_and_nothing_is_kept(downstream: Make, client: Client) -> None:
    stranger, former = downstream("stranger-demo/x"), downstream(FEN)
    listed({FEN: 2})
    dispatch(client)
    listed({KESTREL: 2})
    assert Repository.objects.get(full_name=FEN).level == 0
    assert [answer(stranger.start()), answer(former.start())] == [IGNORED, IGNORED]
    assert refusal(stranger.start(run_id="abc")) == (400, "malformed", "workflow.run_id")
    assert (Job.objects.count(), Callback.objects.count(), Rejection.objects.count()) == (0, 0, 0)


@pytest.mark.parametrize("level", [2, 3, 4])
def test_from_l2_on_callbacks_are_public_jobs(downstream: Make, client: Client, level: int) -> None:
    made = downstream(KESTREL)
    listed({KESTREL: level})
    dispatch(client)
    assert answer(made.start()) == APPLIED


# --- who is speaking --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/github/callback", "/github/callback/"])
def test_both_spellings_of_the_address_take_a_post(kestrel: Downstream, path: str) -> None:
    assert answer(kestrel.post(kestrel.body(), path=path)) == APPLIED


@pytest.mark.parametrize("method", ["get", "put", "delete", "patch", "head"])
def test_only_post_is_answered(client: Client, method: str) -> None:
    response = getattr(client, method)("/github/callback")
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")


def test_without_a_token_or_with_a_bad_one_it_is_401_and_counted(kestrel: Downstream) -> None:
    assert refusal(kestrel.post(kestrel.body(), token="")) == (401, "token_missing", None)
    assert refusal(kestrel.post(kestrel.body(), token="x.y.z")) == (401, "token_invalid", None)
    for _ in range(3):
        assert refusal(kestrel.post(kestrel.body(), token=kestrel.token(exp=1))) == (401, "token_expired", "exp")
    foreign = kestrel.token(iss="https://evil.example")
    assert refusal(kestrel.post(kestrel.body(), token=foreign)) == (401, "token_invalid", "iss")
    assert jobs() == []
    counted = Rejection.objects.order_by("code", "reason").values_list(
        "issuer", "repository_claim", "repository_id_claim", "code", "reason", "count"
    )
    assert list(counted) == [
        (kestrel.github.url, "", "", "token_expired", "expired", 3),
        ("", "", "", "token_invalid", "not a JWT", 1),
        ("", "", "", "token_invalid", "unknown issuer", 1),
        ("", "", "", "token_missing", "no bearer token", 1),
    ]


@pytest.mark.parametrize("header", ["Basic abc", "Bearer", "Bearer ", "bearer\t", "x" * 20_000])
def test_an_authorization_that_is_no_bearer_token_is_refused(client: Client, header: str) -> None:
    response = client.post(
        "/github/callback", b"{}", content_type="application/json", headers={"Authorization": header}
    )
    assert refusal(response) == (401, "token_missing", None)


def test_a_refusal_names_no_token_text(kestrel: Downstream) -> None:
    token = kestrel.token(exp=1)
    text = kestrel.post(kestrel.body(), token=token).content.decode()
    assert not any(part in text for part in token.split("."))


@pytest.mark.parametrize(
    ("change", "field"), [({"run_id": "999"}, "workflow.run_id"), ({"run_attempt": "2"}, "workflow.run_attempt")]
)
def test_a_body_that_the_token_contradicts_is_refused(kestrel: Downstream, change: dict[str, str], field: str) -> None:
    assert refusal(kestrel.start(**change)) == (403, "claims_contradict", field)
    assert list(Rejection.objects.values_list("code", "repository__full_name", "repository_id_claim")) == [
        ("claims_contradict", KESTREL, "5001")
    ]


def test_a_delivery_that_was_never_sent_to_this_repository_is_refused(
    downstream: Make, kestrel: Downstream, client: Client
) -> None:
    fen = downstream(FEN)
    listed({KESTREL: 2, FEN: 2})
    assert refusal(fen.start()) == (403, "never_dispatched", "delivery_id")
    assert refusal(kestrel.post(kestrel.body("no such delivery"))) == (403, "never_dispatched", "delivery_id")
    assert jobs() == []


def test_ids_are_pinned_when_listed_through_githubs_api(downstream: Make) -> None:
    from apps.platforms.tasks import pin_repository

    downstream(KESTREL, repository_id=5001, owner_id=6001)
    repository = listed({KESTREL: 2})[KESTREL]
    pin_repository(repository.pk)
    repository.refresh_from_db()
    assert (repository.github_id, repository.github_owner_id, repository.pin_source) == (5001, 6001, "github_api")
    event = Event.objects.order_by("-seq")[0]
    assert (event.action, event.actor_kind, event.is_decision) == ("repository.identity_pinned", "hub", False)


def test_what_github_answers_to_the_question_for_ids_is_kept() -> None:
    from apps.platforms.tasks import pin_repository

    repository = listed({KESTREL: 2})[KESTREL]
    pin_repository(repository.pk)
    repository.refresh_from_db()
    assert repository.pin_refusal.startswith("GitHub ")
    assert repository.pin_refused_at is not None


def test_the_first_callback_asks_github_when_nobody_has_yet(kestrel: Downstream) -> None:
    before = len(kestrel.github.requests)
    kestrel.start()
    pins = Repository.objects.values_list("github_id", "github_owner_id", "pin_source")
    assert list(pins) == [(5001, 6001, "github_api")]
    asked = [r.path for r in kestrel.github.requests[before:] if r.path.startswith("/repos/")]
    assert asked == [f"/repos/{KESTREL}"]


def test_where_github_cannot_be_asked_the_first_sight_is_pinned_and_flagged(kestrel: Downstream) -> None:
    kestrel.github.fail("^/repos/", status=503, times=10)
    assert answer(kestrel.start()) == APPLIED
    pins = Repository.objects.values_list("github_id", "github_owner_id", "pin_source")
    assert list(pins) == [(5001, 6001, "first_sight")]
    page = kestrel.client.get("/platforms/kestrel-demo-torch-kestrel/").content.decode()
    assert "first callback, GitHub could not be asked" in page


def test_a_first_sight_is_confirmed_or_corrected_once_github_answers(kestrel: Downstream) -> None:
    from apps.platforms.tasks import pin_repository

    kestrel.github.fail("^/repos/", status=503, times=10)
    kestrel.post(kestrel.body(), token=kestrel.token(repository_id="666", repository_owner_id="667"))
    assert list(Repository.objects.values_list("github_id", "pin_source")) == [(666, "first_sight")]
    kestrel.github.heal()
    pin_repository(Repository.objects.get().pk)
    assert list(Repository.objects.values_list("github_id", "pin_source")) == [(5001, "github_api")]
    event = Event.objects.order_by("-seq")[0]
    assert (event.action, event.is_decision) == ("repository.identity_repinned", True)
    assert answer(kestrel.start(job_name="test")) == APPLIED


@pytest.mark.parametrize("ids", [{"repository_id": "5002"}, {"repository_id": "5002", "repository_owner_id": "6002"}])
def test_a_name_with_other_ids_is_refused_and_shown_to_its_platform(kestrel: Downstream, ids: dict[str, str]) -> None:
    kestrel.start()
    before = Job.objects.values().get()
    response = kestrel.post(kestrel.body(conclusion="success"), token=kestrel.token(**ids))
    assert refusal(response) == (403, "identity_replaced", "repository_id")
    assert Job.objects.values().get() == before
    assert list(Rejection.objects.values_list("code", "repository__full_name", "count")) == [
        ("identity_replaced", KESTREL, 1)
    ]
    repository = Repository.objects.get()
    assert list(Alarm.objects.values_list("kind", "key", "detail", "times")) == [
        ("identity_replaced", str(repository.pk), response.json()["detail"], 1)
    ]


def test_who_is_no_longer_listed_is_ignored_whatever_its_ids(kestrel: Downstream) -> None:
    kestrel.start()
    listed({FEN: 2})
    assert answer(kestrel.post(kestrel.body(), token=kestrel.token(repository_id="666"))) == IGNORED
    assert Rejection.objects.count() == 0


def test_a_repository_listed_under_its_new_name_takes_its_identity_along(kestrel: Downstream, client: Client) -> None:
    kestrel.start()
    kestrel.github.rename_repository(KESTREL, "kestrel-demo/renamed")
    listed({"kestrel-demo/renamed": 2})
    dispatch(client, "d-2")
    renamed = Downstream("kestrel-demo/renamed", kestrel.github, kestrel.client, kestrel.run_id)
    assert answer(renamed.post(renamed.body("d-2"))) == APPLIED
    assert list(Repository.objects.order_by("pk").values_list("full_name", "level", "github_id")) == [
        (KESTREL, 0, None),
        ("kestrel-demo/renamed", 2, 5001),
    ]
    event = Event.objects.order_by("-seq")[0]
    assert (event.action, event.is_decision) == ("repository.identity_pinned", True)


def test_an_operator_pins_a_replaced_repository_anew(kestrel: Downstream) -> None:
    kestrel.start()
    ids = kestrel.github.replace_repository(KESTREL)
    assert refusal(kestrel.end()) == (403, "identity_replaced", "repository_id")
    call_command("platform", "repin", KESTREL)
    assert list(Repository.objects.values_list("github_id", "github_owner_id")) == [(ids.repository_id, ids.owner_id)]
    assert answer(kestrel.end()) == APPLIED
    event = Event.objects.order_by("-seq")[0]
    assert (event.action, event.actor_kind, event.is_decision) == ("repository.identity_repinned", "command", True)


def test_counts_that_do_not_add_up_are_flagged(kestrel: Downstream) -> None:
    assert answer(kestrel.end(test_results={"passed": 50, "failed": 0, "skipped": 0, "total": 2})) == APPLIED
    assert jobs() == [("completed", "success", "success", ["counts_differ", "start_lost"])]


def test_an_end_without_an_artifact_keeps_the_one_that_the_start_named(kestrel: Downstream) -> None:
    kestrel.start(artifact_url="https://example.org/a.zip")
    kestrel.end()
    assert Job.objects.get().artifact_url == "https://example.org/a.zip"


def test_a_body_kept_at_l1_can_conflict_later_on_record(kestrel: Downstream) -> None:
    listed({KESTREL: 1})
    kestrel.end("failure")
    listed({KESTREL: 2})
    kestrel.end("success")
    assert refusal(kestrel.end("failure")) == (409, "completion_conflict", "workflow.conclusion")
    assert answers() == ["ignored", "applied", "conflict"]


def test_the_same_ids_under_a_new_name_are_the_same_repository(kestrel: Downstream) -> None:
    kestrel.start()
    kestrel.github.rename_repository(KESTREL, "kestrel-demo/renamed")
    renamed = Downstream("kestrel-demo/renamed", kestrel.github, kestrel.client, kestrel.run_id)
    assert answer(renamed.end()) == APPLIED
    assert jobs() == [("completed", "success", "success", [])]


@pytest.mark.parametrize(
    "sub",
    [f"repo:{KESTREL}:ref:refs/heads/main", "repo:kestrel-demo@6001/torch-kestrel@5001:ref:refs/heads/main", None],
)
def test_both_spellings_of_sub_are_accepted_since_the_ids_are_what_is_checked(kestrel: Downstream, sub: Any) -> None:
    assert answer(kestrel.post(kestrel.body(), token=kestrel.token(sub=sub))) == APPLIED
    assert "sub" not in Callback.objects.get().claims


def test_a_token_without_the_needed_claims_maps_to_nothing(kestrel: Downstream) -> None:
    token = kestrel.token(repository_id=None)
    assert refusal(kestrel.post(kestrel.body(), token=token)) == (403, "identity_unknown", "repository_id")


# --- hostile bodies, at the edge --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", (400, "malformed", None)),
        (b"[" * 100_000, (400, "malformed", None)),
        (b'{"a":' * 100_000, (400, "malformed", None)),
        (b"\xff", (400, "malformed", None)),
        (b"1" * 5_000, (400, "malformed", None)),
        (b" " * (fields.BODY_MAX_BYTES + 1), (413, "too_large", None)),
    ],
)
def test_bytes_that_are_no_callback(kestrel: Downstream, raw: bytes, expected: Any) -> None:
    assert refusal(kestrel.post(raw)) == expected


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"run_id": "abc"}, "workflow.run_id"),
        ({"run_attempt": 10**12}, "workflow.run_attempt"),
        ({"job_name": "x" * 12_000}, "workflow.job_name"),
        ({"job_name": "a\x00b"}, "workflow.job_name"),
        ({"name": "\ud800"}, "workflow.name"),
        ({"url": "javascript:alert(1)"}, "workflow.url"),
        ({"url": "https://github.com@evil.example/"}, "workflow.url"),
        ({"url": "https://ci.example/\x01"}, "workflow.url"),
        ({"url": "https://ci.example/\u202e"}, "workflow.url"),
        ({"test_results": {"failed": 10**30}}, "workflow.test_results.failed"),
        ({"status": {"a": 1}}, "workflow.status"),
    ],
)
def test_a_hostile_field_is_a_400_that_names_it(kestrel: Downstream, change: dict[str, Any], field: str) -> None:
    assert refusal(kestrel.start(**change)) == (400, "malformed", field)
    assert (jobs(), Rejection.objects.count()) == ([], 0)


def test_extreme_times_are_kept_as_said_and_flagged_and_no_window_reads_them(kestrel: Downstream) -> None:
    kestrel.start(started_at="9999-12-31T23:59:59Z")
    assert answer(kestrel.end(completed_at="0001-01-01T00:00:00Z")) == APPLIED
    job = Job.objects.get()
    assert job.reported_started_at == datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)
    assert job.reported_completed_at == datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)
    assert (job.reported_seconds, job.flags, job.trust["timing"]) == (None, ["absurd_times"], "contradicted")
    day = job.first_seen_at.date()
    assert abs(datetime.datetime.now(datetime.UTC).date() - day) <= datetime.timedelta(days=1)
    count_days([(job.repository_id, day)], now=job.first_seen_at)
    figures = DayFigures.objects.get()
    assert (figures.day, figures.success, figures.overrun) == (day, 1, 0)
    assert [seconds < 600 for seconds in figures.runs] == [True]
    assert kestrel.client.get(f"/jobs/{job.public_id}/").status_code == 200


# --- the rate limit ---------------------------------------------------------------------------------------------


def test_past_the_limit_a_repository_is_told_how_long_to_wait(
    kestrel: Downstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LIMIT", dataclasses.replace(limits.LIMIT, per_minute=3))
    assert [kestrel.start(job_name=str(n)).status_code for n in range(4)] == [200, 200, 200, 429]
    response = kestrel.start(job_name="5")
    assert refusal(response) == (429, "rate_limited", None)
    assert 1 <= int(response.headers["Retry-After"]) <= 60
    assert list(Rejection.objects.values_list("code", "count", "repository_claim", "repository__full_name")) == [
        ("rate_limited", 2, KESTREL, KESTREL)
    ]


def test_65_jobs_of_one_run_that_start_together_pass(kestrel: Downstream) -> None:
    assert {kestrel.start(job_name=f"shard {n}").status_code for n in range(65)} == {200}


def test_a_refused_call_does_not_lengthen_the_wait(kestrel: Downstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LIMIT", dataclasses.replace(limits.LIMIT, per_minute=2))
    kestrel.start(job_name="1"), kestrel.start(job_name="2")
    waits = [int(kestrel.start(job_name="3").headers["Retry-After"]) for _ in range(5)]
    assert waits == sorted(waits, reverse=True)
    # Only what was taken stands in the window: five refused calls are not in it.
    with redis_client() as redis:
        (key,) = redis.keys("limits*callback*")
        assert redis.llen(key) == 2


def test_without_redis_callbacks_still_land_and_operators_are_alarmed(
    kestrel: Downstream, caplog: pytest.LogCaptureFixture
) -> None:
    alarms.forget()
    with override_settings(REDIS_URL="unix:///nowhere/redis.sock"):
        assert [answer(kestrel.start()), answer(kestrel.start()), answer(kestrel.end())] == [
            *(APPLIED, DUPLICATE, APPLIED)
        ]
    said = "Redis does not answer, so the limit of callbacks of this repository is not applied: "
    rows = list(Alarm.objects.values_list("kind", "key", "detail", "times"))
    assert [(kind, key, detail.startswith(said), times) for kind, key, detail, times in rows] == [
        ("limit_open", "callback", True, 1)
    ]
    # Once a minute, however many callbacks there are.
    assert [record.levelname for record in caplog.records if said in record.getMessage()] == ["ERROR"]


def test_answers_never_hold_a_500(kestrel: Downstream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every field of the table in turn set to each of these, over HTTP: the answer names what is wrong, or takes it."""
    values: list[Any] = [None, "", [], {}, 0, -1, 1.5, True, "x", "\x00", "\ud800", 10**25, "9" * 400, ["\x00"]]
    monkeypatch.setattr(limits, "LIMIT", dataclasses.replace(limits.LIMIT, per_minute=10_000))
    seen = set()
    for row in fields.FIELDS:
        for value in values:
            body = kestrel.body(conclusion="success")
            node: Any = body
            *parents, name = row.path.split(".")
            for parent in parents:
                node = node.setdefault(parent, {})
            node[name] = value
            seen.add(kestrel.post(json.dumps(body).encode()).status_code)
    assert seen == {200, 400, 403, 409}


def test_the_stand_in_speaks_for_a_repository_that_github_does_not_know(github: GitHubStandIn) -> None:
    with pytest.raises(KeyError):
        github.mint_token("nobody/nothing", audience="x", run_id="1")
