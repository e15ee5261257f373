"""API tokens: `manage.py apitoken` makes one, `Authorization: Bearer` uses it."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from apps.accounts.models import ApiToken
from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.api import SIGN_IN
from tests.factories.listing import listed, user
from tests.factories.pages import problem, problem_body

pytestmark = pytest.mark.django_db

UNKNOWN = "This API token is unknown or its user is no longer active: make one on /account/."


def made_token(username: str, *options: str) -> str:
    out = StringIO()
    call_command("apitoken", username, *options, stdout=out)
    return out.getvalue().strip()


def raise_level(client: Client, token: str, scheme: str = "Bearer") -> Any:
    return client.post(
        reverse("api:level", args=["acme", "torch"]),
        {"level": "L2", "reason": "60 days green"},
        content_type="application/json",
        headers={"Authorization": f"{scheme} {token}"},
    )


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_a_token_acts_with_its_users_rights(client: Client, scheme: str) -> None:
    repository = listed({"acme/torch": 1})["acme/torch"]
    maintainer = user(Role.MAINTAINER, username="ada")
    answer = raise_level(client, made_token("ada"), scheme)
    assert answer.status_code == 200
    assert answer.json()["actor"] == {"kind": "user", "id": str(maintainer.public_id), "label": "ada"}
    repository.refresh_from_db()
    assert repository.level == 2


def test_a_token_has_no_more_rights_than_its_user(client: Client) -> None:
    listed({"acme/torch": 1})
    user(Role.OPERATOR, username="ada")
    answer = raise_level(client, made_token("ada"))
    assert problem(answer)[0] == 403
    assert answer.json()["code"] == "not_permitted"


def test_the_tokens_text_is_nowhere_in_the_database() -> None:
    user(username="ada")
    token = made_token("ada", "--note", "for the nightly job")
    assert token.startswith("ahub_")
    rows = []
    for table in connection.introspection.table_names():
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT "{table}"::text FROM "{table}"')  # noqa: S608  our own tables' names
            rows += [row for (row,) in cursor.fetchall()]
    everything = "\n".join(rows)
    assert "for the nightly job" in everything
    assert token not in everything
    assert token.removeprefix("ahub_") not in everything


def test_making_a_token_stands_in_the_log_but_is_no_decision() -> None:
    user(username="ada")
    made_token("ada", "--note", "for the nightly job")
    body = body_of(Event.objects.get())
    assert (body["action"], body["summary"], body["after"], body["is_decision"]) == (
        "user.token_created",
        "API token made for ada",
        {"note": "for the nightly job"},
        False,
    )


def test_a_token_for_nobody_is_refused() -> None:
    with pytest.raises(CommandError) as caught:
        made_token("nobody")
    assert str(caught.value) == "There is no user 'nobody'."
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("token", ["ahub_unknown", "", "ahub_\u00e9", "a b c"])
def test_an_unknown_token_is_refused_and_told_how_to_sign_in(client: Client, token: str) -> None:
    listed({"acme/torch": 1})
    answer = raise_level(client, token)
    assert problem(answer) == problem_body("not_signed_in", UNKNOWN)
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="AccelHub"'


def test_a_token_is_dead_while_its_user_is_inactive(client: Client) -> None:
    listed({"acme/torch": 1})
    ada = user(Role.MAINTAINER, username="ada")
    token = made_token("ada")
    ada.is_active = False
    ada.save()
    assert problem(raise_level(client, token)) == problem_body("not_signed_in", UNKNOWN)


def test_another_scheme_is_left_to_other_ways_of_signing_in(client: Client) -> None:
    listed({"acme/torch": 1})
    answer = raise_level(client, "YWRhOnBhc3N3b3Jk", scheme="Basic")
    assert problem(answer) == problem_body("not_signed_in", SIGN_IN)
