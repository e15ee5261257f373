"""`/dispatches/` and its API: what is not sent, why, and sending it again."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.backoff import BACKOFF_SECONDS
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.platforms.models import Repository
from apps.relay import outbox
from apps.relay.models import Dispatch, Omission
from apps.simulator.standin import GitHubStandIn
from tests.factories.jobs import days_ago, dispatch
from tests.factories.listing import listed, user
from tests.factories.pages import Page, problem
from tests.relay.downstream import Downstream

pytestmark = pytest.mark.django_db
URL, API = "/dispatches/", "/api/v1/dispatches/"
REFUSED = "GitHub answered 422: <b>no</b>"


@pytest.fixture
def acme() -> Repository:
    return listed({"acme/torch": 2, "other/torch": 2})["acme/torch"]


@pytest.fixture
def operator(client: Client) -> User:
    made = user(Role.OPERATOR, username="otto")
    client.force_login(made)
    return made


def put(repository: Repository, delivery_id: str, state: str, **values: Any) -> Dispatch:
    """A dispatch three days old, in a state."""
    made = dispatch(repository, delivery_id=delivery_id, action="opened")
    Dispatch.objects.filter(pk=made.pk).update(state=state, **({} if state == "sent" else {"sent_at": None}), **values)
    made.refresh_from_db()
    return made


@pytest.fixture
def outgoing(acme: Repository) -> dict[str, Dispatch]:
    """One dispatch in each state, and two more that wait in their own ways."""
    at = now() + datetime.timedelta(minutes=30, seconds=30)
    return {
        "sent": put(acme, "d-sent", "sent", attempts=1),
        "again": put(acme, "d-again", "pending", attempts=2, next_attempt_at=at, error="GitHub answered 502"),
        "held": put(acme, "d-held", "pending", attempts=0, error="waits: the repository takes 2 at a time"),
        "sending": put(acme, "d-sending", "sending", attempts=1),
        "given_up": put(acme, "d-given-up", "given_up", attempts=7, error=REFUSED),
    }


ROWS = {
    "given_up": ("acme/torch", "d-given-up pull_request opened", f"■ given up {REFUSED}", "7", "none", "3 d ago"),
    "sending": ("acme/torch", "d-sending pull_request opened", "◐ sending", "1", "none", "3 d ago", ""),
    "held": (
        *("acme/torch", "d-held pull_request opened", "◔ pending waits: the repository takes 2 at a time"),
        *("0", "when one ends", "3 d ago", ""),
    ),
    "again": (
        *("acme/torch", "d-again pull_request opened", "◔ pending GitHub answered 502", "2", "in 30 min", "3 d ago"),
        "",
    ),
    "sent": ("acme/torch", "d-sent pull_request opened", "◆ sent", "1", "none", "3 d ago", ""),
}
ROWS["given_up"] += ("Send again to acme/torch: d-given-up",)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["given_up", "sending", "held", "again"]),
        ({"state": "pending"}, ["held", "again"]),
        ({"state": "sent"}, ["sent"]),
        ({"delivery": "d-sent"}, ["sent"]),
        ({"delivery": "d-s"}, []),
        ({"repository": "ACME"}, ["given_up", "sending", "held", "again"]),
        ({"repository": "other"}, []),
    ],
)
def test_operators_see_what_is_not_sent(
    client: Client, operator: User, outgoing: dict[str, Dispatch], query: dict[str, str], names: list[str]
) -> None:
    answer = client.get(URL, query)
    assert Page(answer).tables.get("", []) == [ROWS[name] for name in names]
    assert "<b>no</b>" not in answer.content.decode()


def test_of_a_named_delivery_it_says_to_whom_it_was_not_sent(
    client: Client, operator: User, outgoing: dict[str, Dispatch]
) -> None:
    other = Repository.objects.get(full_name="other/torch")
    Omission.objects.create(delivery=outgoing["sent"].delivery, repository=other, rule="ref", sentence="fits none")
    assert Page(client.get(URL, {"delivery": "d-sent"})).tables["omissions"] == [("other/torch", "refs", "fits none")]
    assert "omissions" not in Page(client.get(URL)).tables


def test_what_was_given_up_is_sent_again_and_stands_in_the_log(
    client: Client, downstream: Callable[..., Downstream], github: GitHubStandIn, operator: User
) -> None:
    downstream("acme/torch")
    repository = listed({"acme/torch": 2})["acme/torch"]
    given_up = put(repository, "d-1", "given_up", attempts=7, attempts_allowed=7, error="GitHub answered 503")
    given_up.delivery.body = '{"action": "opened"}'
    given_up.delivery.save()
    Wakeup.objects.all().delete()
    answer = client.post(f"{URL}?state=given_up", {"dispatch": str(given_up.pk)})
    assert answer.headers["Location"] == f"{URL}?state=given_up"
    assert list(Wakeup.objects.values_list("topic", "key")) == [("dispatch_pending", str(given_up.pk))]
    body = body_of(Event.objects.latest("seq"))
    assert {key: body[key] for key in ("action", "summary", "before", "after", "is_decision")} == {
        "action": "dispatch.resent",
        "summary": "d-1 to acme/torch is sent again",
        "before": {"state": "given_up", "attempts": 7, "error": "GitHub answered 503"},
        "after": {"state": "pending"},
        "is_decision": False,
    }
    assert (body["actor"]["label"], body["subject"]["label"]) == ("otto", "d-1 to acme/torch")
    github.fail("/dispatches$", status=503)
    assert outbox.send_dispatch(dispatch_pk=given_up.pk, now=now(), chance=1) == "pending"
    given_up.refresh_from_db()
    assert given_up.next_attempt_at is not None
    assert (given_up.next_attempt_at - given_up.changed_at).total_seconds() == BACKOFF_SECONDS[0]
    moment = now() + datetime.timedelta(seconds=10)
    assert outbox.send_dispatch(dispatch_pk=given_up.pk, now=moment, chance=1) == "sent"
    given_up.refresh_from_db()
    assert (given_up.attempts, given_up.attempts_allowed, given_up.error) == (9, 14, "")


@pytest.mark.parametrize("state", ["sent", "again", "held", "sending"])
def test_only_what_was_given_up_is_sent_again(
    client: Client, operator: User, outgoing: dict[str, Dispatch], state: str
) -> None:
    before = (list(Dispatch.objects.values()), Event.objects.count())
    page = Page(client.post(URL, {"dispatch": str(outgoing[state].pk)}, follow=True))
    label = {"again": "pending", "held": "pending"}.get(state, state)
    assert f"It is {label}: only what was given up is sent again." in page.text
    assert (list(Dispatch.objects.values()), Event.objects.count()) == before


@pytest.mark.parametrize("key", ["", "0", "x", "-1", "9" * 18, "9" * 40, "٣"])
def test_a_dispatch_that_is_not_there_is_not_found(client: Client, operator: User, key: str) -> None:
    assert client.post(URL, {"dispatch": key}).status_code == 404


def test_only_who_runs_the_hub_may_look_and_send(client: Client, outgoing: dict[str, Dispatch]) -> None:
    seen = {}
    for role in (Role.MAINTAINER, Role.OPERATOR, Role.ADMIN):
        client.force_login(user(role))
        offered = URL in client.get("/console/operations/").content.decode()
        form = {"dispatch": str(outgoing["sent"].pk)}
        seen[role] = [offered, client.get(URL).status_code, client.post(URL, form).status_code]
    assert seen == {
        Role.MAINTAINER: [False, 403, 403],
        Role.OPERATOR: [True, 200, 302],
        Role.ADMIN: [True, 200, 302],
    }


def test_the_form_is_guarded_against_forgery(outgoing: dict[str, Dispatch]) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user(Role.OPERATOR))
    assert strict.post(URL, {"dispatch": str(outgoing["given_up"].pk)}).status_code == 403


@pytest.mark.parametrize("rows", [1, 3])
def test_the_page_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, operator: User, acme: Repository, rows: int, django_assert_num_queries: Any
) -> None:
    for number in range(rows):
        put(acme, f"d-{number}", "given_up")
    with django_assert_num_queries(5):
        assert len(Page(client.get(URL)).tables[""]) == rows


# --- the API ----------------------------------------------------------------------------------------------------


def test_the_api_tells_the_same(client: Client, operator: User, outgoing: dict[str, Dispatch]) -> None:
    again = outgoing["again"]
    assert again.next_attempt_at is not None
    stamp = {
        name: moment.isoformat().replace("+00:00", "Z")
        for name, moment in (("created_at", again.created_at), ("next_attempt_at", again.next_attempt_at))
    }
    answer = client.get(API, {"delivery": "d-again"})
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "next": None,
            "previous": None,
            "results": [
                {
                    "delivery_id": "d-again",
                    "repository": "acme/torch",
                    "state": "pending",
                    "attempts": 2,
                    "error": "GitHub answered 502",
                    "sent_at": None,
                    **stamp,
                }
            ],
        },
    )
    ids = [row["delivery_id"] for row in client.get(API).json()["results"]]
    assert ids == ["d-given-up", "d-sending", "d-held", "d-again"]


def test_the_api_goes_on_by_cursor(client: Client, operator: User, acme: Repository) -> None:
    for number in range(4):
        put(acme, f"d-{number}", "given_up")
    first = client.get(API, {"state": "given_up", "limit": "3"}).json()
    assert ([row["delivery_id"] for row in first["results"]], first["previous"]) == (["d-3", "d-2", "d-1"], None)
    second = client.get(first["next"]).json()
    assert ([row["delivery_id"] for row in second["results"]], second["next"]) == (["d-0"], None)
    assert client.get(second["previous"]).json()["results"] == first["results"]


@pytest.mark.parametrize(
    ("query", "field"), [({"state": "lost"}, "state"), ({"delivery": "a\0b"}, "delivery"), ({"cursor": "x"}, "cursor")]
)
def test_a_filter_that_cannot_be_read_is_refused(
    client: Client, operator: User, query: dict[str, str], field: str
) -> None:
    answer = client.get(API, query)
    body = answer.json()
    assert (answer.status_code, answer.headers["Content-Type"]) == (400, "application/problem+json")
    assert (body["code"], body.get("field")) == ("malformed", field)


def test_the_api_is_for_who_runs_the_hub(client: Client, acme: Repository) -> None:
    assert problem(client.get(API))[2]["code"] == "not_signed_in"
    client.force_login(user(Role.MAINTAINER))
    assert problem(client.get(API))[0] == 403
    assert problem(client.post(API))[2]["code"] in ("not_permitted", "method")


@pytest.mark.parametrize("rows", [1, 3])
def test_the_api_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, operator: User, acme: Repository, rows: int, django_assert_num_queries: Any
) -> None:
    for number in range(rows):
        put(acme, f"d-{number}", "given_up", changed_at=days_ago(1))
    with django_assert_num_queries(4):
        assert len(client.get(API).json()["results"]) == rows
