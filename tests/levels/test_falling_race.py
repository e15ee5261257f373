"""Two maintainers decide at the same moment: one decision is made, and the level is the one that it says."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from django.db import connections

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.core.clock import now
from apps.core.errors import Problem
from apps.levels.downgrades import confirm_downgrade, downgrade, undo_downgrade
from apps.levels.falling import demote, follow_nights, lift_notice
from apps.levels.models import Downgrade, FallNotice
from tests.factories.listing import listed, user
from tests.levels.falling import NAME, bad_nights, scene
from tests.live import ClonedDatabase


def at_once(*verbs: Callable[[], Any]) -> list[str]:
    """What each came to, done by threads that all have begun: `made`, or the code of its refusal."""
    ready = threading.Barrier(len(verbs), timeout=30)
    said: list[str] = []

    def run(verb: Callable[[], Any]) -> None:
        ready.wait()
        try:
            verb()
            said.append("made")
        except Problem as problem:
            said.append(problem.code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=[verb]) for verb in verbs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(said)


def test_one_of_two_decisions_about_a_notice_is_made(cloned_database: ClonedDatabase) -> None:
    found = scene()
    bert = user(Role.MAINTAINER, username="bert")
    last = bad_nights(found.repository)
    follow_nights(now=last)
    notice = FallNotice.objects.select_related("repository__platform").get()

    def lower(by: User) -> Any:
        return demote(notice=notice, reason="mine", by=by, now=now(), expected_level=3, seen_night=last.date())

    said = at_once(
        lambda: lower(found.ada),
        lambda: lower(bert),
        lambda: lift_notice(notice=notice, reason="mine", by=bert, now=now()),
        lambda: follow_nights(now=now()),
    )
    assert said == ["made", "made", "notice_stale", "notice_stale"]
    state = FallNotice.objects.get().state
    assert (state, found.fresh().level) in [("demoted", 2), ("lifted", 3)]


def test_one_of_two_decisions_about_a_downgrade_is_made(cloned_database: ClonedDatabase) -> None:
    found = scene(4)
    bert = user(Role.MAINTAINER, username="bert")
    for _ in range(4):
        listed({NAME: 4})
        words: dict[str, Any] = {"reason": "mine", "now": now()}
        down = partial(downgrade, repository=found.fresh(), **words)
        said = at_once(partial(down, level=2, by=found.ada), partial(down, level=3, by=bert, device="npu"))
        assert said == ["level_stale", "made"]
        made = Downgrade.objects.get(state="open")
        about = words | {"downgrade": made}
        said = at_once(
            partial(undo_downgrade, by=found.ada, **about),
            partial(undo_downgrade, by=bert, **about),
            partial(confirm_downgrade, by=bert, **about),
        )
        assert said == ["downgrade_stale", "downgrade_stale", "made"]
        made.refresh_from_db()
        assert (made.state, found.fresh().level) in [("undone", 4), ("confirmed", made.level_to)]
