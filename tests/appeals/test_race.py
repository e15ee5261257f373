"""Two act on one appeal, or want the same rows, at the same moment: one wins, the other is told."""

from functools import partial
from typing import Any

from apps.accounts.policy import Role
from apps.appeals.enums import Outcome
from apps.appeals.models import Appeal, AppealedRow
from apps.audit.models import Event
from apps.results.models import SetAside
from tests.appeals.field import Field
from tests.factories.listing import member_of, user
from tests.governance.test_race import at_once
from tests.live import ClonedDatabase


def fresh(made: Appeal) -> Appeal:
    return Appeal.objects.select_related("platform", "repository").get(pk=made.pk)


def test_the_same_rows_are_held_by_one_of_two_at_once(cloned_database: ClonedDatabase) -> None:
    field = Field.make()
    yann = member_of(field.platform, username="yann")
    for _ in range(2):
        acts: Any = [
            partial(field.contests, *field.red[:3], by=field.zoe),
            partial(field.contests, *reversed(field.red[1:]), by=yann),
        ]
        assert at_once(*acts) == ["already_appealed", "done"]
        (made,) = Appeal.objects.filter(state="open")
        assert AppealedRow.objects.filter(is_freed=False).count() == 3
        field.withdraws(fresh(made))


def test_exactly_one_of_two_deciders_at_once_decides(cloned_database: ClonedDatabase) -> None:
    field = Field.make()
    bob = user(Role.MAINTAINER, username="bob")
    for red in field.red[:3]:
        made = field.contests(red)
        before = Event.objects.count()
        acts: Any = [
            partial(field.decides, fresh(made), Outcome.OVERTURN),
            partial(field.decides, fresh(made), Outcome.UPHOLD, by=bob),
        ]
        assert at_once(*acts) == ["appeal_stale", "done"]
        state = fresh(made).state
        assert SetAside.objects.filter(job=red).count() == int(state == "overturned")
        assert Event.objects.count() == before + 1
