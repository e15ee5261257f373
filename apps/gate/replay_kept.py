"""Replays as pages tell them: one is made again only once what is kept is older than FRESH. Decisions and the evidence
of promotions never read what is kept here."""

import datetime
from collections.abc import Iterable

from apps.gate.models import KeptReplay
from apps.gate.replay import replays
from apps.gate.replay_policy import Replay
from apps.platforms.models import Repository

# Within a UTC day, as a replay ends with the day before.
FRESH = datetime.timedelta(hours=1)


def replays_lately(repositories: Iterable[Repository], *, days: int, now: datetime.datetime) -> dict[int, Replay]:
    """By repository (primary key) its replay over so many days, made within FRESH; each says when it was made. Raises
    Problem `malformed` as `replay` does."""
    listed = list(repositories)
    midnight = now.astimezone(datetime.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    kept = KeptReplay.objects.filter(
        repository__in=listed, days=days, made_at__gt=now - FRESH, made_at__gte=midnight, made_at__lte=now
    )
    found = {pk: Replay.read(said) for pk, said in kept.values_list("repository", "said")}
    missing = [repository for repository in listed if repository.pk not in found]
    found |= replays(missing, days=days, now=now)
    KeptReplay.objects.bulk_create(
        [KeptReplay(repository=one, days=days, made_at=now, said=found[one.pk].written()) for one in missing],
        update_conflicts=True,
        unique_fields=["repository", "days"],
        update_fields=["made_at", "said"],
    )
    return found


def replay_lately(repository: Repository, *, days: int, now: datetime.datetime) -> Replay:
    """The same of one repository."""
    return replays_lately([repository], days=days, now=now)[repository.pk]
