"""A platform with rows to contest, who speaks for it, and who decides."""

import datetime
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.accounts.models import Organisation, User
from apps.accounts.policy import Role
from apps.accounts.services import actor_of
from apps.appeals.enums import Outcome
from apps.appeals.models import Appeal
from apps.appeals.services import (
    Figure,
    Said,
    appeal_decision,
    appeal_figure,
    decide_appeal,
    pause_appeal,
    withdraw_appeal,
)
from apps.audit.models import Event
from apps.platforms.models import Platform, Repository
from apps.platforms.services import change_level
from apps.relay.models import Job
from apps.results.services import count_days
from tests.factories.jobs import job
from tests.factories.listing import listed, member_of, user

# A Friday; what is shown and read by criteria ends with it.
NOW = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
HOUR, DAY = datetime.timedelta(hours=1), datetime.timedelta(days=1)
ZEPHYR = "zephyr/torch"


@dataclass
class Field:
    """Zephyr at L3 with 16 good and 4 red jobs; zoe speaks for it, ada decides."""

    zephyr: Repository
    red: list[Job]
    zoe: User
    ada: User

    @classmethod
    def make(cls, level: int = 3) -> "Field":
        zephyr = listed({ZEPHYR: level}, now=NOW - 40 * DAY)[ZEPHYR]
        for number in range(16):
            job(zephyr, "success", at=NOW - (1 + number % 4) * DAY, job_name=f"good-{number}")
        red = [
            job(
                zephyr, "timed_out" if number == 3 else "failure", at=NOW - (number + 1) * DAY, job_name=f"red-{number}"
            )
            for number in range(4)
        ]
        made = cls(
            zephyr,
            red,
            member_of(zephyr.platform, username="zoe", email="zoe@zephyr.example"),
            user(Role.MAINTAINER, username="ada", email="ada@upstream.example"),
        )
        made.counts()
        return made

    @property
    def platform(self) -> Platform:
        return self.zephyr.platform

    def counts(self) -> None:
        days = [(self.zephyr.pk, (NOW - back * DAY).date()) for back in range(15)]
        count_days(days, now=NOW)

    def said(self, *jobs: Job, **values: Any) -> Said:
        given: dict[str, Any] = {"claim": "infrastructure", "words": "The runner's disk was full."}
        return Said(jobs=[one.public_id for one in jobs], **(given | values))

    def contests(
        self, *jobs: Job, by: User | None = None, at: datetime.datetime = NOW, figure: str = "pass_rate", **said: Any
    ) -> Appeal:
        """An appeal of a figure over 14 days, with these rows (default: all red ones)."""
        return appeal_figure(
            figure=Figure(self.zephyr, figure, said.pop("days", 14)),
            said=self.said(*(jobs or self.red), **said),
            by=by or self.zoe,
            now=at,
        )

    def contests_decision(
        self, decision: Event, *jobs: Job, by: User | None = None, at: datetime.datetime = NOW, **said: Any
    ) -> Appeal:
        given = {"claim": "procedure", "words": "No notice was given."} | said
        return appeal_decision(decision=decision, said=self.said(*jobs, **given), by=by or self.zoe, now=at)

    def lowers(self, by: User, level: int = 2, at: datetime.datetime = NOW) -> Event:
        """A maintainer lowers Zephyr."""
        self.zephyr.refresh_from_db()
        return change_level(
            repository=self.zephyr, level=level, reason="It broke pull requests.", actor=actor_of(by), now=at
        )

    def decides(
        self,
        appeal: Appeal,
        outcome: Outcome = Outcome.OVERTURN,
        *accepted: Job,
        by: User | None = None,
        at: datetime.datetime = NOW,
        revision: int | None = None,
        reason: str = "The disk was full.",
    ) -> Appeal:
        keys: list[UUID] = [one.public_id for one in accepted]
        return decide_appeal(
            appeal=appeal,
            outcome=outcome,
            accepted=keys,
            reason=reason,
            revision=appeal.revision if revision is None else revision,
            by=by or self.ada,
            now=at,
        )

    def pauses(
        self,
        appeal: Appeal,
        days: int = 2,
        by: User | None = None,
        at: datetime.datetime = NOW,
        revision: int | None = None,
    ) -> Appeal:
        return pause_appeal(
            appeal=appeal,
            days=days,
            reason="Logs are being fetched.",
            revision=appeal.revision if revision is None else revision,
            by=by or self.ada,
            now=at,
        )

    def withdraws(
        self, appeal: Appeal, by: User | None = None, at: datetime.datetime = NOW, revision: int | None = None
    ) -> Appeal:
        return withdraw_appeal(
            appeal=appeal,
            reason="It was ours.",
            revision=appeal.revision if revision is None else revision,
            by=by or self.zoe,
            now=at,
        )


def organisation(slug: str, *people: User) -> Organisation:
    """An organisation, and who is of it."""
    made = Organisation.objects.create(slug=slug, name=slug.title(), created_at=NOW)
    for one in people:
        one.organisation = made
        one.save(update_fields=["organisation"])
    return made
