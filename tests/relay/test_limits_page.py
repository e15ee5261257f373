"""`/repositories/<owner>/<name>/limits/`: how long a repository's jobs may be silent, declared by who speaks for it."""

from typing import Any

import pytest
from django.db import IntegrityError
from django.test import Client

from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.platforms.models import Repository
from apps.relay import time_limits
from apps.relay.models import TimeLimit
from apps.relay.time_limits import declare_limit, remove_limit
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = "/repositories/acme/torch/limits/"


@pytest.fixture
def acme() -> Repository:
    return listed({"acme/torch": 2})["acme/torch"]


@pytest.fixture
def member(client: Client, acme: Repository) -> None:
    client.force_login(member_of(acme.platform, username="ada"))


def declare(client: Client, minutes: object, job_name: str = "") -> Any:
    return client.post(URL, {"act": "declare", "minutes": minutes, "job_name": job_name})


def limits() -> list[tuple[str, int]]:
    return list(TimeLimit.objects.values_list("job_name", "seconds"))


def events() -> list[dict[str, Any]]:
    found = [body_of(event) for event in Event.objects.filter(action__startswith="repository.limit").order_by("seq")]
    return [
        {key: body[key] for key in ("action", "summary", "before", "after", "is_decision")}
        | {"by": body["actor"]["label"]}
        for body in found
    ]


def test_a_member_declares_changes_and_removes_limits_on_the_record(client: Client, member: None) -> None:
    for minutes, name in ((120, ""), (30, "smoke"), (60, "smoke"), (60, "smoke")):
        assert declare(client, minutes, name).status_code == 302
    assert limits() == [("", 7_200), ("smoke", 3_600)]
    assert [(row[0], row[1]) for row in Page(client.get(URL)).tables["limits"]] == [
        ("all others", "2 h"),
        ("smoke", "1 h"),
        ("without a declared limit", "6 h"),
    ]
    assert client.post(URL, {"act": "remove", "limit": TimeLimit.objects.get(job_name="smoke").pk}).status_code == 302
    assert limits() == [("", 7_200)]
    said = {"is_decision": False, "by": "ada"}
    assert events() == [
        said
        | {
            "action": "repository.limit_declared",
            "summary": "acme/torch: all jobs may be silent for 120 minutes",
            "before": {},
            "after": {"job_name": "", "seconds": 7_200},
        },
        said
        | {
            "action": "repository.limit_declared",
            "summary": "acme/torch: jobs called “smoke” may be silent for 30 minutes",
            "before": {},
            "after": {"job_name": "smoke", "seconds": 1_800},
        },
        said
        | {
            "action": "repository.limit_declared",
            "summary": "acme/torch: jobs called “smoke” may be silent for 60 minutes",
            "before": {"seconds": 1_800},
            "after": {"job_name": "smoke", "seconds": 3_600},
        },
        said
        | {
            "action": "repository.limit_removed",
            "summary": "acme/torch: no limit of their own for jobs called “smoke”",
            "before": {"job_name": "smoke", "seconds": 3_600},
            "after": {},
        },
    ]


@pytest.mark.parametrize("minutes", ["", "x", "9", "4321", "-5", "9" * 40])
def test_what_is_no_limit_is_said_on_the_form(client: Client, member: None, minutes: str) -> None:
    answer = declare(client, minutes)
    assert (answer.status_code, limits(), events()) == (200, [], [])
    assert "error" in answer.content.decode()


def test_a_repository_has_so_many_limits(client: Client, member: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limits, "LIMITS_MAX", 2)
    answers = [declare(client, 30, name) for name in ("a", "b", "c")]
    assert "2 limits are declared, remove one first." in answers[-1].content.decode()
    assert declare(client, 40, "a").status_code == 302
    assert limits() == [("a", 2_400), ("b", 1_800)]


@pytest.mark.parametrize(("role", "may"), [(Role.MAINTAINER, True), (Role.OPERATOR, False), (None, False)])
def test_who_may_change_them(client: Client, acme: Repository, role: Role | None, may: bool) -> None:
    client.force_login(user(role))
    assert ("Declare a limit" in client.get(URL).content.decode()) is may
    assert declare(client, 30).status_code == (302 if may else 403)
    assert limits() == ([("", 1_800)] if may else [])


def test_a_limit_of_another_repository_is_not_found(client: Client, member: None, acme: Repository) -> None:
    other = listed({"acme/torch": 2, "other/torch": 2})["other/torch"]
    theirs = declare_limit(repository=other, job_name="", seconds=900, actor=TESTS, now=now())
    for limit in (theirs.pk, "x", "9" * 30, ""):
        assert client.post(URL, {"act": "remove", "limit": limit}).status_code == 404
    assert TimeLimit.objects.count() == 1
    assert [remove_limit(limit=theirs, actor=TESTS, now=now()) for _ in range(2)] == [True, False]


def test_postgresql_refuses_a_limit_out_of_range(acme: Repository) -> None:
    with pytest.raises(IntegrityError, match="relay_time_limit_range"):
        TimeLimit.objects.create(repository=acme, job_name="", seconds=5, declared_at=now())


@pytest.mark.parametrize("rows", [1, 3])
def test_the_page_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, member: None, acme: Repository, rows: int, django_assert_num_queries: Any
) -> None:
    for number in range(rows):
        declare_limit(repository=acme, job_name=str(number), seconds=900, actor=TESTS, now=now())
    with django_assert_num_queries(8):
        assert len(Page(client.get(URL)).tables["limits"]) == rows + 1
