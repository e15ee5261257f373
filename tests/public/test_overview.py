"""`/`: the platforms by level, with what their jobs came to in the last 14 days."""

from typing import Any

import pytest
from django.test import Client

from apps.audit.models import LastVerification
from apps.platforms.models import Platform, Repository
from tests.factories.jobs import days_ago, dispatch, job
from tests.factories.listing import listed
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
BOTH = "nightly, pull_request"
NO_DATA = "○ no data no callback in 14 days"


def overview(client: Client) -> Page:
    answer = client.get("/")
    assert answer.status_code == 200
    return Page(answer)


def test_platforms_stand_by_level_the_highest_first(client: Client) -> None:
    listed({"a/l1": 1, "b/l2": 2, "c/l3": 3, "d/l4": 4, "e/l4": 4, "f/gone": 1})
    listed({"a/l1": 1, "b/l2": 2, "c/l3": 3, "d/l4": 4, "e/l4": 4})
    page = overview(client)
    assert [section for section in page.sections if section.startswith("level-")] == [
        "level-4",
        "level-3",
        "level-2",
        "level-1",
    ]
    assert {section: [row[0] for row in rows] for section, rows in page.tables.items()} == {
        "level-4": ["l4 d/l4", "l4 e/l4"],
        "level-3": ["l3 c/l3"],
        "level-2": ["l2 b/l2"],
        "level-1": ["l1 a/l1"],
    }


def test_a_platform_shows_how_its_jobs_ended_and_that_this_is_its_own_word(client: Client) -> None:
    acme = listed({"acme/torch": (2, {"events": ["nightly"]})})["acme/torch"]
    job(acme, "success", at=days_ago(5))
    job(acme, "failure", at=days_ago(4))
    job(acme, "success", at=days_ago(4), bucket="contradicted", failed=3)
    job(acme, at=days_ago(3))
    job(acme, "success", at=days_ago(15))  # before the window
    said = "1 of 3 ended as success ○ self-reported 1 in progress"
    assert overview(client).tables == {"level-2": [("torch acme/torch", "L2", said, "nightly", "3 d ago")]}


def test_a_platform_without_a_job_has_no_data_and_not_zero(client: Client) -> None:
    acme = listed({"acme/torch": 4})["acme/torch"]
    job(acme, "success", at=days_ago(15))
    assert overview(client).tables == {"level-4": [("torch acme/torch", "L4", NO_DATA, BOTH, "never")]}


def test_jobs_of_a_platform_at_l1_are_not_counted(client: Client) -> None:
    job(listed({"acme/torch": 2})["acme/torch"], "success")
    listed({"acme/torch": 1})
    assert overview(client).tables == {"level-1": [("torch acme/torch", "L1", "private until L2", BOTH, "private")]}


def test_repositories_of_one_platform_stand_in_its_row(client: Client) -> None:
    made = listed({"acme/one": 1, "acme/two": 3})
    Repository.objects.update(platform=made["acme/two"].platform)
    job(made["acme/two"], "success")
    said = "1 of 1 ended as success ○ self-reported 0 in progress"
    assert overview(client).tables == {
        "level-3": [("two acme/two acme/one", "L3 L1", said, f"{BOTH} {BOTH}", "3 d ago")]
    }


def test_the_latest_decisions_and_the_state_of_the_log_stand_below(client: Client) -> None:
    listed({f"acme/torch-{number}": 1 for number in range(6)})
    LastVerification.objects.create(checked_at=days_ago(3), verified_to=6)
    page = overview(client)
    latest = [text.split(" by ")[0] for text in page.items["latest"]]
    assert latest == [f"acme/torch-{number} listed at L1" for number in (5, 4, 3, 2, 1)]
    assert "chain sound to #6, proved 3 d ago" in page.text


def test_the_age_of_the_last_upstream_event_is_shown(client: Client) -> None:
    assert "Last upstream event never" in overview(client).text
    acme = listed({"acme/torch": 1})["acme/torch"]
    dispatch(acme, at=days_ago(9))
    dispatch(acme, at=days_ago(6))
    assert "Last upstream event 6 d ago" in overview(client).text


def test_an_empty_hub_says_what_will_appear(client: Client) -> None:
    page = overview(client)
    assert page.tables == {}
    assert "Import an allowlist to list the first ones: manage.py allowlist import FILE" in page.text


def test_a_platform_without_a_repository_is_not_listed(client: Client) -> None:
    Platform.objects.create(slug="cuda", name="CUDA", created_at=days_ago(3))
    assert overview(client).tables == {}


@pytest.mark.parametrize("rows", [1, 3])
def test_the_page_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, rows: int, django_assert_num_queries: Any
) -> None:
    for repository in listed({f"acme/torch-{number}": 2 for number in range(rows)}).values():
        job(repository, "success")
    with django_assert_num_queries(6):
        assert len(overview(client).tables["level-2"]) == rows
