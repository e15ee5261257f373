"""Who minds the demo's flaky tests: what the hub has proposed is decided on through its own doors, each in its time."""

import datetime
from typing import Any

import pytest
from django.test import override_settings

from apps.accounts.demo import ensure_demo_accounts
from apps.core.clock import now
from apps.platforms.services import rename_platform
from apps.quarantine.enums import ReasonClass, Source
from apps.quarantine.models import Quarantine
from apps.quarantine.services import propose
from apps.quarantine.sweep import expire
from apps.simulator.characters import CHARACTERS
from apps.simulator.junit import mended_test
from apps.simulator.minder import ACCOUNT, DECIDED_AFTER, MENDED, RECENT, SHORT, YESTERDAY, Minder, Refused
from tests.factories.listing import TESTS, listed
from tests.factories.tests import catalogued
from tests.live import Hub

WREN = CHARACTERS[4]
DAY = datetime.timedelta(days=1)


@pytest.fixture
def demo(hub: Hub) -> Any:
    with override_settings(DEMO=True, LOCAL_SIGN_IN=True):
        ensure_demo_accounts(now=now())
        platform = listed({WREN.full_name: 3})[WREN.full_name].platform
        rename_platform(platform=platform, name=WREN.name, slug=WREN.name, actor=TESTS, now=now())
        yield hub


def proposed(name: str, at: datetime.datetime) -> datetime.datetime:
    """What the hub proposes by itself."""
    from apps.platforms.models import Platform

    propose(
        platform=Platform.objects.get(),
        variant="default",
        tests=[catalogued(name.replace("<device>", "npu")).pk],
        source=Source.HUB,
        reason_class=ReasonClass.OTHER,
        reason="It flaked in 2 runs.",
        owner=WREN.oncalls[0],
        actor=TESTS,
        now=at,
    )
    return at


def states() -> list[tuple[str, datetime.datetime | None, datetime.datetime | None]]:
    """(state, effective from, expires at), the oldest first."""
    return list(Quarantine.objects.order_by("proposed_at").values_list("state", "effective_from", "expires_at"))


def test_one_runs_out_one_is_in_force_one_may_go_and_the_rest_is_left(demo: Hub) -> None:
    moment = now()
    minder = Minder(demo.url, WREN)
    first = proposed("test_one", moment - 28 * DAY)
    proposed("test_two", moment - 27 * DAY)
    proposed("test_three", moment - 26 * DAY)
    assert minder.tend(now=moment) is False  # not enough yet
    late = proposed(mended_test(WREN), moment - 10 * DAY)
    assert minder.tend(now=moment) is True
    decided = first + DECIDED_AFTER
    month = 30 * DAY
    recent = moment - RECENT
    mended = max(late + DECIDED_AFTER, moment - MENDED)
    assert states() == [
        ("in_force", decided, decided + SHORT),
        ("in_force", recent, recent + month),
        ("proposed", None, None),
        ("release_proposed", mended, mended + month),
    ]
    assert Quarantine.objects.get(state="release_proposed").changed_at == moment - YESTERDAY
    assert expire(now=moment) == 1
    assert [state for state, _, _ in states()] == ["expired", "in_force", "proposed", "release_proposed"]
    # Once is enough: what people decide in the demo stays.
    assert minder.tend(now=moment) is True
    assert len(states()) == 4


def test_what_was_proposed_a_moment_ago_is_decided_on_now(demo: Hub) -> None:
    moment = now()
    proposed("test_one", moment - 28 * DAY)
    proposed(mended_test(WREN), moment - 20 * DAY)
    for seconds, name in ((60, "test_two"), (59, "test_three")):
        proposed(name, moment - datetime.timedelta(seconds=seconds))
    assert Minder(demo.url, WREN).tend(now=moment) is True
    assert [state for state, _, _ in states()] == ["in_force", "release_proposed", "in_force", "proposed"]
    began = states()[2][1]
    assert began is not None
    assert moment <= began <= now()


def test_without_the_account_it_is_refused_and_says_so(demo: Hub, settings: Any) -> None:
    from apps.accounts.models import User

    for number in range(3):
        proposed(f"test_{number}", now() - (29 - number) * DAY)
    proposed(mended_test(WREN), now() - DAY)
    User.objects.filter(username=ACCOUNT).update(is_active=False)
    with pytest.raises(Refused):
        Minder(demo.url, WREN).tend(now=now())
    assert {state for state, _, _ in states()} == {"proposed"}
