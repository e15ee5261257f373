"""The way back after a demotion: what has to be met again, and who is told once it is."""

import datetime

from django.db import transaction

from apps.audit.enums import Action
from apps.audit.services import HUB, Subject, record
from apps.governance.models import NightlyEvaluation
from apps.governance.notices import announce_event
from apps.levels.falling_policy import is_back, standings
from apps.levels.models_falling import WayBack
from apps.levels.readers import readers_of
from apps.platforms.models import Repository
from apps.policies.policy import Use
from apps.policies.selectors import policy_at


def open_way_back(repository: Repository, level: int, *, event_seq: int, now: datetime.datetime) -> WayBack:
    """Keep what has to be met before a level can be proposed again: what rising to it asks for, as far as it is
    counted. What people judge, a proposal brings."""
    asked = [row.key for row in policy_at(now).of(level, Use.RISE) if not row.of.is_evidence]
    return WayBack.objects.create(repository=repository, level=level, criteria=asked, since=now, event_seq=event_seq)


def follow_ways_back(*, now: datetime.datetime) -> int:
    """Tell members and maintainers once of each demoted repository that met all of its way back in a night since.
    Returns how many were told of."""
    return sum(_follow(pk, now) for pk in WayBack.objects.filter(reached_at=None).values_list("pk", flat=True))


@transaction.atomic
def _follow(pk: int, now: datetime.datetime) -> bool:
    way = WayBack.objects.select_for_update(of=("self",)).select_related("repository__platform").get(pk=pk)
    repository = way.repository
    if way.reached_at is not None or repository.level != way.level - 1:
        return False
    nights = NightlyEvaluation.objects.filter(repository=repository, level=way.level, use=Use.RISE)
    night = nights.filter(evaluated_at__gt=way.since).order_by("-day").first()
    if night is None or not is_back([standings(night.results)], way.criteria, 1):
        return False
    WayBack.objects.filter(pk=pk).update(reached_at=now)
    event = record(
        action=Action.WAY_BACK_REACHED,
        actor=HUB,
        subject=Subject("repository", str(repository.public_id), repository.full_name),
        summary=f"{repository.full_name} can be proposed for {way.level_code} again",
        reason=f"Met in the night of {night.day}: {', '.join(way.criteria)}.",
        evidence={"decision": way.event_seq, "policy": night.policy_number},
        now=now,
        is_decision=False,
    )
    announce_event(event, readers_of(repository.platform), now=now)
    return True
