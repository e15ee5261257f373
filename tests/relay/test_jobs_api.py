"""`GET /api/v1/jobs/`: jobs for programs, as JSON and CSV."""

import base64
import csv
import datetime
import re
from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.platforms.models import Repository
from apps.platforms.services import change_level
from apps.relay.models import Dispatch
from tests.factories.jobs import callback, dispatch, job
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.pages import problem, problem_body

pytestmark = pytest.mark.django_db
URL = "/api/v1/jobs/"
AT = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
MINUTE = datetime.timedelta(minutes=1)


@pytest.fixture
def made() -> dict[str, Repository]:
    return listed({"acme/torch": 2, "other/torch": 2})


def names(client: Client, **query: Any) -> list[str]:
    return [row["job_name"] for row in client.get(URL, query).json()["results"]]


def test_a_job_says_all_that_is_public_of_it(client: Client, made: dict[str, Repository]) -> None:
    sent = dispatch(made["acme/torch"], at=AT, delivery_id="d-1", pr_number=7)
    Dispatch.objects.filter(pk=sent.pk).update(sent_at=AT - MINUTE)
    row = job(
        made["acme/torch"],
        "success",
        at=AT,
        dispatch=sent,
        delivery_id="d-1",
        run_id="900",
        job_name="=HYPERLINK(1)",
        leg="py3",
        check_run_id="456",
        flags=["joined"],
        reported_started_at=AT,
        pr_number=7,
        url="https://ci.example/7",
    )
    expected = {
        "id": str(row.public_id),
        "repository": "acme/torch",
        "delivery_id": "d-1",
        "event": "pull_request",
        "run_id": "900",
        "run_attempt": 1,
        "workflow": "CI",
        "job_name": "=HYPERLINK(1)",
        "check_run_id": "456",
        "leg": "py3",
        "status": "completed",
        "conclusion": "success",
        "bucket": "success",
        "flags": ["joined"],
        "trust": row.trust,
        "reported_started_at": "2026-11-20T12:00:00Z",
        "reported_completed_at": None,
        "first_seen_at": "2026-11-20T12:00:00Z",
        "completed_at": "2026-11-20T12:10:00Z",
        "queue_seconds": 60.0,
        "execution_seconds": 600.0,
        "superseded": False,
        "superseded_by": None,
        "url": f"http://testserver/jobs/{row.public_id}/",
    }
    answer = client.get(URL)
    body = answer.json()
    body["results"][0]["url"] = body["results"][0]["url"].replace(body["results"][0]["url"].split("/jobs/")[0], "H")
    expected["url"] = f"H/jobs/{row.public_id}/"
    assert (answer.status_code, body) == (200, {"next": None, "previous": None, "results": [expected]})
    sheet = client.get(URL, {"format": "csv"})
    assert sheet.headers["Content-Type"] == "text/csv; charset=utf-8"
    (line,) = csv.DictReader(sheet.content.decode().splitlines())
    flat = expected | {f"trust.{name}": label for name, label in row.trust.items()}
    flat |= {"job_name": "'=HYPERLINK(1)", "flags": "joined", "reported_completed_at": "", "superseded": "false"}
    flat |= {"superseded_by": ""}
    flat |= {"url": line["url"]}
    del flat["trust"]
    assert line == {name: str(value) for name, value in flat.items()}


def test_an_open_job_and_an_earlier_attempt_say_so(client: Client, made: dict[str, Repository]) -> None:
    acme = made["acme/torch"]
    job(acme, "failure", run_id="1", at=AT)
    job(acme, run_id="1", run_attempt=2, at=AT + MINUTE)
    rows = client.get(URL).json()["results"]
    assert [
        (row["run_attempt"], row["status"], row["conclusion"], row["bucket"], row["superseded"]) for row in rows
    ] == [
        (2, "in_progress", None, "in_progress", False),
        (1, "completed", "failure", "superseded", True),
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["night", "other", "seven"]),
        ({"repository": "ACME/torch"}, ["night", "seven"]),
        ({"repository": "acme"}, []),
        ({"delivery": "d-7"}, ["other", "seven"]),
        ({"delivery": "d-"}, []),
        ({"run_id": "70"}, ["seven"]),
        ({"pr": "7"}, ["other", "seven"]),
        ({"event": "nightly"}, ["night"]),
        ({"pr": "7", "repository": "acme/torch"}, ["seven"]),
    ],
)
def test_each_filter_is_a_whole_name(
    client: Client, made: dict[str, Repository], query: dict[str, str], expected: list[str]
) -> None:
    acme, other = made["acme/torch"], made["other/torch"]
    job(acme, "success", job_name="seven", run_id="70", delivery_id="d-7", pr_number=7, at=AT)
    job(other, "success", job_name="other", run_id="71", delivery_id="d-7", pr_number=7, at=AT + MINUTE)
    job(acme, "failure", job_name="night", run_id="72", delivery_id="n-1", event_type="nightly", at=AT + 2 * MINUTE)
    assert names(client, **query) == expected
    sheet = client.get(URL, query | {"format": "csv"}).content.decode().splitlines()
    assert [line["job_name"] for line in csv.DictReader(sheet)] == expected


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"pr": "x"}, "pr"),
        ({"pr": "0"}, "pr"),
        ({"pr": "9" * 30}, "pr"),
        ({"delivery": "a\0"}, "delivery"),
        ({"run_id": "1" * 101}, "run_id"),
        ({"limit": "0"}, "limit"),
        ({"cursor": "x"}, "cursor"),
    ],
)
def test_what_cannot_be_read_is_400_and_named(client: Client, query: dict[str, str], field: str) -> None:
    for more in ({}, {"format": "csv"}):
        status, kind, body = problem(client.get(URL, query | more))
        assert (status, kind, body["code"], body["field"]) == (400, "application/problem+json", "malformed", field)


@pytest.mark.parametrize(
    ("url", "known"), [(URL, "json or csv"), ("/api/v1/decisions/", "json or csv"), ("/api/v1/repositories/", "json")]
)
def test_a_form_that_is_not_offered_is_400(client: Client, url: str, known: str) -> None:
    answer = client.get(url, {"format": "xml"})
    assert problem(answer) == problem_body("malformed", f"format: saw 'xml', send {known}.", "format")


def test_cursors_lead_through_all_and_csv_has_them_in_its_link(client: Client, made: dict[str, Repository]) -> None:
    for number in range(5):
        job(made["acme/torch"], "success", job_name=f"j{number}", at=AT)
    address, seen = f"{URL}?limit=2&format=csv", []
    while address:
        answer = client.get(address)
        seen += [line["job_name"] for line in csv.DictReader(answer.content.decode().splitlines())]
        further = re.search(r'<([^>]+)>; rel="next"', answer.headers.get("Link", ""))
        address = further[1] if further else ""
    assert seen == ["j4", "j3", "j2", "j1", "j0"]


def test_what_l1_reported_is_nobodys_and_probes_are_in_no_list(client: Client, made: dict[str, Repository]) -> None:
    acme = made["acme/torch"]
    job(acme, "success", job_name="public", at=AT)
    change_level(repository=acme, level=1, reason="Silent.", actor=TESTS, now=AT)
    callback(acme, job_name="hush", workflow="hush", at=AT)
    probe = Repository.objects.create(platform=acme.platform, full_name="probe/a", level=2, is_probe=True, events=[])
    job(probe, "success", job_name="probed", at=AT)
    for person in (None, user(Role.ADMIN), member_of(acme.platform)):
        client.logout()
        if person:
            client.force_login(person)
        text = client.get(URL).content.decode() + client.get(URL, {"format": "csv"}).content.decode()
        assert [word in text for word in ("public", "hush", "probed")] == [True, False, False]


@pytest.mark.parametrize("kind", ["json", "csv"])
@pytest.mark.parametrize("rows", [1, 3])
def test_it_asks_as_often_for_one_row_as_for_three(
    client: Client, made: dict[str, Repository], rows: int, kind: str, django_assert_num_queries: Any
) -> None:
    for number in range(rows):
        job(made["acme/torch"], "success", dispatch=dispatch(made["acme/torch"]), job_name=f"j{number}")
    with django_assert_num_queries(1):
        client.get(URL, {"format": kind})


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_cursor_beyond_the_calendar_is_refused(client: Client, made: dict[str, Repository], moment: str) -> None:
    cursor = base64.urlsafe_b64encode(f'[false, "{moment}", 1]'.encode()).decode()
    detail = "cursor: cannot be read. Take it from `next` or `previous`."
    assert problem(client.get(URL, {"cursor": cursor})) == problem_body("malformed", detail, "cursor")
