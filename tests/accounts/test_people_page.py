"""`/people/`: who is here, with which roles, working for whom; for admins."""

from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Organisation, RoleGrant, User
from apps.accounts.policy import Role
from apps.accounts.services import create_api_token, create_organisation, grant_role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from tests.factories.jobs import days_ago
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = "/people/"
ORGANISATIONS = "/people/organisations/"


@pytest.fixture
def admin(client: Client) -> User:
    made = user(Role.ADMIN, username="root")
    client.force_login(made)
    return made


def page_of(person: User) -> str:
    return f"{URL}{person.public_id}/"


def acme(name: str = "Acme", slug: str = "acme") -> Organisation:
    return create_organisation(name=name, slug=slug, actor=TESTS, now=now())


def told(count: int = 1) -> list[dict[str, Any]]:
    """The newest events, newest first."""
    keys = ("action", "summary", "before", "after", "reason", "evidence", "is_decision")
    events = list(Event.objects.order_by("-seq")[:count])
    return [{key: body_of(event)[key] for key in keys} | {"by": body_of(event)["actor"]["label"]} for event in events]


def test_everyone_stands_there_with_roles_organisation_and_platforms(client: Client, admin: User) -> None:
    repository = listed({"acme/torch": 1})["acme/torch"]
    member = member_of(repository.platform, username="ada", github_login="ada-l", organisation=acme())
    grant_role(user=member, role=Role.MAINTAINER, source=RoleGrant.Source.TEAM, actor=TESTS, now=now())
    grant_role(user=member, role=Role.MAINTAINER, actor=TESTS, now=now())
    user(username="eve", is_active=False)
    User.objects.filter(pk=admin.pk).update(last_login=days_ago(3))
    assert Page(client.get(URL)).tables[""] == [
        ("ada", "ada-l", "Maintainer", "Acme", "torch", "never"),
        ("eve ▲ switched off", "", "none", "none", "none", "never"),
        ("root", "", "Admin", "none", "none", "3 d ago"),
    ]


@pytest.mark.parametrize("query", ["ADA", "da-l", "acm", "Acme I"])
def test_the_search_looks_into_names_logins_and_organisations(client: Client, admin: User, query: str) -> None:
    user(username="ada", github_login="ada-l", organisation=acme("Acme Inc."))
    user(username="eve", github_login="eve-l", organisation=acme("Other", "other"))
    assert [row[0] for row in Page(client.get(URL, {"q": query})).tables[""]] == ["ada"]


@pytest.mark.parametrize("query", ["nobody", "a\0b", "%", "'"])
def test_a_search_without_a_hit_says_so(client: Client, admin: User, query: str) -> None:
    page = Page(client.get(URL, {"q": query}))
    assert ("Nobody has that in their name" in page.text, page.tables) == (True, {})


def test_fifty_stand_on_a_page_and_the_search_goes_on_with_it(client: Client, admin: User) -> None:
    User.objects.bulk_create(User(username=f"ada-{number:02}") for number in range(51))
    first = Page(client.get(URL, {"q": "ada"}))
    assert (len(first.tables[""]), first.links[-1]) == (50, "?q=ada&page=2")
    assert [row[0] for row in Page(client.get(URL, {"q": "ada", "page": "2"})).tables[""]] == ["ada-50"]


def test_a_role_is_granted_with_a_reason_and_stands_in_the_log_but_is_no_decision(client: Client, admin: User) -> None:
    ada = user(username="ada")
    answer = client.post(page_of(ada), {"act": "grant", "role": "maintainer", "reason": "elected"})
    assert (answer.status_code, answer.headers["Location"]) == (302, page_of(ada))
    assert User.objects.get(pk=ada.pk).roles == {Role.MAINTAINER}
    assert told() == [
        {
            "action": "user.role_granted",
            "summary": "ada became maintainer",
            "before": {},
            "after": {"role": "maintainer"},
            "reason": "elected",
            "evidence": {},
            "is_decision": False,
            "by": "root",
        }
    ]
    assert client.get("/decisions/").content.decode().count("became maintainer") == 0


def test_a_role_is_removed_from_every_source(client: Client, admin: User) -> None:
    ada = user(Role.MAINTAINER, username="ada")
    grant_role(user=ada, role=Role.MAINTAINER, source=RoleGrant.Source.TEAM, actor=TESTS, now=now())
    grant_role(user=ada, role=Role.OPERATOR, actor=TESTS, now=now())
    assert Page(client.get(page_of(ada))).facts["now"]["Roles"] == (
        "Maintainer (by hand, by the GitHub team), Operator (by hand)"
    )
    client.post(page_of(ada), {"act": "remove", "role": "maintainer", "reason": "left"})
    assert User.objects.get(pk=ada.pk).roles == {Role.OPERATOR}
    assert told() == [
        {
            "action": "user.role_removed",
            "summary": "ada is no longer maintainer",
            "before": {"role": "maintainer"},
            "after": {},
            "reason": "left",
            "evidence": {"sources": ["hand", "team"]},
            "is_decision": False,
            "by": "root",
        }
    ]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"act": "grant", "role": "maintainer", "reason": " "}, "This field is required."),
        ({"act": "grant", "role": "vendor_member", "reason": "x"}, "Select a valid choice."),
        ({"act": "grant", "role": "maintainer", "reason": "x" * 2_001}, "at most 2000 characters (it has 2001)"),
        ({"act": "remove", "role": "operator", "reason": ""}, "This field is required."),
        ({"act": "remove", "role": "maintainer", "reason": "x"}, "Select a valid choice."),
        ({"act": "seat", "organisation": "99999", "reason": "x"}, "Select a valid choice."),
        ({"act": "seat", "organisation": "", "reason": ""}, "This field is required."),
    ],
)
def test_what_cannot_be_done_is_said_on_its_form(client: Client, admin: User, form: dict[str, str], words: str) -> None:
    ada = user(Role.OPERATOR, username="ada")
    before = Event.objects.count()
    answer = client.post(page_of(ada), form)
    assert (answer.status_code, words in Page(answer).text) == (200, True)
    assert (User.objects.get(pk=ada.pk).roles, Event.objects.count()) == ({Role.OPERATOR}, before)


def test_the_last_admin_stays(client: Client, admin: User) -> None:
    user(Role.ADMIN, username="asleep", is_active=False)
    form = {"act": "remove", "role": "admin", "reason": "tired"}
    answer = client.post(page_of(admin), form)
    assert (answer.status_code, "root is the only admin." in Page(answer).text) == (200, True)
    user(Role.ADMIN, username="ada")
    assert client.post(page_of(admin), form).status_code == 302
    assert client.get(URL).status_code == 403


def test_an_account_is_switched_off_and_on_again(client: Client, admin: User) -> None:
    ada = user(Role.MAINTAINER, username="ada")
    token = create_api_token(user=ada, note="laptop", actor=TESTS, now=now())
    session, bearer = Client(), {"Authorization": f"Bearer {token}"}
    session.force_login(ada)
    url = "/api/v1/repositories/acme/torch/level/"

    def opens() -> tuple[int, int]:
        # An empty body is malformed to whoever may send one.
        return session.get("/rejections/").status_code, client.post(
            url, {}, "application/json", headers=bearer
        ).status_code

    assert opens() == (200, 400)
    answer = client.post(page_of(ada), {"act": "off", "reason": "left"})
    assert (answer.status_code, answer.headers["Location"]) == (302, page_of(ada))
    page = Page(client.get(page_of(ada)))
    assert "ada is switched off." in page.text
    assert opens() == (302, 401)
    client.post(page_of(ada), {"act": "off", "reason": "again"})  # so already
    client.post(page_of(ada), {"act": "on", "reason": "is back"})
    # The session stays ended; the token opens again, with the role that there was.
    assert opens() == (302, 400)
    assert User.objects.get(pk=ada.pk).roles == {Role.MAINTAINER}
    common = {"before": {}, "after": {}, "evidence": {}, "is_decision": False, "by": "root"}
    assert told(2) == [
        common | {"action": "user.switched_on", "summary": "Account ada switched on", "reason": "is back"},
        common | {"action": "user.switched_off", "summary": "Account ada switched off", "reason": "left"},
    ]


def test_the_last_admin_cannot_be_switched_off(client: Client, admin: User) -> None:
    answer = client.post(page_of(admin), {"act": "off", "reason": "tired"})
    assert (answer.status_code, "root is the only admin." in Page(answer).text) == (200, True)
    assert User.objects.get(pk=admin.pk).is_active


def test_an_organisation_is_made_and_someone_belongs_to_it(client: Client, admin: User) -> None:
    ada = user(username="ada")
    assert client.post(ORGANISATIONS, {"name": " Acme Inc. ", "slug": "acme"}).headers["Location"] == ORGANISATIONS
    assert [row[:2] for row in Page(client.get(ORGANISATIONS)).tables["all"]] == [("Acme Inc.", "acme")]
    made = Organisation.objects.get()
    client.post(page_of(ada), {"act": "seat", "organisation": str(made.pk), "reason": "payroll"})
    client.post(page_of(ada), {"act": "seat", "organisation": str(made.pk), "reason": "again"})  # so already
    client.post(page_of(ada), {"act": "seat", "organisation": "", "reason": "left"})
    common = {"evidence": {}, "is_decision": False, "by": "root"}
    assert told(3)[::-1] == [
        common
        | {
            "action": "organisation.created",
            "summary": "Acme Inc. became an organisation",
            "before": {},
            "after": {"slug": "acme", "name": "Acme Inc."},
            "reason": "",
        },
        common
        | {
            "action": "user.organisation_set",
            "summary": "ada belongs to Acme Inc.",
            "before": {},
            "after": {"organisation": "acme"},
            "reason": "payroll",
        },
        common
        | {
            "action": "user.organisation_set",
            "summary": "ada belongs to no organisation",
            "before": {"organisation": "acme"},
            "after": {},
            "reason": "left",
        },
    ]
    assert User.objects.get(pk=ada.pk).organisation is None


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"name": "Acme", "slug": "taken"}, "slug: 'taken' is taken, choose another."),
        ({"name": "Acme", "slug": "Acme"}, "slug: 'Acme' cannot stand in an address, use lower-case letters and -."),
        ({"name": " ", "slug": "acme"}, "This field is required."),
    ],
)
def test_an_organisation_that_cannot_be_made_is_said_on_the_form(
    client: Client, admin: User, form: dict[str, str], words: str
) -> None:
    acme("Taken", "taken")
    answer = client.post(ORGANISATIONS, form)
    assert (answer.status_code, words in Page(answer).text) == (200, True)
    assert Organisation.objects.count() == 1


def test_only_admins_get_there(client: Client) -> None:
    ada = user(username="ada")
    for person in (user(), user(Role.MAINTAINER), user(Role.OPERATOR)):
        client.force_login(person)
        form = {"act": "grant", "role": "admin", "reason": "me"}
        answers = [
            client.get(URL),
            client.get(ORGANISATIONS),
            client.get(page_of(ada)),
            client.post(page_of(ada), form),
        ]
        assert [answer.status_code for answer in answers] == [403] * 4
        assert "/people/" not in client.get("/account/").content.decode()
    assert not RoleGrant.objects.filter(role="admin").exists()


def test_what_there_is_not_is_not_found(client: Client, admin: User) -> None:
    assert client.get(f"{URL}00000000-0000-7000-8000-000000000000/").status_code == 404
    assert client.post(page_of(admin), {"act": "explode"}).status_code == 404


def test_hostile_names_stay_text(client: Client, admin: User) -> None:
    mark = "<script>alert(1)</script>"
    person = user(username=f"ada{mark}", organisation=acme(mark))
    for url in (URL, page_of(person), ORGANISATIONS):
        html = client.get(url).content.decode()
        assert "&lt;script&gt;alert(1)" in html
        assert "<script>alert(1)" not in html


@pytest.mark.parametrize("rows", [1, 3])
def test_the_list_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, admin: User, rows: int, django_assert_num_queries: Any
) -> None:
    repository = listed({"acme/torch": 1})["acme/torch"]
    firm = acme()
    for number in range(rows):
        person = member_of(repository.platform, username=f"ada-{number}", organisation=firm)
        grant_role(user=person, role=Role.OPERATOR, actor=TESTS, now=now())
    client.get(URL)
    with django_assert_num_queries(7):
        assert len(Page(client.get(URL, {"q": "ada"})).tables[""]) == rows
