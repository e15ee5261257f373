"""`manage.py grant USERNAME ROLE`."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from apps.accounts.models import RoleGrant
from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from tests.factories.listing import user

pytestmark = pytest.mark.django_db


def grant(*arguments: str) -> str:
    out = StringIO()
    call_command("grant", *arguments, stdout=out)
    return out.getvalue()


def test_a_grant_gives_the_role_and_stands_in_the_log_but_is_no_decision() -> None:
    ada = user(username="ada")
    assert grant("ada", "maintainer") == "ada is now maintainer\n"
    assert ada.roles == {Role.MAINTAINER}
    event = Event.objects.get()
    assert {key: value for key, value in body_of(event).items() if key not in ("at", "seq", "format")} == {
        "action": "user.role_granted",
        "actor": {"kind": "command", "id": "grant", "label": "operator, by manage.py grant"},
        "subject": {"kind": "user", "id": str(ada.public_id), "label": "ada"},
        "summary": "ada became maintainer",
        "before": {},
        "after": {"role": "maintainer"},
        "reason": "",
        "evidence": {},
        "is_decision": False,
    }


def test_a_second_grant_of_the_same_role_writes_nothing() -> None:
    user(Role.OPERATOR, username="ada")
    assert grant("ada", "operator") == "ada already was operator\n"
    assert (RoleGrant.objects.count(), Event.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nobody", "maintainer"), "There is no user 'nobody'. Make one with: manage.py createsuperuser"),
        (
            ("ada", "vendor_member"),
            "Error: argument role: invalid choice: 'vendor_member' (choose from 'maintainer', 'operator', 'admin')",
        ),
    ],
)
def test_a_grant_that_cannot_be_made_says_why(arguments: tuple[str, ...], words: str) -> None:
    user(username="ada")
    with pytest.raises(CommandError) as caught:
        grant(*arguments)
    assert str(caught.value) == words
    assert not RoleGrant.objects.exists()
