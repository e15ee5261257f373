"""Overrides: who may, what is refused, what the ledger says, and that the gate heeds them."""

import datetime
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Organisation, User
from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.models import Wakeup
from apps.gate.models import Override, StoredVerdict
from apps.gate.overriding import grant_override, withdraw_override
from apps.gate.services import heads_that_wait, look_again
from apps.gate.topics import GATE_CHANGED
from tests.factories.jobs import days_ago
from tests.factories.listing import member_of, user
from tests.factories.pages import Page
from tests.gate.field import HEAD, KESTREL, NUMBER, Field, hours


@pytest.fixture
def failing(gate_field: Field) -> Field:
    gate_field.sends()
    gate_field.fails({"test_a": "boom"})
    return gate_field


def grants(by: User, at: float = 1, **values: Any) -> Override:
    given: dict[str, Any] = {"pr_number": NUMBER, "repository": None, "reason": "The runner burns."}
    return grant_override(**(given | {"until": hours(at + 24), "by": by, "now": hours(at)} | values))


def test_an_override_holds_from_its_grant_to_its_end(failing: Field) -> None:
    maintainer = user(Role.MAINTAINER, username="ada")
    made = grants(maintainer, repository=failing.kestrel)
    assert [failing.told(at)[0] for at in (0.9, 1, 24.9, 25)] == ["fail", "pass", "pass", "fail"]
    event = Event.objects.latest("seq")
    body = body_of(event)
    assert (event.action, event.is_decision, body["summary"], body["reason"], body["after"]) == (
        "override.granted",
        True,
        f"Gate overridden for {KESTREL} on #{NUMBER} until 2026-11-21 13:00 UTC",
        "The runner burns.",
        {"pr": NUMBER, "sha": "", "repository": KESTREL, "until": "2026-11-21T13:00:00+00:00"},
    )
    withdraw_override(override=made, reason="It is out.", by=maintainer, now=hours(3))
    assert [failing.told(at)[0] for at in (2, 3)] == ["pass", "fail"]
    with pytest.raises(Problem, match="withdrawn, or over"):
        withdraw_override(override=made, reason="Again.", by=maintainer, now=hours(4))


def test_an_override_of_one_head_or_one_repository_covers_no_other(failing: Field) -> None:
    failing.sends(sha="ef" * 20, at=0.1)
    failing.fails({"test_a": "boom"}, sha="ef" * 20)
    grants(user(Role.MAINTAINER), sha=HEAD)
    assert failing.told(2, sha=HEAD)[0] == "pass"
    assert failing.told(2, sha="ef" * 20)[0] == "fail"


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"reason": "  "}, "reason"),
        ({"until": hours(1)}, "until"),
        ({"until": hours(1 + 168.1)}, "until"),
        ({"pr_number": 8}, "pr"),
        ({"sha": "ee" * 20}, "sha"),
    ],
)
def test_what_is_no_override_is_refused(failing: Field, values: dict[str, Any], field: str) -> None:
    with pytest.raises(Problem) as refused:
        grants(user(Role.MAINTAINER), **values)
    assert (refused.value.code, refused.value.field) == ("malformed", field)
    assert not Override.objects.exists()


def test_who_does_not_block_is_not_overridden(failing: Field) -> None:
    with pytest.raises(Problem, match="does not block"):
        grants(user(Role.MAINTAINER), repository=failing.fen)


@pytest.mark.parametrize("scope", ["its part", "all parts"])
@pytest.mark.parametrize("tie", ["member", "colleague"])
def test_nobody_overrides_a_platform_of_their_own_organisation(failing: Field, scope: str, tie: str) -> None:
    made = Organisation.objects.create(slug="kestrel", name="Kestrel", created_at=now())
    member = member_of(failing.kestrel.platform)
    User.objects.filter(pk=member.pk).update(organisation=made)
    maintainer = user(Role.MAINTAINER)
    if tie == "colleague":
        User.objects.filter(pk=maintainer.pk).update(organisation=made)
        maintainer.refresh_from_db()
    else:
        member_of(failing.kestrel.platform)
        failing.kestrel.platform.memberships.create(user=maintainer, joined_at=days_ago(3))
    with pytest.raises(Problem) as refused:
        grants(maintainer, repository=failing.kestrel if scope == "its part" else None)
    assert refused.value.code == "recusal"
    assert failing.told(2)[0] == "fail"
    grants(user(Role.MAINTAINER))
    assert failing.told(2)[0] == "pass"


def test_nobody_withdraws_one_for_a_platform_of_their_own(failing: Field) -> None:
    for repository in (failing.kestrel, None):
        made = grants(user(Role.MAINTAINER), repository=repository)
        own = member_of(failing.kestrel.platform)
        with pytest.raises(Problem) as refused:
            withdraw_override(override=made, reason="It blocks for us.", by=own, now=hours(2))
        assert (refused.value.code, Override.objects.get(pk=made.pk).withdrawn_at) == ("recusal", None)


def test_once_it_has_run_out_the_gate_is_asked_again(failing: Field) -> None:
    """Else its check runs stayed neutral until somebody looked."""
    grants(user(Role.MAINTAINER), repository=failing.kestrel)
    assert failing.told(1)[0] == "pass"
    assert [heads_that_wait(now=hours(at)) for at in (24.9, 25.1)] == [[], [HEAD]]
    look_again(heads_that_wait(now=hours(25.1)), now=hours(25.1))
    newest = StoredVerdict.objects.filter(sha=HEAD).latest("at")
    assert (newest.verdict, newest.at, heads_that_wait(now=hours(26))) == ("fail", hours(25.1), [])
    assert list(Wakeup.objects.filter(topic=GATE_CHANGED).values_list("key", flat=True)) == [HEAD]


def test_a_maintainer_overrides_from_the_page_and_withdraws_on_the_ledger(failing: Field, client: Client) -> None:
    assert f"/overrides/new/?pr={NUMBER}" not in Page(client.get(f"/pr/{NUMBER}/")).links
    client.force_login(user(Role.MAINTAINER, username="ada"))
    assert f"/overrides/new/?pr={NUMBER}" in Page(client.get(f"/pr/{NUMBER}/")).links
    said = {"pr": NUMBER, "sha": "", "repository": KESTREL, "hours": 2, "reason": "The runner burns."}
    late = client.post("/overrides/new/", said | {"hours": 500})
    assert "name a moment in the next 168 h" in late.content.decode()
    assert client.post("/overrides/new/", said).headers["Location"] == f"/pr/{NUMBER}/"
    made = Override.objects.get()
    assert made.until - made.from_at == datetime.timedelta(hours=2)
    page = Page(client.get(f"/pr/{NUMBER}/"))
    assert page.tables["gate"][0][0] == "▲ overridden"
    (row,) = Page(client.get("/overrides/?pr=7&repository=kestrel")).tables["list"]
    assert row[:4] == ("#7", KESTREL, "The runner burns.", "ada")
    assert "list" not in Page(client.get("/overrides/?pr=8")).tables
    where = f"/overrides/{made.public_id}/"
    assert client.post(where, {"reason": "It is out."}).headers["Location"] == where
    assert Page(client.get(where)).facts["about"]["Withdrawn"].endswith("by ada: It is out.")
    assert Page(client.get(f"/pr/{NUMBER}/")).tables["gate"][0][0] == "■ unsatisfied"


def test_nobody_else_withdraws_one(failing: Field, client: Client) -> None:
    made = grants(user(Role.MAINTAINER))
    client.force_login(user())
    assert client.post(f"/overrides/{made.public_id}/", {"reason": "Away."}).status_code == 403
    assert Override.objects.get().withdrawn_at is None


@pytest.mark.parametrize("rows", [1, 3])
def test_the_ledger_asks_as_often_for_one_row_as_for_three(
    failing: Field, client: Client, rows: int, django_assert_num_queries: Any
) -> None:
    for _ in range(rows):
        grants(user(Role.MAINTAINER), repository=failing.kestrel)
    with django_assert_num_queries(2):
        page = Page(client.get("/overrides/"))
    assert len(page.tables["list"]) == rows
