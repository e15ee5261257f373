"""Weeks of history through the front door: a real hub, a real worker, and rows that lie in the days they pretend."""

import dataclasses
import datetime
import json
import operator
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.test import override_settings

from apps.audit.models import Event as AuditEvent
from apps.core import clock
from apps.core import github as core_github
from apps.core.enums import Kind
from apps.core.github import GitHubClient
from apps.core.models import Installation
from apps.relay import identity, missed
from apps.relay.models import Callback, Delivery, DeliveryLog, Dispatch, Job
from apps.simulator import history
from apps.simulator.characters import CHARACTERS
from apps.simulator.days import MARGIN, WEEKEND_EVENTS, WORKDAY_EVENTS, days_of
from apps.simulator.dispatches import Dispatch as Received
from apps.simulator.history import History, Refused, fill
from apps.simulator.plan import plan
from apps.simulator.reporter import wants
from apps.simulator.standin import GitHubStandIn
from apps.simulator.upstream import Upstream
from tests.factories.listing import listed
from tests.live import Hub, Worker, redis_client
from tests.simulator.tiny_hub import AUDIENCE, DISPATCHED, SECRET, TinyHub

KESTREL, PALLAS, QUARRY, TARN = CHARACTERS[0], CHARACTERS[2], CHARACTERS[5], CHARACTERS[7]
SABLE, ROOK, VESPER = CHARACTERS[11:]
WREN = CHARACTERS[4]
SABLE_ID = str(SABLE.repository_id)
UNTIL = datetime.datetime(2026, 3, 20, 18, tzinfo=datetime.UTC)  # a Friday


def an_upstream(hub_url: str = "http://127.0.0.1:9", seed: int = 1) -> Upstream:
    return Upstream(hub_url=hub_url, webhook_secret=SECRET, repository="pytorch/pytorch", seed=seed)


# --- the calendar -----------------------------------------------------------------------------------------------


def test_the_days_can_be_had_again_and_another_seed_has_others() -> None:
    first = days_of(an_upstream(), seed=1, days=30, until=UNTIL)
    assert first == days_of(an_upstream(), seed=1, days=30, until=UNTIL)
    assert first != days_of(an_upstream(seed=2), seed=2, days=30, until=UNTIL)


def test_days_are_whole_in_order_thin_at_weekends_and_end_in_the_past() -> None:
    days = days_of(an_upstream(), seed=1, days=30, until=UNTIL)
    times = [at for day in days for at, _ in day.events]
    assert times == sorted(times)
    assert times[0].date() == datetime.date(2026, 2, 18)
    assert times[-1] < UNTIL - MARGIN
    assert [day.end for day in days] == sorted(day.end for day in days)
    assert days[-1].end == (UNTIL - MARGIN).timestamp()
    by_day = Counter(at.date() for at in times)
    assert all(
        count <= WEEKEND_EVENTS[1] if day.weekday() > 4 else count >= WORKDAY_EVENTS[0]
        for day, count in by_day.items()
        if day != UNTIL.date()
    )
    for at, event in days[3].events:
        stamp = event.body["pull_request"]["updated_at"] if "pull_request" in event.body else at.isoformat()
        assert stamp[:16] == at.isoformat()[:16]


# --- against a small hub ----------------------------------------------------------------------------------------


def play(github: GitHubStandIn, hub: TinyHub, characters: Any = CHARACTERS, *, days: int = 1) -> history.Filled:
    return fill(
        github,
        hub_url=hub.url,
        webhook_secret=SECRET,
        audience=AUDIENCE,
        upstream="pytorch/pytorch",
        days=days,
        until=UNTIL,
        characters=characters,
    )


def test_every_callback_names_its_time_and_those_of_a_job_keep_their_order(
    github: GitHubStandIn, tiny_hub: TinyHub
) -> None:
    for character in CHARACTERS:
        github.add_repository(character.full_name)
    filled = play(github, tiny_hub)
    assert filled.callbacks == len(tiny_hub.callbacks) > 100
    assert filled.dispatches == filled.events * len(DISPATCHED)
    seen: dict[str, list[str]] = {}
    for (_, body), told in zip(tiny_hub.callbacks, tiny_hub.clocks, strict=True):
        workflow = body["workflow"]
        assert (workflow["started_at"] or workflow["completed_at"]) == told.replace("+00:00", "Z")
        assert datetime.datetime.fromisoformat(told) < UNTIL
        seen.setdefault(workflow["check_run_id"], []).append(workflow["status"])
    assert {tuple(statuses) for statuses in seen.values()} <= {
        ("in_progress",),
        ("in_progress", "completed"),
        ("completed",),  # of a night
    }
    assert all(callback.due >= (UNTIL - MARGIN).timestamp() for callback in filled.left)
    assert filled.left, "slow jobs run on into the present"


def test_a_platform_that_is_not_dispatched_to_holds_nothing_up(
    github: GitHubStandIn, tiny_hub: TinyHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "QUIET_SECONDS", 2.0)
    stranger = dataclasses.replace(PALLAS, full_name="gone-demo/gone", repository_id=1)
    for character in CHARACTERS:
        github.add_repository(character.full_name)
    filled = play(github, tiny_hub, [*CHARACTERS, stranger])
    assert filled.dispatches == filled.events * len(DISPATCHED)


def test_a_hub_that_is_no_demo_is_left_alone(github: GitHubStandIn, tiny_hub: TinyHub) -> None:
    tiny_hub.takes_clock = False
    with pytest.raises(Refused, match="400"):
        play(github, tiny_hub)
    assert tiny_hub.webhooks == []


def test_a_delivery_that_the_hub_has_already_is_not_waited_for(github: GitHubStandIn, tiny_hub: TinyHub) -> None:
    for character in CHARACTERS:
        github.add_repository(character.full_name)
    play(github, tiny_hub)
    before = len(tiny_hub.callbacks)
    again = play(github, tiny_hub)
    told = [body["event_type"] for _, body in tiny_hub.callbacks]
    assert again.dispatches == 0
    assert told[before:] == ["nightly"] * told[:before].count("nightly"), "nobody dispatches those"
    assert again.seconds < history.QUIET_SECONDS


def test_what_it_does_not_know_is_not_its_own(github: GitHubStandIn) -> None:
    upstream = an_upstream()
    made = History(github, upstream, hub_url="http://127.0.0.1:9", audience=AUDIENCE, seed=1, days=1, until=UNTIL)
    assert not made.knows("someone else's")
    assert not made.knows(None)


# --- renamed, replaying, nightly only ---------------------------------------------------------------------------


def test_a_repository_is_renamed_when_it_next_speaks_and_answers_under_its_new_name(
    github: GitHubStandIn, tiny_hub: TinyHub
) -> None:
    play(github, tiny_hub)
    names = {claims["repository"] for claims, _ in tiny_hub.callbacks if claims.get("repository_id") == SABLE_ID}
    assert names == {SABLE.renamed_to}
    first, second = days_of(an_upstream(), seed=1, days=1, until=UNTIL)
    sent = [(d.repository, d.client_payload["delivery_id"]) for d in github.dispatches if d.repository in SABLE.names]
    assert Counter(sent) == Counter(
        (name, event.delivery_id)
        for name, day in ((SABLE.full_name, first), (SABLE.renamed_to, second))
        for _, event in day.events
    )


def test_before_its_day_a_repository_keeps_its_name(github: GitHubStandIn, tiny_hub: TinyHub) -> None:
    later = dataclasses.replace(SABLE, renamed_days=-1)
    play(github, tiny_hub, [later if c is SABLE else c for c in CHARACTERS])
    names = {claims["repository"] for claims, _ in tiny_hub.callbacks if claims.get("repository_id") == SABLE_ID}
    assert names == {SABLE.full_name}


def test_replays_are_a_duplicate_and_two_refusals_each(github: GitHubStandIn, tiny_hub: TinyHub) -> None:
    often = dataclasses.replace(ROOK, replay_rate=1.0)
    filled = play(github, tiny_hub, [often if c is ROOK else c for c in CHARACTERS])
    ends = [
        body for claims, body in tiny_hub.callbacks
        if claims.get("repository") == ROOK.full_name and body["workflow"]["status"] == "completed"
    ]  # fmt: skip
    assert ends
    assert filled.replays == 3 * len(ends)
    by_run = operator.itemgetter("delivery_id")
    assert sorted(tiny_hub.repeated, key=by_run) == sorted(ends, key=by_run)
    assert Counter(status for status, _ in tiny_hub.refused) == {409: len(ends), 403: len(ends)}


def test_its_webhooks_stand_in_githubs_log_and_a_lost_one_is_no_longer_its_own(
    github: GitHubStandIn, tiny_hub: TinyHub, client: GitHubClient
) -> None:
    github.hooks.drop(1)
    filled = play(github, tiny_hub)
    events = [row for day in days_of(an_upstream(), seed=1, days=1, until=UNTIL) for row in day.events]
    logged, _ = client.hook_deliveries(since=UNTIL - datetime.timedelta(days=3))
    expected = [(event.delivery_id, at.replace(microsecond=0)) for at, event in events]
    assert [(one.delivery_id, one.at) for one in reversed(logged)] == expected
    assert [delivery for _, delivery, _ in tiny_hub.webhooks] == [delivery for delivery, _ in expected[1:]]
    assert filled.events == len(events) - 1


def test_the_past_tells_the_tests_of_main_of_whoever_has_flaky_ones(github: GitHubStandIn, tiny_hub: TinyHub) -> None:
    filled = play(github, tiny_hub, (KESTREL, WREN), days=4)
    ends = {
        (claims["repository"], claims["run_id"], body["workflow"]["run_attempt"], body["workflow"]["job_name"])
        for claims, body in tiny_hub.callbacks
        if body["event_type"] == "push" and body["workflow"]["status"] == "completed"
    }
    told = [
        (claims["repository"], claims["run_id"], str(meta["run_attempt"]), meta["job_name"])
        for claims, meta, _ in tiny_hub.reports
    ]
    # A job that was stopped has no report.
    assert set(told) <= {end for end in ends if end[0] == WREN.full_name and end[3] == "test-graph"}
    assert filled.reports == len(told) == len(set(told)) > 0


def test_each_night_is_told_once_about_mains_newest_commit(github: GitHubStandIn, tiny_hub: TinyHub) -> None:
    play(github, tiny_hub)
    nights: dict[str, set[str]] = {}
    for (_, body), told in zip(tiny_hub.callbacks, tiny_hub.clocks, strict=True):
        if body["event_type"] == "nightly":
            assert body["workflow"]["status"] == "completed"
            nights.setdefault(told[:10], set()).add(body["payload"]["head_sha"])
    days = days_of(an_upstream(), seed=1, days=1, until=UNTIL)
    assert nights == {day.begin.date().isoformat(): {day.head} for day in days}
    assert all(github.commits.knows(day.head) for day in days)


def test_one_night_is_about_a_commit_that_upstream_does_not_know(github: GitHubStandIn, tiny_hub: TinyHub) -> None:
    stray = dataclasses.replace(VESPER, stray_days=1)
    play(github, tiny_hub, [stray if c is VESPER else c for c in CHARACTERS])
    commits = {body["payload"]["head_sha"] for _, body in tiny_hub.callbacks if body["event_type"] == "nightly"}
    assert sorted(map(github.commits.knows, commits)) == [False, True]


# --- against the hub --------------------------------------------------------------------------------------------


@pytest.fixture
def demo_github(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubStandIn]:
    """A demo's GitHub: this process's hub and a worker that starts later are set up with it."""
    standin = GitHubStandIn(
        app_id=django_settings.GITHUB_APP_ID, app_private_key=django_settings.GITHUB_APP_PRIVATE_KEY
    )
    with standin:
        issuers = standin.issuers
        monkeypatch.setenv("ACCELHUB_DEMO", "1")
        monkeypatch.setenv("ACCELHUB_GITHUB_API_URL", standin.url)
        monkeypatch.setenv("ACCELHUB_OIDC_ISSUERS", json.dumps(issuers))
        with override_settings(DEMO=True, GITHUB_API_URL=standin.url, OIDC_ISSUERS=issuers):
            identity.forget_keys()
            core_github.client.cache_clear()
            yield standin
    identity.forget_keys()
    core_github.client.cache_clear()


def test_three_days_of_three_platforms(demo_github: GitHubStandIn, hub: Hub, celery_worker_process: Worker) -> None:
    characters = (KESTREL, QUARRY, TARN)
    listed({KESTREL.full_name: 3, QUARRY.full_name: 2, TARN.full_name: 2}, now=UNTIL - datetime.timedelta(days=9))
    filled = fill(
        demo_github,
        hub_url=hub.url,
        webhook_secret=django_settings.GITHUB_WEBHOOK_SECRET,
        audience=django_settings.OIDC_AUDIENCE,
        upstream=django_settings.UPSTREAM_REPO,
        days=3,
        until=UNTIL,
        characters=characters,
    )
    events = [row for day in days_of(an_upstream(), seed=1, days=3, until=UNTIL) for row in day.events]
    assert (filled.events, filled.dispatches) == (len(events), 3 * len(events))

    received = {event.delivery_id: at for at, event in events}
    assert dict(Delivery.objects.values_list("delivery_id", "received_at")) == received
    for sent in Dispatch.objects.select_related("delivery"):
        at = received[sent.delivery.delivery_id]
        assert (sent.state, sent.created_at, sent.sent_at) == ("sent", at, at)
    assert Dispatch.objects.count() == 3 * len(events)

    # What was planned is what is there: which jobs, when they began and ended, and how.
    horizon = UNTIL - MARGIN
    expected = {}
    for request in demo_github.dispatches:
        at = received[request.client_payload["delivery_id"]]
        for job in _planned(request, at):
            start = at + datetime.timedelta(seconds=job.wait_seconds)
            end = start + datetime.timedelta(seconds=job.run_seconds)
            is_over = job.reports_end and end < horizon
            if start < horizon:
                key = (job.repository, job.run_id, job.run_attempt, job.job_name)
                expected[key] = (start, end if is_over else None, job.conclusion if is_over else "")
    found = {
        (job.repository.full_name, job.run_id, job.run_attempt, job.job_name): job
        for job in Job.objects.select_related("repository")
    }
    assert set(found) == set(expected)
    for key, (began, ended, conclusion) in expected.items():
        job = found[key]
        assert job.first_seen_at == job.start_seen_at == job.reported_started_at
        assert is_close(job.first_seen_at, began)
        assert job.conclusion == conclusion
        assert job.completed_at == job.reported_completed_at
        assert is_close(job.completed_at, ended)
    assert {job.repository.full_name for job in found.values()} == {KESTREL.full_name, QUARRY.full_name}
    assert any(end is None for _, end, _ in expected.values())

    # GitHub's log holds all of it, and the hub misses none.
    assert len(core_github.client().hook_deliveries(since=UNTIL - datetime.timedelta(days=9))[0]) == len(events)
    begun = UNTIL - datetime.timedelta(days=9)
    DeliveryLog.objects.update_or_create(
        pk=1, defaults={"mode": "active", "begun_at": begun, "compared_to": begun, "compared_at": begun}
    )
    assert missed.compare(now=UNTIL) == 0

    assert Callback.objects.count() == filled.callbacks
    assert {at.date() for at in Callback.objects.values_list("received_at", flat=True)} == {
        UNTIL.date() - datetime.timedelta(days=ago) for ago in range(4)
    }
    with redis_client() as redis:
        assert not redis.keys("limits*"), "history is no part of the minute"


def is_close(found: datetime.datetime | None, expected: datetime.datetime | None) -> bool:
    """Whether both are there and the same but for rounding, or neither is."""
    if found is None or expected is None:
        return found is expected
    return abs(found - expected) < datetime.timedelta(milliseconds=1)


@pytest.mark.django_db
@pytest.mark.parametrize("days", [0, 7])
def test_the_platforms_are_listed_before_their_history(settings: Any, days: int) -> None:
    settings.DEMO, settings.DEMO_HISTORY_DAYS = True, days
    Installation.objects.update(kind=Kind.DEMO)
    call_command("seed_demo")
    age = clock.now() - max(AuditEvent.objects.values_list("at", flat=True))
    assert datetime.timedelta(days=days + bool(days)) < age < datetime.timedelta(days=days + bool(days), minutes=5)


def _planned(request: Received, at: datetime.datetime) -> list[Any]:
    if not wants(request.event_type, request.client_payload):
        return []
    character = next(c for c in CHARACTERS if c.full_name == request.repository)
    days_ago = (UNTIL - at).total_seconds() / 86_400
    return plan(character, request.client_payload, seed=1, pace=history.PACE, days_ago=days_ago)
