"""Repositories that meet what a level asks for, and promotions of them, made through the real services."""

import datetime
import itertools
from typing import Any

from apps.accounts.models import Organisation, User
from apps.accounts.policy import Role
from apps.core.clock import now
from apps.levels.freezing import Item
from apps.levels.models import Promotion
from apps.levels.promoting import open_promotion
from apps.platforms.models import Repository
from apps.platforms.policy import STABLE
from apps.results.services import count_days
from tests.factories.jobs import dispatch, job
from tests.factories.listing import listed, member_of, user

DAY = datetime.timedelta(days=1)
CARD = Item("compatibility_card", "Compatibility card", "Which operators run, by CI.", "https://zephyr.example/card")
_numbers = itertools.count(1)


def midday(days: int) -> datetime.datetime:
    """Noon of a UTC day so many days ago."""
    return now().replace(hour=12, minute=0, second=0, microsecond=0) - days * DAY


def went_well(repository: Repository, days: int) -> None:
    """Two runs a day that passed and were answered."""
    for back, name in itertools.product(range(1, days + 1), ("build", "test-ops")):
        sent = dispatch(repository, at=midday(back))
        at = midday(back) + datetime.timedelta(minutes=1)
        job(repository, "success", at=at, dispatch=sent, delivery_id=sent.delivery.delivery_id, job_name=name)
    count_days([(repository.pk, midday(back).date()) for back in range(days + 1)], now=now())


def proven(full_name: str = "zephyr/torch", *, level: int = 2, oncalls: tuple[str, ...] = ("zoe", "zac")) -> Repository:
    """A repository at L2 or L3 that meets what the next level asks for."""
    options: dict[str, Any] = {"oncalls": oncalls} | ({"device": "npu"} if level == STABLE else {})
    days = 35 if level == STABLE else 16
    repository = listed({full_name: (level, options)}, now=midday(days * 2 + 10))[full_name]
    went_well(repository, days)
    return repository


def maintainer(organisation: str = "") -> User:
    """A maintainer, of an organisation of their own unless one is named."""
    name = organisation or f"Org {next(_numbers)}"
    made, _ = Organisation.objects.get_or_create(
        slug=name.lower().replace(" ", "-"), defaults={"name": name, "created_at": now()}
    )
    return user(Role.MAINTAINER, organisation=made)


def promotion(repository: Repository | None = None, **fields: Any) -> Promotion:
    """An open promotion of a proven repository, opened by a member of its platform."""
    repository = repository or proven()
    by = fields.pop("by", None) or member_of(repository.platform, email="zoe@zephyr.example")
    items = (CARD,) if repository.level == STABLE else ()
    values = {"reason": "ready for it", "device": "npu", "items": items} | fields
    return open_promotion(repository=repository, by=by, now=values.pop("now", now()), **values)
