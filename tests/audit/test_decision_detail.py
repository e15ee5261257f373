"""`/decisions/<seq>/`: one public decision, whole. What is no decision is not there."""

import datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.policy import Role
from apps.accounts.services import create_api_token, grant_role
from apps.audit.chain import GENESIS
from apps.audit.models import Event
from apps.core.clock import now
from tests.factories.events import event as append
from tests.factories.listing import TESTS, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db


def url(seq: int) -> str:
    return reverse("audit:decision", args=[seq])


def test_a_visitor_reads_the_whole_decision(client: Client) -> None:
    event = append(
        before={"level": "L1", "device": "", "events": ["nightly"]},
        after={"level": "L2", "device": "", "events": ["nightly", "pull_request"]},
        reason="60 days green",
        evidence={"runs": 120},
    )
    page = Page(client.get(url(1)))
    until = event.at + datetime.timedelta(days=30)
    assert page.heading == "acme/torch raised from L1 to L2"
    assert page.facts == {
        "why": {
            "By": "ada (user)",
            "About": "acme/torch (repository)",
            "Reason": "60 days green",
            "Since then": f"○ its platform's members may appeal it until {until:%Y-%m-%d} appeal it",
            "Evidence: runs": "120",
        },
        "chain": {"Previous hash": GENESIS, "Hash": event.hash, "Chain": "chain not proved yet"},
    }
    assert page.tables == {
        "change": [
            ("device", "none", "none"),
            ("events", "nightly", "nightly, pull_request"),
            ("level", "L1", "L2"),
        ]
    }


def test_the_record_itself_can_be_hashed_again(client: Client) -> None:
    append(reason="quotes \" ' & <b> und Ümläute")
    assert Event.objects.get().body in Page(client.get(url(1))).text


def test_a_hostile_reason_stays_text(client: Client) -> None:
    append(reason="<script>alert(1)</script>", evidence={"<script>k": "<script>v"}, after={"<script>f": "<script>a"})
    html = client.get(url(1)).content.decode()
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 2  # the reason, and the record
    assert [mark for mark in ("alert", "k", "v", "f", "a") if f"<script>{mark}" in html] == []


def test_what_is_no_decision_is_not_found_by_its_number(client: Client) -> None:
    append()
    member = user()
    grant_role(user=member, role=Role.OPERATOR, actor=TESTS, now=now())
    create_api_token(user=member, note="a private note", actor=TESTS, now=now())
    assert [event.is_decision for event in Event.objects.order_by("seq")] == [True, False, False]
    assert [client.get(url(seq)).status_code for seq in (1, 2, 3)] == [200, 404, 404]
    assert "a private note" not in client.get(url(3)).content.decode()


@pytest.mark.parametrize("seq", [0, 7, 2**63, 10**40])
def test_a_number_without_an_event_is_not_found(client: Client, seq: int) -> None:
    append()
    assert client.get(url(seq)).status_code == 404


def test_the_page_takes_four_queries(client: Client, django_assert_num_queries: Any) -> None:
    append()
    with django_assert_num_queries(4):
        client.get(url(1))
