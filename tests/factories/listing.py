"""People and listed repositories, made through the real services."""

import datetime
import hashlib
import itertools
from typing import Any

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.accounts.services import grant_role
from apps.audit.services import Actor, command_actor
from apps.core.clock import now as clock_now
from apps.platforms.allowlist import EVERY_EVENT, Entry, dump, parse
from apps.platforms.models import Platform, Repository
from apps.platforms.services import add_member, import_allowlist

TESTS = command_actor("tests")
_numbers = itertools.count(1)


def listed(
    levels: dict[str, int | tuple[int, dict[str, Any]]],
    *,
    now: datetime.datetime | None = None,
    actor: Actor = TESTS,
) -> dict[str, Repository]:
    """Import an allowlist with these repositories, each at a level: the repositories by name, as the database has them.

    A level may come with options: `device`, `oncalls`, `events`. Level 3 without a device gets the device `npu`. Level
    0 unlists, so the repository has to be there already. What is not named is unlisted too, as with every import.
    """
    entries = []
    for full_name, given in levels.items():
        level, options = given if isinstance(given, tuple) else (given, {})
        if level:
            entries.append(_entry(level, full_name, **options))
    text = dump(entries)
    import_allowlist(
        allowlist=parse(text),
        source="allowlist.yml",
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        actor=actor,
        now=now or clock_now(),
    )
    return {name: Repository.objects.select_related("platform").get(full_name__iexact=name) for name in levels}


def _entry(level: int, full_name: str, *, device: str = "", oncalls: Any = (), events: Any = EVERY_EVENT) -> Entry:
    return Entry(level, full_name, device or ("npu" if level == 3 else ""), tuple(oncalls), frozenset(events))


def user(role: Role | None = None, *, username: str = "", **fields: Any) -> User:
    """A user who can sign in with the password `password`, with a granted role where one is given."""
    username = username or f"{role.value if role else 'user'}-{next(_numbers)}"
    made = User.objects.create_user(username, password="password", **fields)
    if role:
        grant_role(user=made, role=role, actor=TESTS, now=clock_now())
    return made


def member_of(platform: Platform, **fields: Any) -> User:
    """A user who speaks for a platform."""
    made = user(**fields)
    add_member(platform=platform, user=made, actor=TESTS, now=clock_now())
    return made
