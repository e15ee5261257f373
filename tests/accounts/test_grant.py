"""`manage.py grant USERNAME ROLE`."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from apps.accounts.models import RoleGrant, User
from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.simulator.standin import GitHubStandIn
from tests.factories.listing import user
from tests.live import Hub
from tests.sign_in import Browser


def grant(*arguments: str) -> str:
    out = StringIO()
    call_command("grant", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.django_db
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


@pytest.mark.django_db
def test_a_second_grant_of_the_same_role_writes_nothing() -> None:
    user(Role.OPERATOR, username="ada")
    assert grant("ada", "operator") == "ada already was operator\n"
    assert (RoleGrant.objects.count(), Event.objects.count()) == (1, 1)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("nobody", "maintainer"),
            "There is no user 'nobody'. For a GitHub login add --github; for a name and a password make one with: "
            "manage.py createsuperuser",
        ),
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


def test_a_github_login_is_granted_a_role_before_its_first_sign_in(github: GitHubStandIn, hub: Hub) -> None:
    github.people.add("ada")
    assert grant("ADA", "admin", "--github") == "ada is now admin\n"
    github.people.rename("ada", "ada-l")
    github.people.add("ada")  # whoever has the login at the first sign-in is not who has the role
    for login in ("ada", "ada-l"):
        Browser(hub).sign_in(login)
    assert {user.github_login: user.roles for user in User.objects.all()} == {"ada": set(), "ada-l": {Role.ADMIN}}


def test_a_github_login_that_has_signed_in_is_granted_it_too(github: GitHubStandIn, hub: Hub) -> None:
    github.people.add("ada")
    browser = Browser(hub)
    browser.sign_in("ada")
    assert browser.get("/people/").status_code == 403
    grant("ada", "admin", "--github")
    assert browser.get("/people/").status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (None, "GitHub knows no user 'nobody'."),
        (502, "GitHub answered 502. Try again in a few minutes."),
    ],
)
def test_a_github_login_that_cannot_be_asked_about_makes_no_account(
    github: GitHubStandIn, status: int | None, words: str
) -> None:
    if status:
        github.fail("/users/", status)
    with pytest.raises(CommandError) as caught:
        grant("nobody", "admin", "--github")
    assert str(caught.value) == words
    assert not User.objects.exists()


@pytest.mark.django_db
def test_a_superuser_of_django_is_nobody_here_without_a_grant() -> None:
    root = User.objects.create_superuser("root", password="password")
    assert (root.is_superuser, root.roles) == (True, set())
