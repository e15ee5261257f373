"""`/console/operations/`: the rooms that one may enter, with what needs somebody; and the list of repositories."""

import datetime
from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.core import alarms
from apps.core.clock import now
from apps.core.models import Alarm
from apps.platforms.models import AllowlistAlarm, MaintenanceWindow, Participation, Repository, Transfer
from apps.relay.models import Dispatch, Forward, TimeLimit
from tests.factories.checks import check
from tests.factories.jobs import callback, days_ago, dispatch, job, rejection
from tests.factories.listing import listed, member_of, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = "/console/operations/"

EVERYONES = {
    Role.MAINTAINER: [
        *("Health", "Scheduled tasks", "New owners", "Allowlist", "Participation and limits", "Components"),
    ],
    Role.OPERATOR: [
        *("Alarms", "Health", "Scheduled tasks", "Dispatches", "Check runs", "Relay", "Rejected callbacks"),
        *("New owners", "Allowlist"),
        *("Buildkite pipelines", "Tables", "Components"),
    ],
    Role.ADMIN: [
        *("Alarms", "Health", "Scheduled tasks", "Dispatches", "Check runs", "Relay", "Rejected callbacks"),
        *("New owners", "Allowlist"),
        *("Participation and limits", "Buildkite pipelines", "People", "Tables", "Components"),
    ],
}


def forward(repository: Repository, state: str, number: int) -> Forward:
    at = days_ago(1)
    return Forward.objects.create(
        repository_name=repository.full_name,
        delivery_id=f"d-{number}",
        order_key=str(number),
        body=b"{}" if state == "pending" else b"",
        answer="applied",
        state=state,
        received_at=at,
        changed_at=at,
        due_at=at,
    )


def trouble(repository: Repository, number: int) -> None:
    """One of everything that is counted, and beside each one that is not."""
    alarms.sound(Alarm.Kind.IDENTITY_REPLACED, f"k-{number}", detail="replaced", now=now())
    probe = Repository.objects.create(
        platform=repository.platform, full_name=f"probe/p{number}", level=1, is_probe=True, events=[]
    )
    callback(probe, at=days_ago(30))
    for state, sent_at in (("given_up", None), ("pending", None), ("sent", now())):
        made = dispatch(repository, delivery_id=f"{state}-{number}")
        Dispatch.objects.filter(pk=made.pk).update(state=state, sent_at=sent_at)
        if state != "sent":
            forward(repository, state, number)
    check(repository, f"a/{number}")
    check(repository, f"b/{number}", state="pending")
    rejection(repository, last_seen=now())
    rejection(repository)
    for owner, decided in ((1, None), (2, now())):
        Transfer.objects.create(
            repository=repository,
            old_owner_id=7,
            new_owner_id=100 * number + owner,
            new_name=f"new{number}/torch",
            opened_at=days_ago(2),
            state="refused" if decided else "open",
            decided_at=decided,
        )


def rows(page: Page) -> dict[str, str]:
    return {room: needs for room, needs, _purpose in page.tables["rooms"]}


NOTHING = {
    "Alarms": "0 in the last 7 days",
    "Health": "0 silent probes",
    "Scheduled tasks": "0 overdue",
    "Dispatches": "0 given up",
    "Check runs": "0 given up",
    "Relay": "0 results given up",
    "Rejected callbacks": "0 callers in the last 24 h",
    "New owners": "0 waiting for a decision",
    "Allowlist": "0 waiting for upstream's file",
    "Participation and limits": "0 in maintenance now",
    "Buildkite pipelines": "nothing is counted here",
    "People": "nothing is counted here",
    "Tables": "nothing is counted here",
    "Components": "nothing is counted here",
}


@pytest.mark.parametrize("role", EVERYONES)
def test_a_room_is_listed_for_who_may_enter_it(client: Client, role: Role) -> None:
    client.force_login(user(role))
    page = Page(client.get(URL))
    assert list(rows(page)) == EVERYONES[role]
    statuses = {link: client.get(link).status_code for link in page.links if link.startswith("/")}
    assert set(statuses.values()) == {200}


def test_who_may_enter_none_is_told_so(client: Client) -> None:
    acme = listed({"acme/torch": 2})["acme/torch"]
    for person in (user(), member_of(acme.platform)):
        client.force_login(person)
        assert client.get(URL).status_code == 403


def test_what_needs_somebody_is_counted_and_nothing_else(client: Client) -> None:
    acme = listed({"acme/torch": 2})["acme/torch"]
    client.force_login(user(Role.ADMIN))
    assert rows(Page(client.get(URL))) == NOTHING
    trouble(acme, 1)
    MaintenanceWindow.objects.create(
        repository=acme,
        starts_at=now() - datetime.timedelta(hours=1),
        ends_at=now() + datetime.timedelta(hours=1),
        note="racks",
        announced_at=days_ago(3),
    )
    page = Page(client.get(URL))
    assert rows(page) == NOTHING | {
        "Alarms": "▲ 1 in the last 7 days",
        "Health": "▲ 1 silent probe",
        "Dispatches": "▲ 1 given up",
        "Check runs": "▲ 1 given up",
        "Relay": "▲ 1 result given up",
        "Rejected callbacks": "▲ 1 caller in the last 24 h",
        "New owners": "▲ 1 waiting for a decision",
        "Participation and limits": "◆ 1 in maintenance now",
    }
    assert "/dispatches/?state=given_up" in page.links
    given_up = Page(client.get("/dispatches/?state=given_up"))
    assert len(given_up.tables[""]) == 1


def test_what_waits_for_upstreams_file_is_counted_where_it_decides(client: Client, settings: Any) -> None:
    AllowlistAlarm.objects.create(kind="empty", detail="It is empty.", raised_at=now())
    client.force_login(user(Role.OPERATOR))
    assert rows(Page(client.get(URL)))["Allowlist"] == "0 waiting for upstream's file"
    settings.ALLOWLIST_AUTHORITY = "file"
    assert rows(Page(client.get(URL)))["Allowlist"] == "▲ 1 waiting for upstream's file"


@pytest.mark.parametrize("count", [1, 3])
def test_its_queries_do_not_grow(client: Client, django_assert_num_queries: Any, count: int) -> None:
    acme = listed({"acme/torch": 2})["acme/torch"]
    for number in range(count):
        trouble(acme, number + 1)
    client.force_login(user(Role.ADMIN))
    client.get(URL)
    with django_assert_num_queries(13):
        client.get(URL)


def test_repositories_stand_with_what_they_chose(client: Client) -> None:
    made = listed({"acme/torch": 3, "zeta/torch": 1, "gone/torch": 2})
    listed({"acme/torch": 3, "zeta/torch": 1})
    acme, zeta = made["acme/torch"], made["zeta/torch"]
    Participation.objects.create(
        repository=acme, events=["push"], refs=["main"], sample_percent=20, max_in_flight=4, changed_at=now()
    )
    for name in ("", "slow"):
        TimeLimit.objects.create(repository=zeta, job_name=name, seconds=7_200, declared_at=now())
    start = datetime.datetime.now(datetime.UTC).replace(microsecond=0) - datetime.timedelta(hours=1)
    end = start + datetime.timedelta(hours=2)
    MaintenanceWindow.objects.create(
        repository=zeta, starts_at=start, ends_at=end, note="racks", announced_at=days_ago(3)
    )
    client.force_login(user(Role.MAINTAINER))
    page = Page(client.get("/console/repositories/"))
    window = f"◆ in maintenance until {end:%Y-%m-%d %H:%M:%S} UTC"
    narrowed = "push narrowed by refs a sample of 20 %"
    assert page.tables[""] == [
        (f"{acme.platform.name} acme/torch", "L3", narrowed, "4", "0 of acme/torch", "no window"),
        (
            *(f"{zeta.platform.name} zeta/torch", "L1", "everything it is listed for", "any number"),
            *("2 of zeta/torch", window),
        ),
    ]
    assert "/repositories/zeta/torch/limits/" in page.links
    assert "/repositories/acme/torch/participation/" in page.links


@pytest.mark.parametrize("count", [1, 3])
def test_the_list_of_repositories_asks_the_same_of_one_and_of_three(
    client: Client, django_assert_num_queries: Any, count: int
) -> None:
    for row in listed({f"acme/torch-{number}": 2 for number in range(count)}).values():
        Participation.objects.create(repository=row, events=["push"], changed_at=now())
        job(row)
    client.force_login(user(Role.MAINTAINER))
    client.get("/console/repositories/")
    with django_assert_num_queries(7):
        client.get("/console/repositories/")
