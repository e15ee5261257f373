"""`/decisions/`: every public decision, newest first, to anyone."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.audit.models import LastVerification
from apps.core.clock import now
from apps.core.permissions import Permission
from tests.factories.events import event as append
from tests.factories.jobs import days_ago
from tests.factories.listing import TESTS, listed, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = reverse("audit:decisions")


def decisions(client: Client, **query: Any) -> list[str]:
    return Page(client.get(URL, query)).items.get("", [])


def test_a_visitor_reads_who_did_what_when_and_why(client: Client) -> None:
    first = append("acme/torch raised from L1 to L2", reason="60 days green")
    second = append("acme/torch lowered from L2 to L1", now=days_ago(3))
    assert decisions(client) == [
        f"acme/torch lowered from L2 to L1 by ada 3 d ago #2 {second.hash[:7]}",
        f"acme/torch raised from L1 to L2 by ada 4 d ago #1 {first.hash[:7]} 60 days green",
    ]


def test_grants_tokens_and_memberships_are_no_decisions(client: Client) -> None:
    from apps.accounts.policy import Role
    from apps.accounts.services import create_api_token
    from tests.factories.listing import member_of

    repository = listed({"acme/torch": 2}, now=days_ago(4))["acme/torch"]
    maintainer = user(Role.MAINTAINER)
    create_api_token(user=maintainer, note="hidden note", actor=TESTS, now=now())
    member_of(repository.platform)
    assert [text.split(" by ")[0] for text in decisions(client)] == ["acme/torch listed at L2"]
    assert maintainer.may(Permission.LEVEL_CHANGE)


def test_an_empty_log_says_what_will_appear(client: Client) -> None:
    answer = client.get(URL)
    assert answer.status_code == 200
    assert "Decisions appear here" in answer.content.decode()


def test_a_hostile_reason_stays_text(client: Client) -> None:
    append(reason="<script>alert(1)</script>")
    html = client.get(URL).content.decode()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (None, "chain not proved yet"),
        ("", "chain sound to #12, proved 3 d ago"),
        ("event 13 is missing: the next one stored is 14", "chain broken event 13 is missing"),
    ],
)
def test_the_page_says_what_the_last_proof_found(client: Client, finding: str | None, words: str) -> None:
    if finding is not None:
        LastVerification.objects.create(checked_at=days_ago(3), verified_to=12, finding=finding)
    assert words in Page(client.get(URL)).text


@pytest.mark.parametrize(
    ("page", "expected"), [("1", (51, 2)), ("2", (1, 1)), ("last", (51, 2)), ("99", (1, 1)), ("\0", (51, 2))]
)
def test_fifty_stand_on_a_page(client: Client, page: str, expected: tuple[int, int]) -> None:
    for number in range(1, 52):
        append(f"decision {number}")
    seen = decisions(client, page=page)
    assert (int(seen[0].split()[1]), int(seen[-1].split()[1])) == expected


@pytest.mark.parametrize("rows", [1, 3])
def test_the_page_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, rows: int, django_assert_num_queries: Any
) -> None:
    for _ in range(rows):
        append()
    with django_assert_num_queries(3):
        assert len(decisions(client)) == rows
