"""What overturning a decision undoes, beyond levels and waivers: each through the verb that anyone else would use."""

import uuid

import pytest

from apps.accounts.policy import Role
from apps.accounts.services import actor_of
from apps.appeals.contested import CONTESTABLE
from apps.appeals.models import Appeal
from apps.audit.enums import Action, ActorKind
from apps.audit.models import Event
from apps.audit.services import HUB, Subject
from apps.gate.models import BreakerTrip, Override
from apps.gate.overriding import grant_override
from apps.gate.selectors import trips_by_day
from apps.quarantine.enums import ReasonClass, Source
from apps.quarantine.models import Quarantine
from apps.quarantine.services import propose, propose_release, put_in_force, release
from tests.appeals.field import DAY, HOUR, NOW, Field
from tests.factories.events import event
from tests.factories.jobs import dispatch
from tests.factories.listing import TESTS, listed, user
from tests.factories.tests import catalogued


def newest(action: Action) -> Event:
    return Event.objects.filter(action=action).latest("seq")


def test_a_released_quarantine_is_proposed_again(field: Field) -> None:
    made = propose(
        platform=field.platform,
        variant="default",
        tests=[catalogued("test_a").pk],
        source=Source.VENDOR,
        reason_class=ReasonClass.TIMING,
        reason="it races",
        owner="zoe",
        actor=TESTS,
        now=NOW - 3 * DAY,
    )
    bob = actor_of(user(Role.MAINTAINER))
    made = put_in_force(quarantine=made, revision=made.revision, is_bound=False, actor=bob, now=NOW - 2 * DAY)
    made = propose_release(quarantine=made, revision=made.revision, reason="fixed", actor=bob, now=NOW - DAY)
    release(quarantine=made, revision=made.revision, reason="fixed", proof="20 passes", actor=bob, now=NOW - HOUR)
    appeal = field.decides(field.contests_decision(newest(Action.QUARANTINE_RELEASED)))
    assert Quarantine.objects.get().state == "proposed"
    assert appeal.compensation_seq == newest(Action.QUARANTINE_REOPENED).seq


@pytest.fixture
def blocking(db: None) -> Field:
    return Field.make(level=4)


def test_an_opened_breaker_is_closed_and_a_closed_one_stays(blocking: Field) -> None:
    field, keys = blocking, [uuid.uuid4(), uuid.uuid4()]
    for key, closed in zip(keys, (None, NOW - HOUR), strict=True):
        opened = event(
            "opened",
            action=Action.BREAKER_OPENED,
            actor=HUB,
            subject=Subject("breakertrip", str(key), "x"),
            now=NOW - DAY,
        )
        trip = BreakerTrip.objects.create(
            public_id=key,
            repository=field.zephyr,
            kind="timeouts",
            why="It timed out.",
            policy_number=0,
            opened_at=NOW - DAY,
            event_seq=opened.seq,
            closed_at=closed,
            closed_by="decision" if closed else "",
            closed_why="known" if closed else "",
        )
        appeal = field.decides(field.contests_decision(opened))
        trip.refresh_from_db()
        # It counts for nothing any more, neither for the criterion nor as a first trip of two.
        day = NOW.date()
        assert (trip.overturned_at, trips_by_day([field.zephyr.pk], since=day - 3 * DAY, until=day)) == (
            NOW,
            {field.zephyr.pk: {}},
        )
        if closed is None:
            assert (trip.closed_at, trip.closed_by) == (NOW, "decision")
            assert appeal.compensation_seq == newest(Action.BREAKER_CLOSED).seq
        else:
            assert (trip.closed_at, appeal.state, appeal.compensation_seq) == (closed, "overturned", None)


def test_an_override_is_withdrawn(blocking: Field) -> None:
    field = blocking
    dispatch(field.zephyr, at=NOW - DAY, pr_number=7, head_sha="cd" * 20)
    grant_override(
        pr_number=7,
        repository=field.zephyr,
        reason="The runner burns.",
        until=NOW + DAY,
        by=user(Role.MAINTAINER),
        now=NOW - HOUR,
    )
    appeal = field.decides(field.contests_decision(newest(Action.OVERRIDE_GRANTED)))
    assert Override.objects.get().withdrawn_at == NOW
    assert appeal.compensation_seq == newest(Action.OVERRIDE_WITHDRAWN).seq


def test_where_no_verb_undoes_it_people_carry_the_outcome_out(field: Field) -> None:
    listed({"zephyr/torch": (3, {"oncalls": ("zoe",)})}, now=NOW - HOUR)
    changed = newest(Action.DETAILS_CHANGED)
    assert (changed.actor_kind, CONTESTABLE[Action.DETAILS_CHANGED].undo) == (ActorKind.COMMAND, None)
    appeal = field.decides(field.contests_decision(changed))
    assert (appeal.state, appeal.compensation_seq) == ("overturned", None)
    assert Appeal.objects.get().decider_id_then == ""
