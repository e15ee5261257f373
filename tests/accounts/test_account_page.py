"""`/account/`: one's own roles, platforms, sessions and API tokens."""

import re
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import ApiToken, UserSession
from apps.accounts.policy import Role
from apps.accounts.services import create_api_token, create_organisation, set_organisation
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from tests.factories.jobs import days_ago
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = "/account/"


@pytest.fixture
def ada(client: Client) -> Any:
    made = user(Role.OPERATOR, username="ada", email="ada@example.com")
    client.force_login(made)
    return made


def last_event() -> dict[str, Any]:
    event = Event.objects.first()
    assert event is not None
    keys = ("action", "actor", "subject", "summary", "before", "after", "evidence", "is_decision")
    return {key: body_of(event)[key] for key in keys}


def as_actor(who: Any) -> dict[str, Any]:
    return {"kind": "user", "id": str(who.public_id), "label": who.username}


def test_it_says_who_one_is(client: Client) -> None:
    acme = listed({"acme/torch": 1, "other/torch": 1})["acme/torch"]
    member = member_of(acme.platform, username="ada", email="ada@example.com", github_login="ada-l")
    firm = create_organisation(name="Acme", slug="acme", actor=TESTS, now=now())
    set_organisation(user=member, organisation=firm, reason="payroll", actor=TESTS, now=now())
    client.force_login(member)
    assert Page(client.get(URL)).facts["who"] == {
        "Name": "ada",
        "GitHub": "ada-l",
        "E-mail": "ada@example.com",
        "Roles": "none: what is public, and your platforms",
        "Organisation": "Acme",
        "Platforms": "torch",
    }


def test_what_one_lacks_is_said_with_the_way_to_it(client: Client, ada: Any) -> None:
    assert Page(client.get(URL)).facts["who"] == {
        "Name": "ada",
        "GitHub": "not signed in through GitHub",
        "E-mail": "ada@example.com",
        "Roles": "Operator (by hand)",
        "Organisation": "none, an admin says whom you work for",
        "Platforms": "none: ask a member of yours for an invitation",
    }


# --- tokens -----------------------------------------------------------------------------------------------------


def test_a_token_is_shown_once_and_works(client: Client, ada: Any) -> None:
    answer = client.post(URL, {"act": "create", "note": "nightly job"})
    found = re.search(r"ahub_[\w-]{43}", answer.content.decode())
    assert found is not None
    assert "no-store" in answer.headers["Cache-Control"]
    assert last_event() == {
        "action": "user.token_created",
        "actor": as_actor(ada),
        "subject": as_actor(ada),
        "summary": "API token made for ada",
        "before": {},
        "after": {"note": "nightly job"},
        "evidence": {},
        "is_decision": False,
    }
    ApiToken.objects.update(created_at=days_ago(3))
    page = Page(client.get(URL))
    assert found[0] not in page.html
    assert page.tables["tokens"] == [("nightly job", "3 d ago", "Revoke nightly job")]
    client.logout()
    api = client.post("/api/v1/repositories/acme/torch/level/", headers={"Authorization": f"Bearer {found[0]}"})
    assert api.status_code == 403  # known, and an operator may not


@pytest.mark.parametrize("note", ["", "x" * 101, "a\0b"])
def test_a_token_without_a_usable_note_is_not_made(client: Client, ada: Any, note: str) -> None:
    answer = client.post(URL, {"act": "create", "note": note})
    assert (answer.status_code, ApiToken.objects.exists()) == (200, False)
    assert 'aria-invalid="true"' in answer.content.decode()


def test_a_revoked_token_opens_nothing(client: Client, ada: Any) -> None:
    texts = [create_api_token(user=ada, note=note, actor=TESTS, now=days_ago(3)) for note in ("old", "kept")]
    token = ApiToken.objects.get(note="old")
    answer = client.post(URL, {"act": "revoke", "token": str(token.public_id)})
    assert (answer.status_code, answer.headers["Location"]) == (302, URL)
    assert last_event() == {
        "action": "user.token_revoked",
        "actor": as_actor(ada),
        "subject": as_actor(ada),
        "summary": "API token of ada revoked",
        "before": {"note": "old"},
        "after": {},
        "evidence": {},
        "is_decision": False,
    }
    client.logout()
    statuses = [
        client.post("/api/v1/repositories/a/b/level/", headers={"Authorization": f"Bearer {text}"}).status_code
        for text in texts
    ]
    assert statuses == [401, 403]


def test_anothers_token_is_neither_shown_nor_revoked(client: Client, ada: Any) -> None:
    eve = user(username="eve")
    create_api_token(user=eve, note="the other one's", actor=TESTS, now=days_ago(3))
    page = Page(client.get(URL))
    assert ("the other one" in page.text, page.tables) == (False, {})
    for token in (str(ApiToken.objects.get().public_id), "", "x"):
        assert client.post(URL, {"act": "revoke", "token": token}).status_code == 404
    assert ApiToken.objects.count() == 1


# --- sessions ---------------------------------------------------------------------------------------------------


def test_signing_out_everywhere_ends_every_session_of_this_user_and_no_token(client: Client, ada: Any) -> None:
    text = create_api_token(user=ada, note="kept", actor=TESTS, now=now())
    other, eve = Client(), Client()
    other.force_login(ada)
    eve.force_login(user(Role.ADMIN, username="eve"))
    assert "signed in with 2 browsers, this one included" in Page(client.get(URL)).text
    answer = client.post(URL, {"act": "sign_out"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/accounts/login/")
    assert [browser.get(URL).status_code for browser in (client, other, eve)] == [302, 302, 200]
    assert last_event() == {
        "action": "user.signed_out_everywhere",
        "actor": as_actor(ada),
        "subject": as_actor(ada),
        "summary": "ada signed out everywhere",
        "before": {},
        "after": {},
        "evidence": {"sessions": 2},
        "is_decision": False,
    }
    api = client.post("/api/v1/repositories/a/b/level/", headers={"Authorization": f"Bearer {text}"})
    assert api.status_code == 403


def test_a_session_that_is_written_back_afterwards_is_dead_all_the_same(client: Client, ada: Any) -> None:
    """A request that was under way saves its session again: the row returns, its user does not."""
    session = client.session
    kept = dict(session.items())
    client.post(URL, {"act": "sign_out"})
    assert not UserSession.objects.filter(user=ada).exists()
    late = Client()
    late.force_login(user(username="eve"))  # gives the browser a cookie
    revived = late.session
    revived.clear()
    revived.update(kept)
    revived.save()
    assert UserSession.objects.filter(user=ada).count() == 1
    assert late.get(URL).status_code == 302


def test_a_session_knows_whose_it_is_and_nobodys_is_nobodys(client: Client, ada: Any) -> None:
    visitor = Client()
    session = visitor.session
    session["x"] = 1
    session.save()
    assert sorted(UserSession.objects.values_list("user__username", flat=True), key=str) == [None, "ada"]
    assert "ada" in str(UserSession.objects.get(user=ada))
    assert str(session.session_key) not in str(UserSession.objects.get(user=None))


def test_an_act_that_there_is_not_is_not_found(client: Client, ada: Any) -> None:
    assert client.post(URL, {"act": "explode"}).status_code == 404


@pytest.mark.parametrize("rows", [1, 3])
def test_it_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, ada: Any, rows: int, django_assert_num_queries: Any
) -> None:
    for number in range(rows):
        create_api_token(user=ada, note=f"token {number}", actor=TESTS, now=days_ago(3))
    client.get(URL)
    with django_assert_num_queries(7):
        assert len(Page(client.get(URL)).tables["tokens"]) == rows
