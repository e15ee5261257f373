"""`/policy/` prints the rules of flaky tests: those in force, upstream's beside them, and every change."""

import datetime
from dataclasses import asdict

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.core.clock import now
from apps.quarantine.policy import HUB, TRANSITIONS, UPSTREAM
from apps.quarantine.rules import put_rules_in_force
from tests.factories.listing import TESTS, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
DAY = datetime.timedelta(days=1)


def policy() -> Page:
    return Page(Client().get("/policy/"))


def printed() -> dict[str, tuple[str, ...]]:
    return {row[0]: row[3:] for row in policy().tables["flaky"]}


def test_the_set_that_ships_stands_beside_upstreams() -> None:
    rows = printed()
    assert list(rows) == list(asdict(HUB))
    names = ("enter_jobs", "window", "only_main", "leave_passes", "expiry", "cap_share")
    assert {name: rows[name] for name in names} == {
        "enter_jobs": ("2", "3"),
        "window": ("14 days", "6 hours"),
        "only_main": ("no", "yes"),
        "leave_passes": ("20", "150"),
        "expiry": ("30 days", "30 days"),
        "cap_share": ("1 %", "1 %"),
    }
    assert "They have never changed" in policy().text


def test_a_set_is_printed_once_it_holds_and_its_change_stays() -> None:
    moment = now()
    stricter = asdict(HUB) | {"enter_jobs": 7}
    put_rules_in_force(values=stricter, from_at=moment, reason="too many", actor=TESTS, now=moment)
    later = moment + DAY
    put_rules_in_force(values=asdict(UPSTREAM), from_at=later, reason="as <upstream>", actor=TESTS, now=moment)
    assert printed()["enter_jobs"] == ("7", "3")
    changed = "enter_jobs 7 → 3 enter_runs 2 → 1 enter_commits 2 → 1 window 14 days → 6 hours newest 7 days → 5 hours"
    changed += " only_main no → yes leave_passes 20 → 150 leave_quiet 0 hours → 14 days"
    assert policy().tables["flaky-versions"] == [
        (f"{later:%Y-%m-%d %H:%M:%S} UTC ◆ to come", "upstream", changed, TESTS.label, "as <upstream>"),
        (f"{moment:%Y-%m-%d %H:%M:%S} UTC", "of its own", "enter_jobs 2 → 7", TESTS.label, "too many"),
    ]


def test_only_who_may_change_the_rules_is_led_to_the_form() -> None:
    seen = {}
    for name, who in (("visitor", None), ("vendor", user()), ("maintainer", user(Role.MAINTAINER))):
        client = Client()
        if who:
            client.force_login(who)
        seen[name] = "/policy/flaky/" in Page(client.get("/policy/")).links
    assert seen == {"visitor": False, "vendor": False, "maintainer": True}


def test_the_life_of_a_quarantine_is_the_table_that_the_verbs_ask() -> None:
    assert policy().tables["quarantine-life"] == [
        (state.label, verb.label, end.label) for (state, verb), end in TRANSITIONS.items()
    ]
