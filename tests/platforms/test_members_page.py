"""`/platforms/<slug>/members/` and `/invitations/<code>/`: who speaks for a platform, and by whose word."""

import datetime
import re
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.accounts.services import remove_role, switch_account
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.core.errors import Problem
from apps.platforms.members import OPEN_INVITATIONS, accept_invitation, create_invitation
from apps.platforms.models import Invitation, Membership, Platform
from apps.platforms.services import add_member
from tests.factories.jobs import days_ago
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = "/platforms/acme-torch/members/"


@pytest.fixture
def acme(db: None) -> Platform:
    return listed({"acme/torch": 1, "other/torch": 1})["acme/torch"].platform


@pytest.fixture
def ada(client: Client, acme: Platform) -> User:
    made = member_of(acme, username="ada")
    client.force_login(made)
    return made


def invited(platform: Platform, by: User, *, at: datetime.datetime | None = None, note: str = "Bo") -> str:
    """The path of a new invitation."""
    code = create_invitation(platform=platform, note=note, inviter=by, actor=TESTS, now=at or now())[1]
    return f"/invitations/{code}/"


def members(platform: Platform) -> set[str]:
    return set(Membership.objects.filter(platform=platform).values_list("user__username", flat=True))


def last_event() -> dict[str, Any]:
    event = Event.objects.first()
    assert event is not None
    body = body_of(event)
    keys = ("action", "summary", "before", "after", "reason", "evidence", "is_decision")
    return {key: body[key] for key in keys} | {"by": body["actor"]["label"], "about": body["subject"]}


ABOUT = {"kind": "platform", "id": "acme-torch", "label": "torch"}


def test_a_member_makes_an_invitation_and_sees_its_link_once(client: Client, ada: User, acme: Platform) -> None:
    answer = client.post(URL, {"act": "invite", "note": "Bo"})
    link = re.search(r"http://127\.0\.0\.1:8000(/invitations/[\w-]{32}/)", answer.content.decode())
    assert link is not None
    assert "no-store" in answer.headers["Cache-Control"]
    made = Invitation.objects.get()
    assert made.expires_at - made.created_at == datetime.timedelta(days=7)
    assert link[1].split("/")[2] not in str(list(Invitation.objects.values()))
    assert last_event() == {
        "action": "platform.invitation_created",
        "summary": "Invitation to speak for torch",
        "before": {},
        "after": {},
        "reason": "",
        "evidence": {"invitation": str(made.public_id)},
        "is_decision": False,
        "by": "ada",
        "about": ABOUT,
    }
    Membership.objects.update(joined_at=days_ago(3))
    page = Page(client.get(URL))
    assert link[1] not in page.html
    assert page.tables == {
        "members": [("ada (you)", "none", "3 d ago", "Remove ada")],
        "invitations": [("Bo", "ada", "in 6 d", "Withdraw the one for Bo")],
    }


def test_whoever_has_the_link_signs_in_and_speaks_for_the_platform(client: Client, ada: User, acme: Platform) -> None:
    path = invited(acme, ada)
    public_id = Invitation.objects.get().public_id
    client.logout()
    assert client.get(path).headers["Location"] == f"/accounts/login/?next={path}"
    client.force_login(user(username="bo"))
    page = Page(client.get(path))
    assert (page.heading, page.facts[""]["Platform"], page.facts[""]["You are"]) == ("Speak for torch?", "torch", "bo")
    assert members(acme) == {"ada"}
    assert client.post(path).headers["Location"] == URL
    assert members(acme) == {"ada", "bo"}
    assert last_event() == {
        "action": "platform.member_added",
        "summary": "bo speaks for torch",
        "before": {},
        "after": {"user": "bo"},
        "reason": "invited by ada",
        "evidence": {"invitation": str(public_id)},
        "is_decision": False,
        "by": "bo",
        "about": ABOUT,
    }


def test_an_invitation_serves_once(client: Client, ada: User, acme: Platform) -> None:
    path = invited(acme, ada)
    for name, expected in (("bo", [200, 302]), ("cy", [410, 410])):
        client.force_login(user(username=name))
        assert [client.get(path).status_code, client.post(path).status_code] == expected
    assert members(acme) == {"ada", "bo"}


@pytest.mark.parametrize(("age", "expected"), [(6, [200, 302]), (7, [410, 410])])
def test_an_invitation_runs_out_after_seven_days(
    client: Client, ada: User, acme: Platform, age: int, expected: list[int]
) -> None:
    path = invited(acme, ada, at=days_ago(age))
    assert len(Page(client.get(URL)).tables.get("invitations", [])) == (expected[0] == 200)
    client.force_login(user(username="bo"))
    assert [client.get(path).status_code, client.post(path).status_code] == expected


@pytest.mark.parametrize("end", ["role removed", "switched off"])
def test_an_invitation_ends_with_the_rights_of_who_made_it(client: Client, ada: User, acme: Platform, end: str) -> None:
    maintainer = user(Role.MAINTAINER, username="mia")
    path = invited(acme, maintainer)
    if end == "role removed":
        remove_role(user=maintainer, role=Role.MAINTAINER, reason="left", actor=TESTS, now=now())
    else:
        switch_account(user=maintainer, is_active=False, reason="left", actor=TESTS, now=now())
    client.force_login(user(username="bo"))
    answer = client.post(path)
    assert (answer.status_code, "Who made it may no longer invite." in Page(answer).text) == (410, True)
    assert members(acme) == {"ada"}


def test_two_invitations_at_once_do_not_both_go_to_one_person(ada: User, acme: Platform) -> None:
    bo = user(username="bo")
    for _ in range(2):
        invited(acme, ada)
    invitations = list(Invitation.objects.order_by("pk"))
    accept_invitation(invitation=invitations[0], user=bo, actor=TESTS, now=now())
    with pytest.raises(Problem, match="already speak"):
        accept_invitation(invitation=invitations[1], user=bo, actor=TESTS, now=now())
    assert [made.accepted_at is None for made in Invitation.objects.order_by("pk")] == [False, True]


def test_a_withdrawn_invitation_opens_nothing(client: Client, ada: User, acme: Platform) -> None:
    path = invited(acme, ada)
    invitation = Invitation.objects.get()
    form = {"act": "withdraw", "invitation": str(invitation.public_id)}
    assert client.post(URL, form).headers["Location"] == URL
    told = last_event()
    assert (told["action"], told["summary"]) == (
        "platform.invitation_withdrawn",
        "Invitation to speak for torch withdrawn",
    )
    client.post(URL, form)  # again: nothing
    assert last_event() == told
    client.force_login(user(username="bo"))
    assert [client.get(path).status_code, client.post(path).status_code] == [410, 410]


def test_who_speaks_for_the_platform_already_does_not_use_the_invitation_up(
    client: Client, ada: User, acme: Platform
) -> None:
    path = invited(acme, ada)
    answer = client.post(path)
    assert (answer.status_code, "leave the link to someone else" in answer.content.decode()) == (400, True)
    client.force_login(user(username="bo"))
    assert client.post(path).status_code == 302


def test_of_two_who_accept_at_once_one_is_refused(ada: User, acme: Platform) -> None:
    invited(acme, ada)
    both = [Invitation.objects.select_related("platform", "invited_by").get() for _ in range(2)]  # both saw it open
    bo, cy = user(username="bo"), user(username="cy")
    accept_invitation(invitation=both[0], user=bo, actor=TESTS, now=now())
    with pytest.raises(Problem) as refused:
        accept_invitation(invitation=both[1], user=cy, actor=TESTS, now=now())
    assert refused.value.code == "invitation_closed"
    assert members(acme) == {"ada", "bo"}


def test_twenty_invitations_may_be_open(client: Client, ada: User, acme: Platform) -> None:
    for _ in range(OPEN_INVITATIONS):
        invited(acme, ada)
    answer = client.post(URL, {"act": "invite", "note": "one more"})
    assert "20 invitations are open: withdraw one that is not needed." in Page(answer).text
    assert Invitation.objects.count() == OPEN_INVITATIONS


@pytest.mark.parametrize("note", ["", "x" * 101, "a\0b"])
def test_an_invitation_needs_a_note(client: Client, ada: User, note: str) -> None:
    answer = client.post(URL, {"act": "invite", "note": note})
    assert (answer.status_code, Invitation.objects.exists()) == (200, False)
    assert 'aria-invalid="true"' in answer.content.decode()


def test_a_removed_member_sees_nothing_more_and_their_invitations_end(
    client: Client, ada: User, acme: Platform
) -> None:
    bo = member_of(acme, username="bo")
    kept, gone = invited(acme, ada), invited(acme, bo)
    by_bo = Invitation.objects.get(invited_by=bo)
    bos = Client()
    bos.force_login(bo)
    assert "Private callbacks" in bos.get("/platforms/acme-torch/").content.decode()
    client.post(URL, {"act": "remove", "user": str(bo.public_id)})
    assert last_event() == {
        "action": "platform.member_removed",
        "summary": "bo no longer speaks for torch",
        "before": {"user": "bo"},
        "after": {},
        "reason": "",
        "evidence": {"invitations_withdrawn": [str(by_bo.public_id)]},
        "is_decision": False,
        "by": "ada",
        "about": ABOUT,
    }
    assert "Private callbacks" not in bos.get("/platforms/acme-torch/").content.decode()
    bos.force_login(user(username="cy"))
    assert [bos.get(kept).status_code, bos.get(gone).status_code] == [200, 410]


def test_a_maintainer_may_all_of_it_and_others_nothing(client: Client, acme: Platform) -> None:
    other = Platform.objects.get(slug="other-torch")
    ada = member_of(acme, username="ada")
    people = {
        "user": user(),
        "operator": user(Role.OPERATOR),
        "another platform's member": member_of(other),
        "maintainer": user(Role.MAINTAINER),
        "admin": user(Role.ADMIN),
    }
    seen: dict[str, list[Any]] = {}
    for name, person in people.items():
        invited(acme, ada)
        invitation = Invitation.objects.latest("pk")
        bo = member_of(acme)
        client.force_login(person)
        forms: list[dict[str, str]] = [
            {"act": "invite", "note": "x"},
            {"act": "withdraw", "invitation": str(invitation.public_id)},
            {"act": "remove", "user": str(bo.public_id)},
        ]
        page = Page(client.get(URL))
        seen[name] = ["ada" in page.text, *(client.post(URL, form).status_code for form in forms)]
    refused, allowed = [False, 403, 403, 403], [True, 200, 302, 302]
    assert seen == {
        "user": refused,
        "operator": refused,
        "another platform's member": refused,
        "maintainer": allowed,
        "admin": allowed,
    }


def test_what_belongs_to_another_platform_is_not_found_here(client: Client, ada: User, acme: Platform) -> None:
    other = Platform.objects.get(slug="other-torch")
    eve = member_of(other, username="eve")
    invited(other, eve)
    forms = [
        {"act": "withdraw", "invitation": str(Invitation.objects.get().public_id)},
        {"act": "remove", "user": str(eve.public_id)},
        {"act": "remove", "user": "x"},
        {"act": "withdraw"},
        {"act": "explode"},
    ]
    assert [client.post(URL, form).status_code for form in forms] == [404] * 5
    assert (members(other), Invitation.objects.get().withdrawn_at) == ({"eve"}, None)


def test_an_unknown_code_is_not_found(client: Client, ada: User) -> None:
    assert [client.get("/invitations/nonsense/").status_code, client.post("/invitations/x/").status_code] == [404, 404]


def test_the_platforms_page_leads_there_for_who_is_signed_in(client: Client, acme: Platform) -> None:
    assert URL not in Page(client.get("/platforms/acme-torch/")).links
    client.force_login(user())
    assert URL in Page(client.get("/platforms/acme-torch/")).links


@pytest.mark.parametrize("rows", [1, 3])
def test_it_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, ada: User, acme: Platform, rows: int, django_assert_num_queries: Any
) -> None:
    for number in range(rows - 1):
        add_member(platform=acme, user=user(username=f"bo-{number}"), actor=TESTS, now=days_ago(3))
    for _ in range(rows):
        invited(acme, ada)
    client.get(URL)
    with django_assert_num_queries(11):
        page = Page(client.get(URL))
    assert [len(page.tables[name]) for name in ("members", "invitations")] == [rows, rows]
