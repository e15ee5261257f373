"""Who is sent an event: rules, reasons, and how many at once."""

import copy
import datetime
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from apps.core.backoff import BACKOFF_SECONDS, backoff_seconds
from apps.core.clock import now
from apps.platforms.models import MaintenanceWindow, Repository
from apps.platforms.participation import Choice, announce_window, change_participation, participation_of
from apps.platforms.policy import WEBHOOK_EVENTS
from apps.relay import outbox, policy, services
from apps.relay.enums import DispatchState, Rule
from apps.relay.models import Delivery, Dispatch, Omission
from apps.relay.policy import NotSent, Occasion, Wishes, takes_part
from apps.simulator.standin import GitHubStandIn
from tests.factories.listing import TESTS, listed
from tests.live import ClonedDatabase
from tests.relay.downstream import PAYLOAD, Downstream, answer, send_webhook

KESTREL = "kestrel-demo/torch-kestrel"
OPENED = Occasion("pull_request", "opened", "d-1", "refs/heads/main", ("ciflow/trunk", "Topic: fold"))
PUSHED = Occasion("push", "", "d-1", "refs/tags/v2.9.0-rc1")
BOTH = ("pull_request", "nightly")
UNTIL = datetime.datetime(2026, 12, 1, 6, 30, tzinfo=datetime.UTC)


def wishes(**values: Any) -> Wishes:
    return Wishes(**({"key": "k", "listed": BOTH} | values))


# --- the rules --------------------------------------------------------------------------------------------------


def test_webhooks_are_the_same_words_in_both_rooms() -> None:
    assert WEBHOOK_EVENTS == policy.DISPATCHED_EVENTS


def test_every_rule_is_in_the_table_in_its_order() -> None:
    assert list(policy.PARTICIPATION) == list(Rule)


@pytest.mark.parametrize(
    ("occasion", "chosen", "reason"),
    [
        (OPENED, {}, None),
        (PUSHED, {}, None),
        (OPENED, {"listed": ("nightly",)}, (Rule.LISTING, "the allowlist lists it for nightly only")),
        (PUSHED, {"listed": ()}, (Rule.LISTING, "the allowlist lists it for no event only")),
        (PUSHED, {"events": ("pull_request",)}, (Rule.EVENT, "it does not take part in push events")),
        (OPENED, {"events": ("pull_request",)}, None),
        (OPENED, {"refs": ("main",)}, None),
        (OPENED, {"refs": ("refs/heads/ma*",)}, None),
        (OPENED, {"refs": ("Main",)}, (Rule.REF, "refs/heads/main fits none of its refs: Main")),
        (PUSHED, {"refs": ("release/*", "v*-rc?")}, None),
        (PUSHED, {"refs": ("main", "v3*")}, (Rule.REF, "refs/tags/v2.9.0-rc1 fits none of its refs: main, v3*")),
        (Occasion("push", "", "d-1"), {"refs": ("*x",)}, (Rule.REF, "an unknown ref fits none of its refs: *x")),
        (OPENED, {"labels": ("topic: fold", "other")}, None),
        (OPENED, {"labels": ("fold",)}, (Rule.LABEL, "the pull request has none of its labels: fold")),
        (PUSHED, {"labels": ("fold",)}, None),
        (
            OPENED,
            {"maintenance_until": UNTIL},
            (Rule.MAINTENANCE, "in announced maintenance until 2026-12-01 06:30 UTC"),
        ),
        (
            OPENED,
            {"listed": (), "maintenance_until": UNTIL},
            (Rule.LISTING, "the allowlist lists it for no event only"),
        ),
    ],
)
def test_what_keeps_an_event_back(occasion: Occasion, chosen: dict[str, Any], reason: Any) -> None:
    assert takes_part(occasion, wishes(**chosen)) == (NotSent(*reason) if reason else None)


def test_the_sample_is_the_hubs_the_same_each_time_and_as_large_as_asked_for() -> None:
    drawn = [
        takes_part(Occasion("pull_request", "opened", f"d-{number}"), wishes(sample_percent=20)) is None
        for number in range(5_000)
    ]
    again = [
        takes_part(Occasion("pull_request", "opened", f"d-{number}"), wishes(sample_percent=20)) is None
        for number in range(5_000)
    ]
    assert drawn == again
    assert 900 < sum(drawn) < 1_100
    other = [policy.sample_share(f"d-{number}", "other") < 0.2 for number in range(5_000)]
    assert 150 < sum(a and b for a, b in zip(drawn, other, strict=True)) < 250  # repositories are drawn apart


def test_what_is_not_drawn_says_so_and_what_ends_runs_is_not_drawn() -> None:
    left_out = next(f"d-{n}" for n in range(1_000) if policy.sample_share(f"d-{n}", "k") > 0.5)
    one_percent = wishes(sample_percent=1)
    assert takes_part(Occasion("pull_request", "opened", left_out), one_percent) == NotSent(
        Rule.SAMPLE, "it is not in the 1 % of events that the hub draws for it"
    )
    assert takes_part(Occasion("pull_request", "closed", left_out), one_percent) is None


@given(failed=st.integers(1, 30), chance=st.floats(0, 1, exclude_max=True), asked=st.floats(0, 1e12))
def test_a_wait_is_between_what_was_asked_and_the_tables_bound(failed: int, chance: float, asked: float) -> None:
    wait = backoff_seconds(failed, chance, asked=asked)
    if failed > len(BACKOFF_SECONDS):
        assert wait is None
    else:
        assert wait is not None
        least = min(asked, 3_600)
        assert least <= wait <= least + BACKOFF_SECONDS[failed - 1]


# --- through the front door -------------------------------------------------------------------------------------


@pytest.fixture
def kestrel(downstream: Callable[..., Downstream]) -> Downstream:
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    return made


def repository() -> Repository:
    return Repository.objects.get(full_name=KESTREL)


def choose(**values: Any) -> None:
    known = participation_of(repository())
    change_participation(
        repository=repository(),
        choice=Choice(**values),
        expected_revision=known.revision if known else 0,
        actor=TESTS,
        now=now(),
    )


def hook(client: Client, delivery_id: str, body: Any = PAYLOAD, event: str = "pull_request") -> int:
    """Post a webhook and fan it out. Returns how many dispatches it made."""
    assert send_webhook(client, body, delivery_id=delivery_id, event=event).json()["status"] == "accepted"
    return services.fan_out(delivery_pk=Delivery.objects.get(delivery_id=delivery_id).pk, now=now())


def send(delivery_id: str) -> DispatchState | None:
    pk = Dispatch.objects.get(delivery__delivery_id=delivery_id).pk
    return outbox.send_dispatch(dispatch_pk=pk, now=now(), chance=0)


def states() -> dict[str, str]:
    return dict(Dispatch.objects.values_list("delivery__delivery_id", "state"))


@pytest.mark.django_db
def test_what_is_kept_back_is_no_dispatch_has_its_reason_and_may_not_be_answered(
    kestrel: Downstream, client: Client
) -> None:
    choose(refs=("release/*",), labels=("ciflow/trunk",))
    body = copy.deepcopy(PAYLOAD)
    body["pull_request"]["base"]["ref"] = "release/2.9"
    assert [hook(client, "d-1"), hook(client, "d-2", body)] == [0, 1]
    assert list(Omission.objects.values_list("delivery__delivery_id", "rule", "sentence")) == [
        ("d-1", "ref", "refs/heads/main fits none of its refs: release/*")
    ]
    assert states() == {"d-2": "pending"}
    assert answer(kestrel.start())[0] == 403


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("chosen", "rule"),
    [({"refs": ("release/*",)}, "ref"), ({"labels": ("never",)}, "label"), ({"events": ("push",)}, "event")],
)
def test_whoever_was_sent_the_beginning_is_sent_the_end(
    kestrel: Downstream, client: Client, chosen: dict[str, Any], rule: str
) -> None:
    hook(client, "d-1")
    choose(**chosen)
    other = PAYLOAD | {"number": 7, "pull_request": PAYLOAD["pull_request"] | {"number": 7}}
    said = [
        hook(client, "d-2", PAYLOAD | {"action": "synchronize"}),
        hook(client, "d-3", PAYLOAD | {"action": "closed"}),
        hook(client, "d-4", other | {"action": "closed"}),
    ]
    assert (said, set(states())) == ([0, 1, 0], {"d-1", "d-3"})
    kept_back = Omission.objects.order_by("pk").values_list("delivery__delivery_id", "rule")
    assert list(kept_back) == [("d-2", rule), ("d-4", rule)]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "odd", [{"pull_request": None}, {"pull_request": {"base": None, "labels": None}}, {"pull_request": {"labels": [7]}}]
)
def test_a_webhook_of_another_shape_is_fanned_out_all_the_same(
    kestrel: Downstream, client: Client, odd: dict[str, Any]
) -> None:
    choose(labels=("x",))
    assert hook(client, "d-1", PAYLOAD | odd) == 0
    assert Omission.objects.get().rule == "label"


@pytest.mark.django_db
def test_within_a_maintenance_window_nothing_is_sent(
    kestrel: Downstream, client: Client, github: GitHubStandIn
) -> None:
    hook(client, "d-0")
    start = now() - datetime.timedelta(hours=1)
    window = announce_window(
        repository=repository(),
        starts_at=start,
        ends_at=start + datetime.timedelta(hours=3),
        note="new cards",
        actor=TESTS,
        now=start - datetime.timedelta(hours=24),
    )
    assert hook(client, "d-1") == 0
    assert Omission.objects.get().rule == "maintenance"
    waiting = Dispatch.objects.get()  # chosen before, and waits for the end
    soon = now()
    for moment, look in (
        (soon, soon + outbox.MAINTENANCE_LOOK),
        (window.ends_at - datetime.timedelta(seconds=9), window.ends_at),
    ):
        assert outbox.send_dispatch(dispatch_pk=waiting.pk, now=moment, chance=0) is None
        waiting.refresh_from_db()
        assert (waiting.state, waiting.attempts, waiting.next_attempt_at) == ("pending", 0, look)
    assert outbox.send_dispatch(dispatch_pk=waiting.pk, now=window.ends_at, chance=0) is DispatchState.SENT
    MaintenanceWindow.objects.update(withdrawn_at=now())
    assert hook(client, "d-2") == 1
    assert send("d-2") is DispatchState.SENT


@pytest.mark.django_db
def test_no_more_are_in_flight_than_it_takes_and_the_oldest_goes_first(kestrel: Downstream, client: Client) -> None:
    choose(max_in_flight=2)
    for number in range(5):
        hook(client, f"d-{number}")
    assert [send(f"d-{number}") for number in (3, 0, 1, 2, 4)] == [None, "sent", "sent", None, None]
    held = Dispatch.objects.get(delivery__delivery_id="d-2")
    assert (held.is_waiting_for_place, held.attempts, held.error) == (
        True,
        0,
        "waits: the repository takes 2 at a time",
    )
    assert outbox.release(now=now()) == 0
    assert answer(kestrel.post(kestrel.body("d-0")))[0] == 200
    assert outbox.release(now=now()) == 0  # it has begun, not ended
    kestrel.post(kestrel.body("d-0", conclusion="success"))
    assert (outbox.release(now=now()), outbox.release(now=now())) == (1, 0)
    assert [send(f"d-{number}") for number in (4, 3, 2)] == [None, None, "sent"]
    # One whose jobs never come holds its place for six hours.
    Dispatch.objects.filter(delivery__delivery_id="d-1").update(sent_at=now() - datetime.timedelta(hours=6))
    assert outbox.sweep(now=now()) == 1
    assert [send("d-4"), send("d-3")] == [None, "sent"]
    choose()
    assert outbox.sweep(now=now()) == 1
    assert send("d-4") is DispatchState.SENT
    assert set(states().values()) == {"sent"}


@pytest.mark.django_db
def test_what_nobody_answers_takes_no_place(kestrel: Downstream, client: Client) -> None:
    choose(max_in_flight=1)
    for number in range(2):
        hook(client, f"c-{number}", PAYLOAD | {"action": "closed"})
        assert send(f"c-{number}") is DispatchState.SENT
    hook(client, "d-1")
    assert send("d-1") is DispatchState.SENT
    hook(client, "c-2", PAYLOAD | {"action": "closed"})
    assert send("c-2") is DispatchState.SENT


@pytest.mark.django_db
def test_at_l1_a_private_answer_frees_the_place(downstream: Callable[..., Downstream], client: Client) -> None:
    kestrel = downstream(KESTREL)
    listed({KESTREL: 1})
    choose(max_in_flight=1)
    hook(client, "d-1")
    hook(client, "d-2")
    assert [send("d-1"), send("d-2")] == ["sent", None]
    kestrel.start()
    assert outbox.release(now=now()) == 0
    kestrel.end()
    assert outbox.release(now=now()) == 1


@pytest.mark.django_db
def test_a_dispatch_that_waits_for_its_next_attempt_holds_no_place(
    kestrel: Downstream, client: Client, github: GitHubStandIn
) -> None:
    choose(max_in_flight=1)
    hook(client, "d-1")
    hook(client, "d-2")
    github.fail("/dispatches$")
    outbox.send_dispatch(dispatch_pk=Dispatch.objects.earliest("pk").pk, now=now(), chance=0.9)
    assert send("d-2") is DispatchState.SENT
    Dispatch.objects.filter(delivery__delivery_id="d-1").update(next_attempt_at=now())
    assert send("d-1") is None
    assert Counter(states().values()) == Counter({"pending": 1, "sent": 1})


def test_many_workers_at_once_send_no_more_than_it_takes(
    github: GitHubStandIn, cloned_database: ClonedDatabase
) -> None:
    github.add_repository(KESTREL)
    listed({KESTREL: 2})
    choose(max_in_flight=3)
    moment = now()
    for number in range(12):
        delivery = Delivery.objects.create(
            delivery_id=f"d-{number}", event="push", state="fanned_out", received_at=moment, body="{}"
        )
        Dispatch.objects.create(
            delivery=delivery,
            repository=repository(),
            created_at=moment,
            changed_at=moment,
            next_attempt_at=moment,
        )

    def one(pk: int) -> DispatchState | None:
        try:
            return outbox.send_dispatch(dispatch_pk=pk, now=now(), chance=0)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(12) as pool:
        outcomes = Counter(pool.map(one, Dispatch.objects.values_list("pk", flat=True)))
    # Whoever came before an older one was sent has let it go first: never more than three, and none is lost.
    assert outcomes[DispatchState.SENT] == len(github.dispatches) <= 3
    assert Counter(states().values()) == {"sent": outcomes[DispatchState.SENT], "pending": outcomes[None]}
    assert outbox.release(now=now()) == 3 - outcomes[DispatchState.SENT]
