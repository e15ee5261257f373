"""`/repositories/<owner>/<name>/declared/`: what maintainers declare a job to be, on the record."""

import datetime
from typing import Any

import pytest
from django.db import IntegrityError
from django.test import Client

from apps.accounts.policy import Role
from apps.accounts.services import create_api_token
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.core.errors import Problem
from apps.platforms.models import Repository
from apps.relay.declared import declare_outcome, withdraw_outcome
from apps.relay.enums import Declared
from apps.relay.models import DeclaredOutcome
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = "/repositories/acme/torch/declared/"
DAY = datetime.timedelta(days=1)


@pytest.fixture
def acme() -> Repository:
    return listed({"acme/torch": 2})["acme/torch"]


@pytest.fixture
def ada(client: Client, acme: Repository) -> None:
    client.force_login(user(Role.MAINTAINER, username="ada"))


def given(**changes: Any) -> dict[str, Any]:
    today = now().date()
    values = {"act": "declare", "workflow": "CI", "job_name": "xfail", "outcome": "failure", "reason": "It tests us."}
    return values | {"starts_at": today, "ends_at": today + 9 * DAY} | changes


def test_a_maintainer_declares_and_withdraws_on_the_record(client: Client, ada: None) -> None:
    assert client.post(URL, given()).status_code == 302
    declared = DeclaredOutcome.objects.get()
    today = now().date()
    body = {
        "workflow": "CI",
        "job_name": "xfail",
        "outcome": "failure",
        "starts_at": f"{today}T00:00:00+00:00",
        "ends_at": f"{today + 10 * DAY}T00:00:00+00:00",
    }
    assert [row[:2] for row in Page(client.get(URL)).tables["declared"]] == [("xfail CI", "meant to fail")]
    row = client.get("/api/v1/repositories/acme/torch/declared/").json()["results"][0]
    assert (row["id"], row["outcome"], row["declared_by"], row["withdrawn_at"]) == (
        str(declared.public_id),
        "failure",
        "ada",
        None,
    )
    withdrawal = {"act": "withdraw", "declared": declared.public_id, "reason": "A mistake."}
    assert client.post(URL, withdrawal).status_code == 302
    assert client.post(URL, withdrawal).status_code == 302
    found = [body_of(event) for event in Event.objects.filter(action__startswith="repository.outcome").order_by("seq")]
    assert [
        (said["action"], said["summary"], said["before"], said["after"], said["reason"], said["is_decision"])
        for said in found
    ] == [
        (
            "repository.outcome_declared",
            "acme/torch: the job “CI / xfail” is meant to fail",
            {},
            body,
            "It tests us.",
            True,
        ),
        (
            "repository.outcome_withdrawn",
            "acme/torch: the job “CI / xfail” is no longer declared",
            body,
            {},
            "A mistake.",
            True,
        ),
    ]


def test_a_withdrawal_says_why(client: Client, ada: None) -> None:
    client.post(URL, given())
    declared = DeclaredOutcome.objects.get()
    client.post(URL, {"act": "withdraw", "declared": declared.public_id, "reason": " "})
    declared.refresh_from_db()
    assert declared.withdrawn_at is None
    for nonsense in ("", "x", "0198c000-0000-7000-8000-000000000000"):
        answer = client.post(URL, {"act": "withdraw", "declared": nonsense, "reason": "So."})
        assert answer.status_code == 404


def test_whoever_speaks_for_the_platform_reads_it_and_declares_nothing(client: Client, acme: Repository) -> None:
    for person in (None, member_of(acme.platform), user(Role.OPERATOR)):
        if person:
            client.force_login(person)
        assert "Declare a job" not in client.get(URL).content.decode()
        assert client.post(URL, given()).status_code == 403
    assert DeclaredOutcome.objects.count() == 0


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"outcome": "success"}, "Select a valid choice"),
        ({"reason": ""}, "This field is required"),
        ({"workflow": ""}, "This field is required"),
        ({"workflow": "x" * 301}, "at most 300 characters"),
        ({"starts_at": "yesterday"}, "Enter a valid date"),
        ({"starts_at": "2020-01-01"}, "send 30 days ago or later"),
        ({"ends_at": "2020-01-01"}, "send a time to come"),
        ({"ends_at": "9999-12-31"}, "Send an earlier day."),
        ({"ends_at": "9999-12-30"}, "at most 366 days after it"),
    ],
)
def test_what_cannot_be_declared(client: Client, ada: None, changes: dict[str, Any], what: str) -> None:
    answer = client.post(URL, given(**changes))
    assert (answer.status_code, what in Page(answer).text, DeclaredOutcome.objects.count()) == (200, True, 0)


def test_one_job_is_declared_once_at_a_time(client: Client, ada: None, acme: Repository) -> None:
    client.post(URL, given())
    answer = client.post(URL, given(outcome="cancelled", ends_at=now().date()))
    assert "it is declared as meant to fail until" in Page(answer).text
    today = now().date()
    client.post(URL, given(starts_at=today + 10 * DAY, ends_at=today + 12 * DAY))
    client.post(URL, given(job_name="other"))
    assert DeclaredOutcome.objects.count() == 3


def make(repository: Repository, **changes: Any) -> DeclaredOutcome:
    values: dict[str, Any] = {
        "repository": repository,
        "workflow": "CI",
        "job_name": "xfail",
        "outcome": Declared.FAILURE,
        "reason": "It tests us.",
        "starts_at": now(),
        "ends_at": now() + DAY,
        "actor": TESTS,
        "now": now(),
    }
    return declare_outcome(**(values | changes))


def test_the_service_refuses_with_a_code_and_withdraws_once(acme: Repository) -> None:
    declared = make(acme)
    with pytest.raises(Problem) as refused:
        make(acme)
    assert (refused.value.code, refused.value.field) == ("already_declared", "job_name")
    assert withdraw_outcome(declared=declared, reason="So.", actor=TESTS, now=now())
    assert not withdraw_outcome(declared=declared, reason="So.", actor=TESTS, now=now())
    make(acme)


@pytest.mark.parametrize(
    ("changes", "constraint"),
    [
        ({"outcome": "success"}, "relay_declared_outcome"),
        ({"reason": ""}, "relay_declared_reason"),
        ({"ends_at": now()}, "relay_declared_time"),
    ],
)
def test_postgresql_refuses_what_no_form_lets_through(
    acme: Repository, changes: dict[str, Any], constraint: str
) -> None:
    values = {"workflow": "CI", "outcome": "failure", "reason": "So.", "starts_at": now(), "ends_at": now() + DAY}
    with pytest.raises(IntegrityError, match=constraint):
        DeclaredOutcome.objects.create(repository=acme, declared_at=now(), **(values | changes))


def test_postgresql_lets_one_declaration_of_a_job_hold_at_a_time(acme: Repository) -> None:
    given = {"repository": acme, "workflow": "CI", "outcome": "failure", "reason": "So.", "declared_at": now()}
    first = DeclaredOutcome.objects.create(**given, starts_at=now(), ends_at=now() + 2 * DAY)
    DeclaredOutcome.objects.create(**given, starts_at=first.ends_at, ends_at=first.ends_at + DAY)
    DeclaredOutcome.objects.create(**given, starts_at=now(), ends_at=now() + DAY, withdrawn_at=now())
    with pytest.raises(IntegrityError, match="relay_declared_once"):
        DeclaredOutcome.objects.create(**given, starts_at=now() + DAY, ends_at=now() + 3 * DAY)


@pytest.mark.parametrize("rows", [1, 3])
def test_it_asks_as_often_for_one_row_as_for_three(
    client: Client, acme: Repository, rows: int, django_assert_num_queries: Any
) -> None:
    for number in range(rows):
        make(acme, job_name=f"xfail {number}")
    with django_assert_num_queries(2):
        assert len(Page(client.get(URL)).tables["declared"]) == rows
    with django_assert_num_queries(2):
        assert len(client.get("/api/v1/repositories/acme/torch/declared/").json()["results"]) == rows


@pytest.fixture
def api(client: Client, acme: Repository) -> Any:
    """Posts a maintainer's words to the API."""
    token = create_api_token(user=user(Role.MAINTAINER, username="ada"), note="tests", actor=TESTS, now=now())

    def post(path: str, body: dict[str, Any], **headers: str) -> Any:
        url = f"/api/v1/repositories/acme/torch/{path}/"
        given = {"HTTP_AUTHORIZATION": f"Bearer {token}"} | headers
        return client.post(url, body, content_type="application/json", **given)  # type: ignore[arg-type]

    return post


def words(**changes: Any) -> dict[str, Any]:
    today = now().replace(hour=0, minute=0, second=0, microsecond=0)
    times = {"starts_at": today.isoformat(), "ends_at": (today + 9 * DAY).isoformat()}
    return {"workflow": "CI", "job_name": " xfail ", "outcome": "failure", "reason": "It tests us."} | times | changes


def test_a_maintainers_program_declares_and_withdraws(client: Client, api: Any) -> None:
    given = words()
    made = api("declare", given)
    said = made.json()
    assert (made.status_code, said["job_name"], said["outcome"], said["declared_by"], said["withdrawn_at"]) == (
        200,
        " xfail ",
        "failure",
        "ada",
        None,
    )
    again = api("declare", given)
    assert (again.status_code, again.json()["code"], again.json()["field"]) == (409, "already_declared", "job_name")
    taken, again = (api(f"declared/{said['id']}/withdraw", {"reason": "A mistake."}) for _ in range(2))
    assert (taken.status_code, again.status_code, taken.json()["withdrawn_at"] is None) == (200, 200, False)
    listed_there = client.get("/api/v1/repositories/acme/torch/declared/").json()["results"]
    assert [taken.json()] == [again.json()] == listed_there
    actions = Event.objects.filter(action__startswith="repository.outcome").order_by("seq")
    assert list(actions.values_list("action", flat=True)) == [
        "repository.outcome_declared",
        "repository.outcome_withdrawn",
    ]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"outcome": "success"}, "outcome"),
        ({"reason": ""}, "reason"),
        ({"workflow": None}, "workflow"),
        ({"job_name": "a\0b"}, "job_name"),
        ({"starts_at": "soon"}, "starts_at"),
        ({"starts_at": "0001-01-01T00:00:00+14:00"}, "starts_at"),
        ({"ends_at": "2020-01-01T00:00:00Z"}, "ends_at"),
    ],
)
def test_the_api_refuses_by_the_fields_name(api: Any, changes: dict[str, Any], field: str) -> None:
    answer = api("declare", words(**changes))
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (400, "malformed", field)
    assert DeclaredOutcome.objects.count() == 0


def test_the_end_of_all_times_is_a_time(api: Any) -> None:
    last = {"starts_at": "9999-06-01T00:00:00Z", "ends_at": "9999-12-31T23:59:59Z"}
    assert api("declare", words(**last)).status_code == 200


def test_the_api_lets_nobody_else_declare(client: Client, api: Any, acme: Repository) -> None:
    assert api("declare", words(), HTTP_AUTHORIZATION="").status_code == 401
    vendor = create_api_token(user=member_of(acme.platform), note="tests", actor=TESTS, now=now())
    assert api("declare", words(), HTTP_AUTHORIZATION=f"Bearer {vendor}").status_code == 403
    missing = "0198c000-0000-7000-8000-000000000000"
    assert api(f"declared/{missing}/withdraw", {"reason": "So."}).status_code == 404
    assert api(f"declared/{make(acme).public_id}/withdraw", {}).json()["field"] == "reason"
    assert DeclaredOutcome.objects.filter(withdrawn_at=None).count() == 1
