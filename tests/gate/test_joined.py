"""The gate beside the rest: its verbs in the API, who hears of a breaker, and what a change of level says anew."""

from typing import Any

import pytest
from django.core import mail
from django.test import Client

from apps.accounts.policy import Role
from apps.accounts.services import grant_role
from apps.core import wakeups
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.gate import breaking
from apps.gate.models import Override
from apps.governance import notices, tasks
from apps.governance.models import Notice
from apps.platforms.models import Repository
from apps.relay.models import Delivery, Dispatch
from tests.factories.listing import TESTS, listed, member_of, user
from tests.gate.field import FEN, HEAD, KESTREL, NUMBER, Field, hours
from tests.gate.test_breaker import opened

URL = "/api/v1/overrides/"


def post(client: Client, address: str, **body: Any) -> Any:
    return client.post(address, body, content_type="application/json")


@pytest.fixture
def maintainer(client: Client) -> Client:
    client.force_login(user(Role.MAINTAINER, username="mara"))
    return client


def test_an_override_is_granted_and_withdrawn_in_the_api(gate_field: Field, maintainer: Client) -> None:
    gate_field.sends()
    answer = post(maintainer, URL, pr=NUMBER, sha=HEAD, repository=KESTREL, hours=2, reason="Known outage.")
    made = Override.objects.get()
    told = {
        "id": str(made.public_id),
        "pr": NUMBER,
        "sha": HEAD,
        "repository": KESTREL,
        "reason": "Known outage.",
        "by": "mara",
        "from_at": answer.json()["from_at"],
        "until": answer.json()["until"],
        "withdrawn_at": None,
        "withdrawn_by": "",
        "withdrawal": "",
        "decision": made.event_seq,
    }
    assert (answer.status_code, answer.json()) == (201, told)
    gone = post(maintainer, f"{URL}{made.public_id}/withdraw/", reason="Over.")
    assert (gone.status_code, gone.json() | {"withdrawn_at": None}) == (
        200,
        told | {"withdrawn_by": "mara", "withdrawal": "Over."},
    )
    again = post(maintainer, f"{URL}{made.public_id}/withdraw/", reason="Over.")
    assert (again.status_code, again.json()["code"]) == (409, "override_stale")


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"pr": 0}, "pr"),
        ({"pr": 2**63}, "pr"),
        ({"pr": 999}, "pr"),
        ({"sha": "x"}, "sha"),
        ({"repository": "no/such"}, "repository"),
        ({"repository": FEN}, "repository"),
        ({"hours": 8_760}, "until"),
        ({"reason": " "}, "reason"),
    ],
)
def test_what_makes_no_sense_is_refused(
    gate_field: Field, maintainer: Client, changed: dict[str, Any], field: str
) -> None:
    gate_field.sends()
    answer = post(maintainer, URL, **{"pr": NUMBER, "hours": 2, "reason": "Known outage."} | changed)
    assert (answer.status_code, answer.json()["code"], Override.objects.count()) == (400, "malformed", 0)
    assert answer.json().get("field", field) == field


def test_who_speaks_for_the_platform_does_neither(gate_field: Field, client: Client) -> None:
    trip = opened(gate_field)
    own = member_of(gate_field.kestrel.platform)
    grant_role(user=own, role=Role.MAINTAINER, actor=TESTS, now=now())
    client.force_login(own)
    refused = [
        post(client, URL, pr=20, repository=KESTREL, hours=2, reason="Mine."),
        post(client, URL, pr=20, hours=2, reason="All."),
        post(client, f"/api/v1/breakers/{trip.public_id}/close/", reason="Mine."),
    ]
    assert [(one.status_code, one.json()["code"]) for one in refused] == [(403, "recusal")] * 3


def test_a_breaker_is_closed_in_the_api(gate_field: Field, maintainer: Client) -> None:
    trip = opened(gate_field)
    where = f"/api/v1/breakers/{trip.public_id}/close/"
    answer = post(maintainer, where, reason="Mended.").json()
    trip.refresh_from_db()
    assert trip.closed_at is not None
    assert answer == {
        "id": str(trip.public_id),
        "repository": KESTREL,
        "kind": "pull_requests",
        "why": trip.why,
        "opened_at": trip.opened_at.isoformat().replace("+00:00", "Z"),
        "closed_at": trip.closed_at.isoformat().replace("+00:00", "Z"),
        "closed_by": "decision",
        "closed_why": "Mended.",
        "decision": trip.event_seq,
    }
    assert post(maintainer, where, reason="Again.").status_code == 409


def test_members_and_maintainers_hear_that_a_breaker_opened_and_closed(gate_field: Field) -> None:
    mara = user(Role.MAINTAINER, username="mara", email="mara@upstream.example")
    member_of(gate_field.kestrel.platform, username="kim", email="kim@kestrel.example")
    member_of(gate_field.fen.platform, username="fay", email="fay@fen.example")
    trip = opened(gate_field)
    breaking.close_breaker(trip=trip, reason="Mended.", by=mara, now=now())
    keys = list(Wakeup.objects.filter(topic="breaker_said").order_by("pk").values_list("key", flat=True))
    tasks.announce_breakers(keys)
    for notice in Notice.objects.order_by("pk"):
        notices.send_notice(notice_pk=notice.pk, now=now())
    opening, closing = f"Breaker of {KESTREL} opened: it blocks nothing until it closes", f"Breaker of {KESTREL} closed"
    assert [(one.to, one.subject.startswith(f"[AccelHub] {opening}")) for one in mail.outbox[:2]] == [
        (["mara@upstream.example"], True),
        (["kim@kestrel.example"], True),
    ]
    assert [(one.to, one.subject.startswith(f"[AccelHub] {closing}")) for one in mail.outbox[2:]] == [
        (["mara@upstream.example"], True),
        (["kim@kestrel.example"], True),
    ]
    assert trip.why in str(mail.outbox[0].body)
    assert f"/breakers/{trip.public_id}/" in str(mail.outbox[0].body)


def test_a_change_of_level_has_the_gate_say_its_verdicts_anew(gate_field: Field) -> None:
    moment = now()
    gate_field.sends()
    Delivery.objects.update(received_at=moment)
    Dispatch.objects.update(created_at=moment, sent_at=moment)
    assert gate_field.asks((moment - hours(0)).total_seconds() / 3_600 + 0.001).answer.verdict == "pending"
    Wakeup.objects.all().delete()
    listed({KESTREL: 2, FEN: 3})
    assert Wakeup.objects.filter(topic="blocking_changed", key=str(gate_field.kestrel.pk)).exists()
    wakeups._handlers["blocking_changed"]([str(gate_field.kestrel.pk)])
    assert list(Wakeup.objects.filter(topic="gate_asked").values_list("key", flat=True)) == [HEAD]
    Wakeup.objects.all().delete()
    listed({KESTREL: 2, FEN: 2})
    assert not Wakeup.objects.filter(topic="blocking_changed").exists()
    assert Repository.objects.get(full_name=KESTREL).level == 2
