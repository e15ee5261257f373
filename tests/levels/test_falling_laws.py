"""The rules of falling as laws: over any nights, answers, decisions and changes of level."""

import datetime
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.core.clock import now
from apps.core.errors import Problem
from apps.levels.falling import answer_notice, demote, follow_nights, lift_notice
from apps.levels.falling_policy import changes, is_back, lasting
from apps.levels.models import FallNotice, WayBack
from apps.platforms.models import LevelInterval
from apps.policies.policy import Use
from tests.factories.listing import listed
from tests.levels.falling import DAY, NAME, PASS, TIMEOUT, Scene, night, scene

STOOD = st.sampled_from(["met", "not met", "no result", "waived"])
NIGHTS = st.lists(st.fixed_dictionaries({PASS: STOOD, TIMEOUT: STOOD}), max_size=6)


@given(NIGHTS, st.integers(1, 5))
def test_what_opens_a_notice_is_no_way_back_from_it(nights: list[dict[str, str]], dwell: int) -> None:
    criteria = lasting(nights, dwell)
    assert all(night[key] == "not met" for night in nights[:dwell] for key in criteria)
    assert not criteria or not is_back(nights, criteria, dwell)


@given(NIGHTS, st.integers(1, 5))
def test_a_night_more_that_is_no_worse_keeps_the_way_back(nights: list[dict[str, str]], dwell: int) -> None:
    better = {PASS: "met", TIMEOUT: "met"}
    if is_back(nights, [PASS, TIMEOUT], dwell):
        assert is_back([better, *nights], [PASS, TIMEOUT], dwell)
    assert is_back([better] * dwell + nights, [PASS, TIMEOUT], dwell)


@given(st.fixed_dictionaries({PASS: STOOD, TIMEOUT: STOOD}))
def test_nothing_changed_where_all_stands_as_it_was_seen(stood: dict[str, str]) -> None:
    assert changes(stood, dict(stood), [PASS, TIMEOUT]) == []
    assert changes(stood, {PASS: stood[PASS]}, [PASS, TIMEOUT]) == [f"{TIMEOUT} was {stood[TIMEOUT]} and is not asked"]


STEPS = st.lists(
    st.sampled_from(["bad", "good", "unknown", "none", "answer", "lift", "demote", "import"]), min_size=4, max_size=14
)


def step(word: str, found: Scene, at: datetime.datetime) -> None:
    notice = FallNotice.objects.select_related("repository__platform").order_by("-pk").first()
    repository = found.fresh()
    if word in ("bad", "good", "unknown") and repository.level == 3:
        night(repository, at, (PASS,) if word == "bad" else (), unknown=(PASS,) if word == "unknown" else ())
    if word == "import":
        listed({NAME: 5 - repository.level}, now=at)
    if notice is None:
        return
    given_words: dict[str, Any] = {"notice": notice, "now": at}
    if word == "answer":
        answer_notice(text="we look at it", by=found.zoe, **given_words)
    if word == "lift":
        lift_notice(reason="so", by=found.ada, **given_words)
    if word == "demote":
        seen = repository.evaluations.filter(use=Use.STAY, level=3).latest("day").day
        demote(reason="so", by=found.ada, expected_level=repository.level, seen_night=seen, **given_words)


@pytest.mark.django_db
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_happens_a_level_falls_only_by_a_decision_on_an_open_notice(steps: list[str]) -> None:
    with transaction.atomic():
        found = scene()
        begin = now() - 38 * DAY
        for number, word in enumerate(steps):
            at = begin + number * 3 * DAY
            before = found.fresh().level
            was_open = FallNotice.objects.filter(state="open", deadline_at__lte=at).exists()
            refused = ""
            try:
                step(word, found, at)
            except Problem as problem:
                refused = problem.code
            fell = found.fresh().level < before
            assert not fell or word == "import" or (word == "demote" and was_open and not refused)
            level = found.fresh().level
            follow_nights(now=at + datetime.timedelta(hours=1))
            assert found.fresh().level == level
            opened = FallNotice.objects.filter(state="open")
            assert opened.count() <= 1
            assert all(one.level == level for one in opened)
        demoted = FallNotice.objects.filter(state="demoted")
        assert WayBack.objects.count() == demoted.count()
        assert all(one.ended_at is not None and one.ended_at >= one.deadline_at for one in demoted)
        assert LevelInterval.objects.filter(ended_at=None).count() == 1
        transaction.set_rollback(True)
