"""Missed webhooks: found in GitHub's log, asked for again, shown as an outage, left out of vendors' times."""

import copy
import datetime
from collections.abc import Callable
from typing import Any

import pytest
from celery.signals import beat_init
from django.test import Client, override_settings

from apps.core import github
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.relay import lookups, missed, outbox, services
from apps.relay.models import Delivery, DeliveryLog, Dispatch, HubOutage, Job, MissedDelivery, UnreadLog
from apps.relay.tasks_upstream import compare_delivery_log
from apps.results import metrics, tasks
from apps.results.metrics import Figure, add
from apps.results.models import DayFigures
from apps.results.services import count_days
from apps.simulator.standin import GitHubStandIn
from tests.factories.figures import counted
from tests.factories.listing import listed
from tests.factories.pages import Page
from tests.relay.downstream import PAYLOAD, Downstream, send_webhook

pytestmark = pytest.mark.django_db
KESTREL = "kestrel-demo/torch-kestrel"
MINUTE = datetime.timedelta(minutes=1)


@pytest.fixture
def app(client: Client, github: GitHubStandIn) -> "App":
    return App(client, github)


class App:
    """The GitHub App's webhooks: each is logged; one that is not lost comes here."""

    def __init__(self, client: Client, github: GitHubStandIn) -> None:
        self.client, self.github = client, github
        self.again = github.hooks.asked
        self.upstream = github.add_repository("pytorch/pytorch").repository_id
        self.start = now() - datetime.timedelta(hours=2)
        missed.begin(now=self.start - 10 * MINUTE)

    def send(
        self, delivery_id: str, minutes: float = 0, *, event: str = "pull_request", repository_id: int | None = None
    ) -> None:
        """A webhook, so many minutes after the start."""
        body = copy.deepcopy(PAYLOAD)
        body["repository"]["id"] = repository_id or self.upstream
        status = 0
        if not self.github.hooks.is_dropped():
            status = self.post(event, delivery_id, body)
        self.github.hooks.record(event, delivery_id, body, status, at=self.start + minutes * MINUTE)

    def post(self, event: str, delivery_id: str, body: Any) -> int:
        return int(send_webhook(self.client, body, event=event, delivery_id=delivery_id).status_code)

    def send_again(self) -> None:
        """GitHub sends what it was asked for."""
        asked, self.again[:] = list(self.again), []
        for hook in asked:
            self.github.hooks.record(hook.event, hook.delivery_id, hook.body, 202)
            self.post(hook.event, hook.delivery_id, hook.body)


def outages() -> list[tuple[Any, ...]]:
    fields = ("started_at", "ended_at", "missed_count", "recovered_count", "lost_count")
    return list(missed.outages().values_list(*fields))


def test_what_was_missed_is_asked_for_and_comes(app: App) -> None:
    app.send("d-1", 0)
    app.github.hooks.drop(3)
    for n in range(3):
        app.send(f"gone-{n}", 5 + n)
    app.send("d-2", 20)
    assert missed.compare(now=now()) == 3
    begin, end = app.start + 5 * MINUTE, app.start + 7 * MINUTE
    begin, end = begin.replace(microsecond=0), end.replace(microsecond=0)
    assert outages() == [(begin, end, 3, 0, 0)]
    assert [hook.delivery_id for hook in app.again] == ["gone-0", "gone-1", "gone-2"]
    app.send_again()
    assert outages() == [(begin, end, 3, 3, 0)]
    rows = Delivery.objects.order_by("delivery_id").values_list("delivery_id", "is_late", "state")
    assert list(rows) == [
        ("d-1", False, "received"),
        ("d-2", False, "received"),
        *((f"gone-{n}", True, "received") for n in range(3)),
    ]
    assert missed.compare(now=now() + datetime.timedelta(hours=1)) == 0
    assert app.again == []


def test_comparing_again_asks_once_until_it_is_time(app: App) -> None:
    app.github.hooks.drop(1)
    app.send("gone")
    at = now()
    asked = []
    for minutes in (0, 1, 5, 11, 15, 23, 47, 110, 111, 113):
        missed.compare(now=at + minutes * MINUTE)
        asked.append(MissedDelivery.objects.get().attempts)
    assert (asked, len(app.again)) == ([1, 1, 2, 3, 4, 5, 6, 7, 7, 7], 7)
    assert (MissedDelivery.objects.get().state, outages()[0][2:]) == ("lost", (1, 0, 1))


def test_one_that_was_lost_and_comes_after_all_is_recovered(app: App) -> None:
    app.github.hooks.drop(1)
    app.send("gone")
    missed.compare(now=now())
    MissedDelivery.objects.update(state="lost")
    app.send_again()
    assert (MissedDelivery.objects.get().state, Delivery.objects.get().is_late) == ("recovered", True)


def test_only_upstreams_events_that_the_hub_takes_are_missed(app: App) -> None:
    # Answered elsewhere, or by this hub, which ignored it; the last at its second attempt.
    for minutes, (name, status) in enumerate([("a", 200), ("b", 202), ("c", 204), ("d", 502), ("d", 200)]):
        body = {"repository": {"id": app.upstream}}
        app.github.hooks.record("pull_request", name, body, status, at=app.start + minutes * MINUTE)
    app.github.hooks.drop(3)
    app.send("other-repository", repository_id=5)
    app.send("other-event", event="issues")
    app.github.hooks.record("pull_request", "on-its-way", {"repository": {"id": app.upstream}}, 0, at=now())
    assert (missed.compare(now=now()), HubOutage.objects.count()) == (0, 0)


def test_what_was_sent_before_the_hub_was_there_went_elsewhere(app: App) -> None:
    DeliveryLog.objects.all().delete()
    app.github.hooks.drop(2)
    app.send("before", 0)
    missed.compare(now=app.start + MINUTE)
    app.send("after", 2)
    assert missed.compare(now=now()) == 1
    assert list(MissedDelivery.objects.values_list("delivery_id", flat=True)) == ["after"]


def test_each_change_of_mode_begins_anew_and_gives_up_what_is_waited_for(app: App) -> None:
    app.github.hooks.drop(3)
    with override_settings(MODE="shadow"):
        missed.begin(now=app.start)
        app.send("in shadow", 1)
        assert missed.compare(now=app.start + 5 * MINUTE) == 1
        app.send("just before", 6)
        assert [hook.delivery_id for hook in app.again] == ["in shadow"]
    assert missed.compare(now=app.start + 8 * MINUTE) == 0
    app.send("active", 9)
    assert missed.compare(now=now()) == 1
    said = f"the hub runs in the mode active since {app.start + 8 * MINUTE:%Y-%m-%d %H:%M} UTC"
    rows = MissedDelivery.objects.order_by("delivered_at").values_list("delivery_id", "state", "error")
    assert list(rows) == [("in shadow", "lost", said), ("active", "missing", "")]
    assert [hook.delivery_id for hook in app.again] == ["in shadow", "active"]


def test_an_observer_compares_nothing_and_says_so(app: App, client: Client) -> None:
    app.github.hooks.drop(1)
    app.send("gone")
    with override_settings(MODE="observer"):
        assert [missed.compare(now=now()) for _ in range(2)] == [0, 0]
        assert "Outages are unknown" in Page(client.get("/status/")).text
    assert (missed.compare(now=now()), MissedDelivery.objects.count()) == (0, 0)


def test_beat_begins_when_it_starts(db: None) -> None:
    assert beat_init.send(sender=None)[0][1] is None
    log = DeliveryLog.objects.get()
    assert (log.mode, log.begun_at == log.compared_to == log.compared_at) == ("active", True)
    beat_init.send(sender=None)
    assert DeliveryLog.objects.get().begun_at == log.begun_at


def _fill(app: App, count: int, minutes: float) -> None:
    """So many webhooks of other repositories."""
    for n in range(count):
        at = app.start + minutes * MINUTE
        app.github.hooks.record("issues", f"i-{minutes}-{n}", {"repository": {"id": 5}}, 200, at=at)


def test_a_log_too_long_to_be_read_at_once_is_read_on_from_where_it_was_left(
    app: App, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(github, "LOG_PAGES_MAX", 1)
    app.github.hooks.drop(1)
    app.send("gone", 1)
    _fill(app, 250, 2)
    since, oldest = (app.start + minutes * MINUTE for minutes in (-10, 2))
    assert missed.compare(now=now()) == 0
    part = [(f"{since:%Y-%m-%d %H:%M:%S} UTC", f"{oldest:%Y-%m-%d %H:%M:%S} UTC", "still to be read")]
    assert Page(client.get("/status/")).tables["unread"] == part
    app.github.fail("/app/hook/deliveries", status=502)
    assert (missed.compare(now=now()), Page(client.get("/status/")).tables["unread"]) == (0, part)
    assert missed.compare(now=now()) == 1
    assert (MissedDelivery.objects.get().delivery_id, UnreadLog.objects.exists()) == ("gone", False)
    assert "unread" not in Page(client.get("/status/")).tables


@pytest.mark.parametrize("how", ["refused", "too late"])
def test_a_stretch_that_github_has_forgotten_stays_unknown(
    app: App, client: Client, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(github, "LOG_PAGES_MAX", 1)
    _fill(app, 250, 2)
    missed.compare(now=now())
    DeliveryLog.objects.update(compared_to=now())
    if how == "refused":
        UnreadLog.objects.update(cursor="of another time")
    missed.compare(now=now() + datetime.timedelta(days=4 if how == "too late" else 0))
    assert [row[2] for row in Page(client.get("/status/")).tables["unread"]] == ["not read any more"]


def test_outages_apart_are_two_and_one_that_is_found_in_between_joins(app: App) -> None:
    app.github.hooks.drop(10)
    app.send("a", 0)
    app.send("b", 30)
    assert missed.compare(now=now()) == 2
    assert [row[2] for row in outages()] == [1, 1]
    DeliveryLog.objects.update(compared_to=app.start)
    app.send("c", 14)
    assert missed.compare(now=now()) == 1
    assert [row[2] for row in outages()] == [1, 2]


def test_a_log_of_many_pages_is_read_back_to_the_last_comparison(app: App) -> None:
    for n in range(230):
        app.github.hooks.record("issues", f"i-{n}", {"repository": {"id": 5}}, 200, at=app.start)
    app.github.hooks.drop(1)
    app.send("gone", 1)
    for n in range(230):
        app.github.hooks.record("issues", f"j-{n}", {"repository": {"id": 5}}, 200, at=app.start + 2 * MINUTE)
    assert missed.compare(now=now()) == 1
    pages = len([r for r in app.github.requests if r.path == "/app/hook/deliveries"])
    assert pages == 5
    missed.compare(now=now())
    assert len([r for r in app.github.requests if r.path == "/app/hook/deliveries"]) == pages + 1


def test_when_github_is_silent_nothing_is_skipped(app: App) -> None:
    before = DeliveryLog.objects.get().compared_to
    app.github.hooks.drop(1)
    app.send("gone")
    app.github.fail("/app/hook/deliveries", status=502)
    assert missed.compare(now=now()) == 0
    log = DeliveryLog.objects.get()
    assert (log.compared_to, log.error) == (before, "GitHub answered 502")
    assert missed.compare(now=now()) == 1
    assert DeliveryLog.objects.get().error == ""


def test_a_redelivery_that_github_refuses_is_said_and_tried_again(app: App) -> None:
    app.github.hooks.drop(1)
    app.send("gone")
    app.github.fail("/attempts$", status=404)
    missed.compare(now=now())
    row = MissedDelivery.objects.get()
    assert (row.state, row.attempts, row.error) == ("missing", 1, "GitHub answered 404: Server Error")
    missed.compare(now=now() + 11 * MINUTE)
    assert (len(app.again), MissedDelivery.objects.get().error) == (1, "")


def test_times_of_what_came_late_are_not_the_vendors(
    app: App, downstream: Callable[..., Downstream], client: Client
) -> None:
    made, repository = downstream(KESTREL), listed({KESTREL: 2})[KESTREL]
    app.send("d-1")
    app.github.hooks.drop(1)
    app.send("gone", 3)
    missed.compare(now=now())
    app.send_again()
    for delivery in Delivery.objects.all():
        services.fan_out(delivery_pk=delivery.pk, now=now())
    for dispatch in Dispatch.objects.all():
        outbox.send_dispatch(dispatch_pk=dispatch.pk, now=now(), chance=0.5)
    for delivery_id in ("d-1", "gone"):
        made.post(made.body(delivery_id))
        made.post(made.body(delivery_id, conclusion="success"))
    assert [job.queue_seconds is None for job in Job.objects.order_by("delivery_id")] == [False, True]
    count_days([(repository.pk, now().date())], now=now())
    row = DayFigures.objects.get()
    assert (row.success, row.timed, row.queued, len(row.runs)) == (2, 2, 1, 1)
    note = "1 outage of the hub in this time"
    assert note in Page(client.get("/")).text
    assert note in Page(client.get(f"/platforms/{repository.platform.slug}/")).text


def test_an_end_that_may_have_been_lost_with_the_hub_counts_in_no_rate_until_it_comes(
    app: App, downstream: Callable[..., Downstream], client: Client
) -> None:
    made, repository = downstream(KESTREL), listed({KESTREL: 2})[KESTREL]
    app.send("d-1")
    services.fan_out(delivery_pk=Delivery.objects.get().pk, now=now())
    outbox.send_dispatch(dispatch_pk=Dispatch.objects.get().pk, now=now(), chance=0.5)
    made.post(made.body())
    made.post(made.body(job_name="after", check_run_id="7"))
    Job.objects.filter(job_name="build").update(first_seen_at=app.start, start_seen_at=app.start)
    Job.objects.filter(job_name="after").update(first_seen_at=app.start + 30 * MINUTE)
    later = app.start + datetime.timedelta(hours=7)
    for run, pks in lookups.silent_runs(now=later).items():
        lookups.close_silent(run=run, job_pks=pks, now=later)

    def figures() -> dict[str, Any]:
        days = {at.date() for at in Job.objects.values_list("first_seen_at", flat=True)}
        count_days([(repository.pk, day) for day in days], now=now())
        whole = add(counted(row) for row in DayFigures.objects.all())
        rates = metrics.figures(whole)
        return {bucket: n for bucket, n in whole.buckets.items() if n} | {"timeouts": rates["timeout_rate"]}

    assert figures() == {"timed_out": 2, "timeouts": Figure(1.0, 2, 2)}
    app.github.hooks.drop(1)
    app.send("gone", 10)
    Wakeup.objects.all().delete()
    assert [compare_delivery_log() for _ in range(2)] == [1, 0]
    assert list(Job.objects.order_by("pk").values_list("flags", flat=True)) == [["inferred", "unheard"], ["inferred"]]
    assert Wakeup.objects.filter(topic="job_changed").exists()
    assert figures() == {"timed_out": 1, "unheard": 1, "timeouts": Figure(1.0, 1, 1)}
    api = client.get("/api/v1/jobs/?delivery=d-1").json()["results"]
    assert {row["job_name"]: row["bucket"] for row in api} == {"build": "unheard", "after": "timed_out"}
    assert made.post(made.body(conclusion="success")).json()["status"] == "applied"
    assert (Job.objects.order_by("pk")[0].flags, figures()) == (
        [],
        {"success": 1, "timed_out": 1, "timeouts": Figure(0.5, 2, 1)},
    )


def test_a_silence_that_the_hub_may_have_missed_the_end_of_is_none(
    app: App, downstream: Callable[..., Downstream], client: Client
) -> None:
    downstream(KESTREL)
    repository = listed({KESTREL: 2}, now=app.start - datetime.timedelta(days=1))[KESTREL]
    app.send("d-1")
    services.fan_out(delivery_pk=Delivery.objects.get().pk, now=now())
    outbox.send_dispatch(dispatch_pk=Dispatch.objects.get().pk, now=now(), chance=0.5)
    sent_at = app.start - datetime.timedelta(hours=5)
    Dispatch.objects.update(sent_at=sent_at)

    def answers() -> tuple[Any, ...]:
        keys = list(Wakeup.objects.filter(topic="job_changed").values_list("key", flat=True))
        if keys:
            tasks.count_days(keys)
        body = client.get(f"/api/v1/repositories/{KESTREL}/metrics/").json()
        return tuple(body["figures"]["answer_rate"][name] for name in ("value", "part", "rows"))

    count_days([(repository.pk, sent_at.date())], now=now())
    assert answers() == (0, 0, 1)
    app.github.hooks.drop(1)
    app.send("gone", 10)
    Wakeup.objects.all().delete()
    assert compare_delivery_log() == 1
    assert list(Wakeup.objects.filter(topic="job_changed").values_list("key", flat=True)) == [
        f"{repository.pk}:{sent_at.date()}"
    ]
    assert answers() == (None, 0, 0)


def test_the_status_page_lists_outages(app: App, client: Client) -> None:
    DeliveryLog.objects.all().delete()
    assert "Outages are unknown" in Page(client.get("/status/")).text
    missed.begin(now=app.start)
    app.send("d-1")
    missed.compare(now=now())
    assert "No outage was found" in Page(client.get("/status/")).text
    app.github.hooks.drop(1)
    app.send("gone", 3)
    DeliveryLog.objects.update(compared_to=app.start)
    missed.compare(now=now())
    at = f"{app.start + 3 * MINUTE:%Y-%m-%d %H:%M:%S} UTC"
    page = Page(client.get("/status/"))
    assert page.tables["outages"] == [(at, at, "1", "0", "0")]
    assert page.facts["ages"]["Figures counted"] == "never"


@pytest.mark.parametrize("rows", [1, 3])
def test_the_page_asks_as_often_for_one_row_as_for_three(
    client: Client, rows: int, django_assert_num_queries: Any
) -> None:
    for n in range(rows):
        HubOutage.objects.create(started_at=now() - n * MINUTE, ended_at=now())
    with django_assert_num_queries(7):
        assert len(Page(client.get("/status/")).tables["outages"]) == rows
