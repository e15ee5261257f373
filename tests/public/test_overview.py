"""`/`: the platforms by level, with what their jobs came to in the last 14 days."""

from typing import Any

import pytest
from django.test import Client

from apps.audit.models import LastVerification
from apps.core.clock import now
from apps.platforms.models import Platform, Repository
from apps.results.services import recount
from tests.factories.jobs import days_ago, dispatch, job
from tests.factories.listing import listed
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
NO_DATA = "○ no data no pull request job ended"
PRIVATE = "Results are private until L2."
NOTHING = "no data"


def overview(client: Client) -> Page:
    recount(days=40, now=now())
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


def test_a_platform_shows_its_rate_with_its_rows_and_whose_word_it_is(client: Client) -> None:
    acme = listed({"acme/torch": 2})["acme/torch"]
    job(acme, "success", at=days_ago(5))
    job(acme, "success", at=days_ago(5), event_type="nightly")  # another scope
    job(acme, "failure", at=days_ago(4))
    job(acme, "success", at=days_ago(4), bucket="contradicted", failed=3)
    job(acme, at=days_ago(3))
    job(acme, "success", at=days_ago(15))  # before the window, yet on the strip
    page = overview(client)
    strip = "torch: 30 days"
    assert [(*row[:3], row[3].startswith(strip), *row[4:]) for row in page.tables["level-2"]] == [
        (
            "torch acme/torch",
            "L2",
            "■ 33.3 % ○ self-reported 3 jobs · 1 contradicted",
            True,
            "10 min",
            NOTHING,
            "3 d ago",
        )
    ]
    assert "3 bad" not in page.tables["level-2"][0][3]
    assert "2 good, 1 bad, 27 no data" in page.tables["level-2"][0][3]
    assert "/platforms/acme-torch/?view=all" in page.links


def test_a_platform_without_a_job_has_no_data_and_not_zero(client: Client) -> None:
    acme = listed({"acme/torch": 4})["acme/torch"]
    job(acme, "success", at=days_ago(40))
    row = overview(client).tables["level-4"][0]
    assert (row[:3], row[4:]) == (("torch acme/torch", "L4", NO_DATA), (NOTHING, NOTHING, "never"))


def test_a_platform_whose_jobs_all_run_has_no_rate_yet(client: Client) -> None:
    job(listed({"acme/torch": 2})["acme/torch"])
    row = overview(client).tables["level-2"][0]
    assert (row[2], row[6]) == (NO_DATA, "3 d ago")


def test_jobs_of_a_platform_at_l1_are_not_counted(client: Client) -> None:
    job(listed({"acme/torch": 2})["acme/torch"], "success")
    listed({"acme/torch": 1})
    assert overview(client).tables == {"level-1": [("torch acme/torch", "L1", PRIVATE)]}


def test_repositories_of_one_platform_stand_in_its_row(client: Client) -> None:
    made = listed({"acme/one": 2, "acme/two": 3})
    Repository.objects.update(platform=made["acme/two"].platform)
    job(made["acme/one"], "failure")
    job(made["acme/two"], "success")
    row = overview(client).tables["level-3"][0]
    assert row[:3] == ("two acme/two acme/one", "L3 L2", "■ 50.0 % ○ self-reported 2 jobs")


def test_the_tiles_say_what_is_there(client: Client) -> None:
    made = listed({"acme/torch": 4, "other/torch": 1})
    job(made["acme/torch"], "success", at=now())
    job(made["acme/torch"], at=now())
    text = overview(client).text
    for words in (
        "2 platforms · 1 may block a merge",
        "2 pull request jobs today · 1 in progress",
        "100.0 % of 1 jobs that ended today passed",
        "2 decisions in the last 7 days",
    ):
        assert words in text


def test_the_live_part_is_sent_alone_and_again_only_when_something_changed(client: Client) -> None:
    acme = listed({"acme/torch": 2})["acme/torch"]
    job(acme, "success")
    overview(client)
    ask = {"HX-Request": "true", "HX-Target": "field"}
    part = client.get("/", headers=ask)
    assert (part.status_code, "<html" in part.content.decode(), "acme/torch" in part.content.decode()) == (
        200,
        False,
        True,
    )
    tag = part.headers["ETag"]
    assert client.get("/", headers=ask | {"If-None-Match": tag}).status_code == 304
    job(acme, "failure")
    recount(days=40, now=now())
    assert client.get("/", headers=ask | {"If-None-Match": tag}).status_code == 200


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
    recount(days=40, now=now())
    with django_assert_num_queries(11):
        assert len(Page(client.get("/")).tables["level-2"]) == rows


def test_the_field_is_drawn_once_for_what_it_stands_on(client: Client, django_assert_max_num_queries: Any) -> None:
    acme = listed({"acme/torch": 2})["acme/torch"]
    job(acme, "success")
    first = overview(client)
    with django_assert_max_num_queries(8):
        again = Page(client.get("/"))
    assert again.tables == first.tables
    job(acme, "failure")
    counted = overview(client)
    assert [row[2] for row in (first.tables["level-2"][0], counted.tables["level-2"][0])] == [
        "● 100.0 % ○ self-reported 1 jobs",
        "■ 50.0 % ○ self-reported 2 jobs",
    ]
    listed({"acme/torch": 4})
    assert list(Page(client.get("/")).tables) == ["level-4"]
