"""`/repositories/<owner>/<name>/participation/`: members and maintainers choose what a repository is sent."""

import datetime
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.platforms.models import MaintenanceWindow, Participation, Repository
from apps.platforms.participation import Choice, announce_window, change_participation
from apps.platforms.policy import WINDOW_RULES, Span, most_within, refuse_window
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = "/repositories/acme/torch/participation/"
MIDNIGHT = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)


@pytest.fixture
def acme() -> Repository:
    return listed({"acme/torch": 2, "other/torch": 2})["acme/torch"]


@pytest.fixture
def ada(client: Client, acme: Repository) -> User:
    made = member_of(acme.platform, username="ada")
    client.force_login(made)
    return made


def choice(**values: Any) -> dict[str, Any]:
    """The form as a browser posts it."""
    return {
        "act": "choose",
        "expected_revision": "0",
        "events": ["pull_request", "push"],
        "refs": "",
        "labels": "",
        "sample_percent": "100",
        "max_in_flight": "",
    } | values


def window(hours_ahead: float = 25, hours: float = 2, **values: Any) -> dict[str, Any]:
    start = now() + datetime.timedelta(hours=hours_ahead)
    end = start + datetime.timedelta(hours=hours)
    times = {"starts_at": f"{start:%Y-%m-%dT%H:%M}", "ends_at": f"{end:%Y-%m-%dT%H:%M}"}
    return {"act": "announce", "note": "new cards"} | times | values


def last_event() -> dict[str, Any]:
    body = body_of(Event.objects.latest("seq"))
    keys = ("action", "summary", "before", "after", "reason", "is_decision")
    return {key: body[key] for key in keys} | {"by": body["actor"]["label"], "about": body["subject"]["label"]}


ALL = {"events": ["pull_request", "push"], "refs": [], "labels": [], "sample_percent": 100, "max_in_flight": None}


def test_a_member_chooses_and_it_stands_in_the_log(client: Client, ada: User, acme: Repository) -> None:
    given = choice(events=["push"], refs="main\r\n release/* \r\n\r\nmain", labels="ciflow/acme", sample_percent="25")
    given["max_in_flight"] = "4"
    assert client.post(URL, given).headers["Location"] == URL
    after: dict[str, Any] = {"events": ["push"], "refs": ["main", "release/*"], "labels": ["ciflow/acme"]}
    after |= {"sample_percent": 25, "max_in_flight": 4}
    assert list(Participation.objects.values(*after, "repository", "revision")) == [
        after | {"repository": acme.pk, "revision": 1}
    ]
    assert last_event() == {
        "action": "repository.participation_changed",
        "summary": "acme/torch takes part otherwise: events and refs and labels and sample percent and max in flight",
        "before": ALL,
        "after": after,
        "reason": "",
        "is_decision": False,
        "by": "ada",
        "about": "acme/torch",
    }
    html = client.get(URL).content.decode()
    assert "release/*</textarea>" in html
    assert 'name="expected_revision" value="1"' in html


def test_what_holds_already_writes_nothing(client: Client, ada: User) -> None:
    before = Event.objects.count()
    assert "That holds already." in Page(client.post(URL, choice(), follow=True)).text
    assert (Participation.objects.count(), Event.objects.count()) == (0, before)


def test_who_saw_an_older_choice_is_told_so(client: Client, ada: User, acme: Repository) -> None:
    change_participation(repository=acme, choice=Choice(sample_percent=50), expected_revision=0, actor=TESTS, now=now())
    answer = client.post(URL, choice(sample_percent="10"))
    assert (answer.status_code, "someone chose otherwise meanwhile" in Page(answer).text) == (409, True)
    assert Participation.objects.get().sample_percent == 50


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"events": []}, "This field is required."),
        ({"events": ["nightly"]}, "nightly is not one of the available choices."),
        ({"sample_percent": "0"}, "greater than or equal to 1."),
        ({"sample_percent": "101"}, "less than or equal to 100."),
        ({"max_in_flight": "0"}, "greater than or equal to 1."),
        ({"refs": "a b"}, "refs: 'a b' can be no name of one, write one a line."),
        ({"refs": "\n".join(map(str, range(21)))}, "refs: 21 lines, at most 20."),
        ({"refs": "x" * 201}, "can be no name of one"),
        ({"labels": "a,b"}, "labels: 'a,b' can be no name of one, write one a line."),
    ],
)
def test_what_cannot_be_chosen_is_said_at_its_field(
    client: Client, ada: User, wrong: dict[str, Any], said: str
) -> None:
    answer = client.post(URL, choice(**wrong))
    assert (answer.status_code in (200, 400), said in Page(answer).text) == (True, True)
    assert 'aria-invalid="true"' in answer.content.decode()
    assert not Participation.objects.exists()


def test_a_window_is_announced_shown_to_everyone_and_withdrawn(client: Client, ada: User, acme: Repository) -> None:
    assert client.post(URL, window()).headers["Location"] == URL
    made = MaintenanceWindow.objects.get()
    told = last_event()
    span = f"from {made.starts_at:%Y-%m-%d %H:%M} to {made.ends_at:%Y-%m-%d %H:%M} UTC"
    assert (told["action"], told["summary"], told["reason"]) == (
        "repository.window_announced",
        f"acme/torch will be in maintenance {span}",
        "new cards",
    )
    shown = (f"{made.starts_at:%Y-%m-%d %H:%M:%S} UTC", f"{made.ends_at:%Y-%m-%d %H:%M:%S} UTC")
    assert Page(Client().get("/platforms/acme-torch/")).tables["maintenance"] == [("acme/torch", "new cards", *shown)]
    assert Page(client.get(URL)).tables["windows"] == [("new cards", *shown, "Withdraw new cards")]
    client.post(URL, {"act": "withdraw", "window": str(made.public_id)})
    assert last_event()["action"] == "repository.window_withdrawn"
    assert "maintenance" not in Page(Client().get("/platforms/acme-torch/")).tables
    count = Event.objects.count()
    client.post(URL, {"act": "withdraw", "window": str(made.public_id)})  # again: nothing
    assert Event.objects.count() == count


def test_a_window_that_has_begun_is_ended_early(client: Client, ada: User, acme: Repository) -> None:
    start = now() - datetime.timedelta(hours=1)
    made = announce_window(
        repository=acme,
        starts_at=start,
        ends_at=start + datetime.timedelta(hours=9),
        note="new cards",
        actor=TESTS,
        now=start - datetime.timedelta(hours=30),
    )
    assert "▲ now" in Page(client.get("/platforms/acme-torch/")).tables["maintenance"][0][1]
    client.post(URL, {"act": "withdraw", "window": str(made.public_id)})
    made.refresh_from_db()
    assert (made.withdrawn_at, made.ends_at < now()) == (None, True)


def test_a_refused_window_says_which_rule(client: Client, ada: User) -> None:
    answer = client.post(URL, window(hours_ahead=20))
    assert (answer.status_code, "windows are announced 24 h ahead." in Page(answer).text) == (400, True)
    answer = client.post(URL, window(starts_at="tomorrow"))
    assert (answer.status_code, "Write a time as 2026-11-30T14:30, UTC." in Page(answer).text) == (200, True)
    assert not MaintenanceWindow.objects.exists()


def span(day: float, hours: float) -> Span:
    start = MIDNIGHT + datetime.timedelta(days=day)
    return start, start + datetime.timedelta(hours=hours)


@pytest.mark.parametrize(
    ("new", "others", "refusal"),
    [
        (span(1, 72), [], None),
        (span(1, 72.5), [], "ends_at: that makes 72.5 h within 30 d, at most 72 h."),
        (span(1, 0), [], "ends_at: 2026-11-02 00:00 UTC is not after the start, 2026-11-02 00:00 UTC."),
        (span(0.9, 1), [], "starts_at: 2026-11-01 21:36 UTC is too soon, windows are announced 24 h ahead."),
        (span(90.5, 1), [], "starts_at: 2027-01-30 12:00 UTC is too far ahead, at most 90 d."),
        (
            span(3, 5),
            [span(2.9, 5)],
            "starts_at: it overlaps the window from 2026-11-03 21:36 UTC to 2026-11-04 02:36 UTC.",
        ),
        (span(3, 5), [span(2, 24)], None),
        (span(5, 40), [span(-20, 40)], "ends_at: that makes 80.0 h within 30 d, at most 72 h."),
        (span(5, 40), [span(-30, 40)], None),
        (span(5, 40), [span(33, 40)], "ends_at: that makes 80.0 h within 30 d, at most 72 h."),
        (span(5, 40), [span(-8, 30), span(20, 10)], "ends_at: that makes 80.0 h within 30 d, at most 72 h."),
    ],
)
def test_the_rules_of_windows(new: Span, others: list[Span], refusal: str | None) -> None:
    assert refuse_window(new, others, now=MIDNIGHT) == refusal


def test_of_no_windows_there_is_no_maintenance() -> None:
    assert most_within([]) == datetime.timedelta()


def test_the_rules_stand_on_the_page(client: Client, ada: User) -> None:
    assert Page(client.get(URL)).facts["windows"] == {rule.what: rule.limit for rule in WINDOW_RULES}


def test_members_and_maintainers_may_and_others_not(client: Client, acme: Repository) -> None:
    other = Repository.objects.get(full_name="other/torch").platform
    people = {
        "user": user(),
        "operator": user(Role.OPERATOR),
        "another platform's member": member_of(other),
        "member": member_of(acme.platform),
        "maintainer": user(Role.MAINTAINER),
    }
    seen = {}
    for name, person in people.items():
        client.force_login(person)
        offered = URL in Page(client.get("/platforms/acme-torch/")).links
        seen[name] = [offered, client.get(URL).status_code, client.post(URL, choice()).status_code]
    refused, allowed = [False, 403, 403], [True, 200, 302]
    assert seen == {
        "user": refused,
        "operator": refused,
        "another platform's member": refused,
        "member": allowed,
        "maintainer": allowed,
    }


def test_what_is_not_there_is_not_found(client: Client, ada: User) -> None:
    other = Repository.objects.get(full_name="other/torch")
    start = now() + datetime.timedelta(days=2)
    theirs = announce_window(
        repository=other, starts_at=start, ends_at=start + datetime.timedelta(hours=1), note="x", actor=TESTS, now=now()
    )
    forms = [{"act": "withdraw", "window": str(theirs.public_id)}, {"act": "withdraw", "window": "x"}, {"act": "?"}]
    assert [client.post(URL, form).status_code for form in forms] == [404] * 3
    assert client.get("/repositories/acme/nothing/participation/").status_code == 404


@pytest.mark.parametrize("rows", [1, 3])
def test_it_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, ada: User, acme: Repository, rows: int, django_assert_num_queries: Any
) -> None:
    for number in range(rows):
        client.post(URL, window(hours_ahead=25 + 3 * number))
    with django_assert_num_queries(9):
        page = Page(client.get(URL))
    assert len(page.tables["windows"]) == rows
