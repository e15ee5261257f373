"""What a notice, an answer or a downgrade stands on is never changed; what is over stays over."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from apps.core.clock import now
from apps.levels.downgrades import downgrade, undo_downgrade
from apps.levels.falling import answer_notice, follow_nights, lift_notice
from apps.levels.models import Downgrade, FallNotice
from apps.levels.models_falling import NoticeAnswer
from tests.levels.falling import DAY, bad_nights, scene

pytestmark = pytest.mark.django_db


def refused(change: Callable[[], Any]) -> None:
    with pytest.raises(IntegrityError, match="is never changed"), transaction.atomic():
        change()


@pytest.mark.parametrize(
    "values",
    [
        {"figures": [{"day": "2026-11-30", "policy": 0, "results": []}]},
        {"criteria": ["L3.stay.answer_rate"]},
        {"deadline_at": now() + 90 * DAY},
        {"calendar": "CN"},
        {"way_back": "none"},
        {"level": 4},
    ],
)
def test_an_open_notice_keeps_its_figures_and_its_deadline(values: dict[str, Any]) -> None:
    found = scene()
    follow_nights(now=bad_nights(found.repository) + DAY)
    before = FallNotice.objects.values().get()
    refused(lambda: FallNotice.objects.update(**values))
    refused(lambda: FallNotice.objects.all().delete())
    assert FallNotice.objects.values().get() == before


def test_an_answer_stays_as_it_was_given_and_a_notice_that_is_over_stays_over() -> None:
    found = scene()
    follow_nights(now=bad_nights(found.repository) + DAY)
    notice = FallNotice.objects.get()
    answer_notice(notice=notice, text="a driver", by=found.zoe, now=now())
    refused(lambda: NoticeAnswer.objects.update(text="nothing"))
    refused(lambda: NoticeAnswer.objects.all().delete())
    lift_notice(notice=notice, reason="known upstream", by=found.ada, now=now())
    again = {"state": "open", "ended_at": None, "ended_by": "", "ended_why": ""}
    refused(lambda: FallNotice.objects.update(**again))
    assert (FallNotice.objects.get().state, NoticeAnswer.objects.get().text) == ("lifted", "a driver")


def test_a_downgrade_keeps_where_it_leads_back_to_and_is_over_once() -> None:
    found = scene(3)
    made = downgrade(repository=found.fresh(), level=2, reason="it lies", by=found.ada, now=now())
    for values in ({"level_from": 4}, {"deadline_at": now() + 90 * DAY}, {"event_seq": 1}, {"reason": "so"}):
        refused(lambda values=values: Downgrade.objects.update(**values))  # type: ignore[misc]
    undo_downgrade(downgrade=made, reason="mended", by=found.ada, now=now())
    refused(lambda: Downgrade.objects.update(state="open", ended_at=None, ended_by="", ended_why=""))
    refused(lambda: Downgrade.objects.all().delete())
    assert (Downgrade.objects.get().state, Downgrade.objects.get().level_from) == ("undone", 3)
