"""What PostgreSQL refuses about an allowlist that is kept upstream, whoever asks."""

from typing import Any

import pytest
from django.db import IntegrityError, models

from apps.core.clock import now
from apps.platforms.models import AllowlistAlarm, AllowlistEdit, Demotion, UpstreamFile
from tests.factories.listing import listed

pytestmark = pytest.mark.django_db


def edit(seq: int, **values: Any) -> AllowlistEdit:
    given = {"event_seq": seq, "level_before": 1, "level": 2, "decided_at": now(), "changed_at": now()}
    return AllowlistEdit(**(given | values))


def alarm(**values: Any) -> AllowlistAlarm:
    return AllowlistAlarm(**({"kind": "shrink", "detail": "much", "raised_at": now()} | values))


def refused(name: str, *rows: models.Model) -> None:
    """The last row is refused by this constraint; those before it are not."""
    *taken, last = rows
    for row in taken:
        row.save(force_insert=True)
    with pytest.raises(IntegrityError, match=name):
        last.save(force_insert=True)


def test_one_decision_about_a_repository_waits_at_a_time() -> None:
    one = listed({"acme/one": 1})["acme/one"]
    edit(1, repository=one, state="closed", pull_number=1).save()
    edit(2, repository=one).save()
    refused("platforms_edit_open_once", edit(3, repository=one, state="opened", pull_number=2))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("platforms_edit_state", {"state": "lost"}),
        ("platforms_edit_level", {"level": 5}),
        ("platforms_edit_device_at_l3", {"level": 3}),
        ("platforms_edit_events_known", {"events": ["push"]}),
        ("platforms_edit_opened_has_pull", {"state": "opened"}),
        ("platforms_edit_opened_has_pull", {"state": "closed"}),
    ],
)
def test_a_decision_that_makes_no_sense(name: str, values: dict[str, Any]) -> None:
    refused(name, edit(1, repository=listed({"acme/one": 1})["acme/one"], **values))


def test_a_decision_is_waited_for_once() -> None:
    made = listed({"acme/one": 1, "acme/two": 1})
    refused("event_seq", edit(1, repository=made["acme/one"]), edit(1, repository=made["acme/two"]))


def test_one_alarm_is_open() -> None:
    alarm(cleared_at=now()).save()
    refused("platforms_alarm_one_open", alarm(), alarm(kind="html"))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("platforms_alarm_kind", {"kind": "odd"}),
        ("platforms_alarm_only_shrink_accepted", {"kind": "html", "accepted_seq": 1}),
    ],
)
def test_an_alarm_that_makes_no_sense(name: str, values: dict[str, Any]) -> None:
    refused(name, alarm(**values))


def test_there_is_one_copy_and_it_is_whole() -> None:
    refused("platforms_upstream_file_single", UpstreamFile(pk=2, answered_at=now()))


def test_a_copy_has_a_commit_and_a_time() -> None:
    refused("platforms_upstream_file_taken_whole", UpstreamFile(commit_sha="c4", answered_at=now()))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("platforms_demotion_state", {"state": "lost", "ended_at": now()}),
        ("platforms_demotion_ended", {"state": "closed"}),
        ("platforms_demotion_ended", {"ended_at": now()}),
    ],
)
def test_a_demotion_that_makes_no_sense(name: str, values: dict[str, Any]) -> None:
    one = listed({"acme/one": 1})["acme/one"]
    refused(name, Demotion(repository=one, pull_number=1, level_before=3, opened_at=now(), **values))
