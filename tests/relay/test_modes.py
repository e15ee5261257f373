"""Modes: what the table says is what happens, and a hub with an unknown one does not start."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import Client, override_settings

from accelhub.checks import TAG
from accelhub.env import BASE_DIR
from apps.checks.selectors import may_publish
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.relay import outbox, services, tasks
from apps.relay.models import Delivery, Dispatch, Intent
from apps.relay.modes import MODES
from apps.simulator.standin import GitHubStandIn
from tests.factories.listing import listed
from tests.relay.downstream import PAYLOAD, send_webhook
from tests.relay.posts import KEY, post, post_body

KESTREL = "kestrel-demo/torch-kestrel"
SHA = "ab" * 20


@pytest.mark.django_db
@pytest.mark.parametrize("name", MODES)
def test_doors_and_deeds_are_those_of_the_table(client: Client, downstream: Callable[..., Any], name: str) -> None:
    mode = MODES[name]
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    with override_settings(MODE=name, HUD_BOT_KEY=KEY):
        send_webhook(client, PAYLOAD)
        assert Delivery.objects.exists() is mode.takes_webhooks
        tasks.fan_out_deliveries([str(delivery.pk) for delivery in Delivery.objects.all()])
        assert (Dispatch.objects.exists(), Intent.objects.exists()) == (mode.dispatches, mode.compares)
        for dispatch in Dispatch.objects.all():
            outbox.send_dispatch(dispatch_pk=dispatch.pk, now=now(), chance=0.5)
        assert (made.start().status_code == 200) is mode.takes_callbacks
        assert (post(client, post_body(delivery_id="another's")).status_code == 200) is mode.takes_results
        assert may_publish() is mode.publishes_checks


def test_the_operators_guide_has_the_table() -> None:
    def said(is_so: bool) -> str:
        return "yes" if is_so else "no"

    guide = (BASE_DIR / "docs" / "operator.md").read_text()
    for mode in MODES.values():
        doors = (mode.takes_webhooks, mode.dispatches, mode.takes_callbacks, mode.takes_results, mode.publishes_checks)
        assert f"| `{mode.name}` | {' | '.join(map(said, doors))} |\n" in guide


@pytest.mark.django_db
def test_a_dispatch_that_waited_is_not_sent_by_a_hub_in_shadow_mode(
    client: Client, downstream: Callable[..., Any], github: GitHubStandIn
) -> None:
    downstream(KESTREL)
    listed({KESTREL: 2})
    send_webhook(client, PAYLOAD)
    services.fan_out(delivery_pk=Delivery.objects.get().pk, now=now())
    with override_settings(MODE="shadow"):
        assert outbox.send_dispatch(dispatch_pk=Dispatch.objects.get().pk, now=now(), chance=0.5) is None
    assert (Dispatch.objects.get().state, github.dispatches) == ("pending", [])


@pytest.mark.django_db
@pytest.mark.parametrize(("mode", "topics"), [("observer", []), ("shadow", ["delivery_received"]), ("active", None)])
def test_the_sweep_wakes_only_what_the_mode_does(
    client: Client, downstream: Callable[..., Any], mode: str, topics: list[str] | None
) -> None:
    downstream(KESTREL)
    listed({KESTREL: 2})
    for delivery_id in ("due", "waits"):
        send_webhook(client, PAYLOAD, delivery_id=delivery_id)
        services.fan_out(delivery_pk=Delivery.objects.get(delivery_id=delivery_id).pk, now=now())
    Dispatch.objects.filter(delivery__delivery_id="waits").update(next_attempt_at=None, woken_at=None)
    send_webhook(client, PAYLOAD, delivery_id="received")
    Wakeup.objects.all().delete()
    later = now() + datetime.timedelta(minutes=1)
    expected = ["delivery_received", "dispatch_pending", "dispatch_pending"] if topics is None else topics
    with override_settings(MODE=mode):
        assert outbox.sweep(now=later) == len(expected)
    assert list(Wakeup.objects.order_by("topic").values_list("topic", flat=True)) == expected


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ({"MODE": "active"}, []),
        ({"MODE": "observer", "HUD_BOT_KEY": "k"}, []),
        ({"MODE": "Observer"}, ["accelhub.E020"]),
        ({"MODE": ""}, ["accelhub.E020"]),
        ({"MODE": "observer"}, ["accelhub.E021"]),
        ({"MODE": "shadow"}, ["accelhub.E021"]),
        ({"HUD_FORWARD_URL": "http://hud.example/api"}, ["accelhub.E022"]),
        ({"HUD_FORWARD_URL": "https://hud.example/api"}, []),
        ({"CHECK_PREFIX": "crcr/x"}, ["accelhub.E023"]),
        ({"CHECK_PREFIX": ""}, ["accelhub.E023"]),
    ],
)
def test_a_hub_that_is_set_up_otherwise_says_so_at_start(given: dict[str, str], ids: list[str]) -> None:
    # Only DEBUG lets an issuer be on loopback; nothing here is about that.
    with override_settings(LOCAL_SIGN_IN=True, GITHUB_API_URL="https://api.github.com", **given):
        assert [message.id for message in run_checks(tags=[TAG])] == ids
