"""A repository's levels over time: one interval follows the other, and PostgreSQL refuses anything else."""

import datetime

import pytest
from django.db import IntegrityError, transaction

from apps.core.errors import Problem
from apps.platforms.models import LevelInterval, Repository
from apps.platforms.services import change_level
from tests.factories.listing import TESTS, listed

pytestmark = pytest.mark.django_db
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def day(number: int) -> datetime.datetime:
    return START + datetime.timedelta(days=number)


def history(repository: Repository) -> list[tuple[int, int, int | None, int]]:
    """(level, first day, last day, number of the decision), oldest first."""
    return [
        (i.level, (i.started_at - START).days, (i.ended_at - START).days if i.ended_at else None, i.event_seq)
        for i in repository.level_intervals.order_by("started_at")
    ]


def change(repository: Repository, level: int, on: int) -> None:
    change_level(repository=repository, level=level, reason="a reason", actor=TESTS, now=day(on))
    repository.refresh_from_db()


def test_imports_and_decisions_make_one_history_without_gap_or_overlap() -> None:
    repository = listed({"acme/torch": 1}, now=day(0))["acme/torch"]
    change(repository, 2, on=3)
    listed({"acme/torch": 4}, now=day(7))
    repository.refresh_from_db()
    change(repository, 0, on=9)
    listed({"acme/torch": (3, {"oncalls": ["alice"]})}, now=day(12))
    listed({"acme/torch": (3, {"oncalls": ["bob"]})}, now=day(13))  # no other level, no interval
    listed({"acme/torch": 0}, now=day(20))
    assert history(repository) == [
        (1, 0, 3, 1),
        (2, 3, 7, 2),
        (4, 7, 9, 3),
        (0, 9, 12, 4),
        (3, 12, 20, 5),
        (0, 20, None, 7),
    ]


def test_two_changes_at_the_same_moment_are_two_intervals() -> None:
    repository = listed({"acme/torch": 1}, now=day(0))["acme/torch"]
    change(repository, 2, on=0)
    assert sorted(history(repository), key=lambda row: row[3]) == [(1, 0, 0, 1), (2, 0, None, 2)]


@pytest.mark.parametrize(("first", "last"), [(1, 2), (-1, 1), (-1, None), (4, 6), (9, 12), (20, None)])
def test_postgresql_refuses_an_overlapping_interval(first: int, last: int | None) -> None:
    repository = listed({"acme/torch": 1}, now=day(0))["acme/torch"]
    change(repository, 2, on=10)
    before = history(repository)
    with pytest.raises(IntegrityError, match="platforms_interval_no_overlap"), transaction.atomic():
        LevelInterval.objects.create(
            repository=repository,
            level=0,
            started_at=day(first),
            ended_at=None if last is None else day(last),
            event_seq=1,
        )
    assert history(repository) == before


def test_another_repositorys_interval_is_its_own() -> None:
    two = listed({"acme/one": 1, "acme/two": 2}, now=day(0))
    assert [history(repository) for repository in two.values()] == [[(1, 0, None, 1)], [(2, 0, None, 2)]]


@pytest.mark.parametrize(
    ("values", "constraint"),
    [({"ended_at": day(-1)}, "platforms_interval_forward"), ({"level": 5}, "platforms_interval_level")],
)
def test_postgresql_refuses_an_impossible_interval(values: dict[str, object], constraint: str) -> None:
    repository = listed({"acme/torch": 1}, now=day(0))["acme/torch"]
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        repository.level_intervals.update(**values)


@pytest.mark.parametrize(
    ("values", "constraint"),
    [
        ({"level": 5}, "platforms_repository_level"),
        ({"level": -1}, "platforms_repository_level"),
        ({"level": 3, "device": ""}, "platforms_repository_device_at_l3"),
        ({"events": ["release"]}, "platforms_repository_events_known"),
        ({"github_id": 5}, "platforms_repository_pin_whole"),
        ({"pin_source": "github_api"}, "platforms_repository_pin_whole"),
        ({"full_name": "ACME/other"}, "platforms_repository_name"),
    ],
)
def test_postgresql_refuses_an_impossible_repository(values: dict[str, object], constraint: str) -> None:
    repository = listed({"acme/torch": 1, "acme/other": 1})["acme/torch"]
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        Repository.objects.filter(pk=repository.pk).update(**values)


def test_a_clock_that_lags_behind_the_running_interval_does_not_turn_it_around() -> None:
    repository = listed({"acme/torch": 1}, now=day(5))["acme/torch"]
    change(repository, 2, on=3)
    assert history(repository) == [(1, 5, 5, 1), (2, 5, None, 2)]


def test_a_refused_change_leaves_no_trace() -> None:
    repository = listed({"acme/torch": 1}, now=day(0))["acme/torch"]
    with pytest.raises(Problem):
        change(repository, 4, on=3)
    repository.refresh_from_db()
    assert (repository.level, history(repository)) == (1, [(1, 0, None, 1)])
