"""Nights and people around a repository at L3."""

import datetime
from dataclasses import dataclass

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.core.clock import now
from apps.governance.models import NightlyEvaluation
from apps.levels.models import FallNotice
from apps.platforms.models import Repository
from apps.policies.policy import SHIPPED, Use
from tests.factories.listing import listed, member_of, user

DAY = datetime.timedelta(days=1)
PASS, TIMEOUT = "L3.stay.pass_rate", "L3.stay.timeout_rate"
NAME = "zephyr/torch"


@dataclass(frozen=True)
class Scene:
    """A repository at a level since 40 days, its member zoe and the maintainer ada."""

    repository: Repository
    zoe: User
    ada: User

    def fresh(self) -> Repository:
        return Repository.objects.select_related("platform").get(pk=self.repository.pk)


def scene(level: int = 3) -> Scene:
    repository = listed({NAME: level}, now=now() - 40 * DAY)[NAME]
    zoe = member_of(repository.platform, username="zoe", email="zoe@example.org")
    return Scene(repository, zoe, user(Role.MAINTAINER, username="ada", email="ada@example.org"))


def night(
    repository: Repository,
    at: datetime.datetime,
    failing: tuple[str, ...] = (),
    *,
    unknown: tuple[str, ...] = (),
    waived: tuple[str, ...] = (),
    use: Use = Use.STAY,
    level: int = 3,
) -> NightlyEvaluation:
    """A night that was kept: all met, but for these criteria."""
    results = [
        {
            "criterion": row.key,
            "asks": row.asks,
            "shown": "80 %",
            "verdict": "no result" if row.key in unknown else "not met" if row.key in failing else "met",
            "sentence": f"{row.of.title} 80 %, asked {row.asks}.",
            "waiver": "known" if row.key in waived else "",
        }
        for row in SHIPPED.of(level, use)
    ]
    return NightlyEvaluation.objects.create(
        repository=repository,
        day=at.date(),
        level=level,
        use=use,
        verdict="not met" if failing else "met",
        sentence="So it was.",
        results=results,
        policy_number=0,
        evaluated_at=at,
    )


def bad_nights(repository: Repository, count: int = 3, last: datetime.datetime | None = None) -> datetime.datetime:
    """So many nights in a row in which the pass rate was too low; answers when the last was kept."""
    last = last or now() - 30 * DAY
    for back in range(count):
        night(repository, last - back * DAY, (PASS,))
    return last


def state_of(notice: FallNotice) -> str:
    return FallNotice.objects.get(pk=notice.pk).state
