"""Verbs of members, maintainers, strangers and the hub in any order, at any time: what holds whatever happens."""

import datetime
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.core.errors import Problem
from apps.platforms.models import Platform
from apps.quarantine import services, verbs
from apps.quarantine.enums import ReasonClass, Source, State, Verb
from apps.quarantine.models import Member, Quarantine
from apps.quarantine.policy import EFFECTIVE, HUB, OPEN, TRANSITIONS, verbs_in
from apps.quarantine.rules import put_rules_in_force
from apps.results.exclusions import excluded, fits
from apps.results.models import Exclusion, Report, Test
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.tests import catalogued

NOW = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
HOUR, DAY = datetime.timedelta(hours=1), datetime.timedelta(days=1)
# Little room, so that it is used up.
RULES = replace(HUB, cap_least=3, budget_days=35)
BUDGET = RULES.cap_least * RULES.budget_days
WINDOW = datetime.timedelta(hours=RULES.budget_window)
EXPIRY = datetime.timedelta(hours=RULES.expiry)
VARIANTS = ("default", "slow")
PATTERN = "test_x.py::TestX::test_*"
PEOPLE = ("maintainer", "kestrel", "osprey", "stranger")
ENDS = (Verb.EXPIRE, Verb.VANISH, Verb.BREAK)
DECIDING = (Verb.NAME_PLATFORM, Verb.KEEP, Verb.RELEASE)
REFUSALS = {
    *("not_permitted", "quarantine_state", "quarantine_open", "quarantine_cap", "quarantine_budget"),
    *("quarantine_renewed", "quarantine_over", "malformed"),
}

people = st.sampled_from([*PEOPLE, "kestrel", "kestrel", "maintainer"])
variants = st.sampled_from(("default", "default", "slow"))
tests = st.sets(st.integers(0, 4), min_size=1, max_size=3)
# How long after the last, who, to which record, what (None: what may be done), until when, seen late, where.
deeds = st.tuples(
    st.sampled_from([0, 0, 0, 0, 1, 24, 24 * 31]),
    people,
    st.integers(0, 1_000),
    st.sampled_from([None, None, None, *verbs.OFFERS]),
    st.sampled_from([None, None, None, None, 1, 10, 40, -1]),
    st.sampled_from([False] * 7 + [True]),
    st.integers(0, 1),
)


@dataclass
class Span:
    """A time in which one quarantine is to have effect. `tests` is how much of the budget it takes."""

    quarantine: int
    scope: frozenset[int] | str
    tests: int
    platform: int
    variant: str
    begins: datetime.datetime
    ends: datetime.datetime

    def used(self, since: datetime.datetime, until: datetime.datetime) -> float:
        return max(0.0, (min(self.ends, until) - max(self.begins, since)) / DAY) * self.tests


class Life(RuleBasedStateMachine):
    """Two platforms. What it remembers is the effect that answers promised."""

    def __init__(self, tests: list[Test]) -> None:
        super().__init__()
        self.tests = tests

    @initialize()
    def begin(self) -> None:
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        repositories = listed({"kestrel/torch-kestrel": 2, "osprey/torch-osprey": 1})
        self.platforms: list[Platform] = [repository.platform for repository in repositories.values()]
        self.repositories = list(repositories.values())
        self.users = {
            "maintainer": user(Role.MAINTAINER),
            "kestrel": member_of(self.platforms[0]),
            "osprey": member_of(self.platforms[1]),
            "stranger": user(),
        }
        put_rules_in_force(values=asdict(RULES), from_at=NOW, reason="little room", actor=TESTS, now=NOW)
        self.now = NOW
        self.spans: list[Span] = []
        for number in range(3):
            self.propose("kestrel", 0, "default", {number}, 0)

    def teardown(self) -> None:
        if hasattr(self, "atomic"):
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)

    # --- who does what, and when ----------------------------------------------------------------------------------

    @rule(hours=st.sampled_from([0, 1, 24, 24 * 7, 24 * 29, 24 * 31]))
    def pass_time(self, hours: int) -> None:
        self.now += HOUR * hours

    @rule(
        who=people,
        where=st.sampled_from([0, 0, 1]),
        variant=variants,
        numbers=tests,
        is_pattern=st.sampled_from([0, 0, 0, 1]),
    )
    def propose(self, who: str, where: int, variant: str, numbers: set[int], is_pattern: int) -> None:
        said = self._said(variant, numbers) if not is_pattern else self._said(variant, set()) | {"pattern": PATTERN}
        platform = self.platforms[where]
        before = self._rows()
        try:
            made = verbs.propose(platform=platform, said=said, user=self.users[who], now=self.now)
        except Problem as problem:
            self._unchanged(before, problem.code, "quarantine_open" if self._may(who, platform) else "not_permitted")
        else:
            assert self._may(who, platform)
            assert (made.state, made.source) == (State.PROPOSED, "maintainer" if who == "maintainer" else "vendor")
            self._changed(before, made, "quarantine.proposed")

    @rule(numbers=tests, where=st.sampled_from([None, 0, 1]))
    def the_hub_proposes(self, numbers: set[int], where: int | None) -> None:
        platform = None if where is None else self.platforms[where]
        before = self._rows()
        try:
            made = services.propose(
                platform=platform, source=Source.HUB, actor=TESTS, now=self.now, **self._said("default", numbers)
            )
        except Problem as problem:
            self._unchanged(before, problem.code, "quarantine_open")
        else:
            self._changed(before, made, "quarantine.proposed")

    @rule(deeds=st.lists(deeds, min_size=1, max_size=8))
    def act(self, deeds: list[tuple[Any, ...]]) -> None:
        for hours, *deed in deeds:
            self.now += HOUR * hours
            self._act(*deed)

    def _act(self, who: str, which: int, verb: Verb | None, days: int | None, is_stale: bool, where: int) -> None:
        made = self._one(which)
        if made is None:
            return
        possible = [one for one in verbs_in(State(made.state)) if one in verbs.OFFERS]
        verb = verb or (possible or [Verb.RENEW])[which // 7 % max(len(possible), 1)]
        said: dict[str, Any] = {"reason": "so it is", "platform": self.platforms[where], "unproven": True}
        if days is not None:
            said["expires_at"] = self.now + DAY * days
        before = self._rows()
        revision = made.revision - is_stale
        try:
            moved = verbs.perform(
                verb, quarantine=made, revision=revision, said=said, user=self.users[who], now=self.now
            )
        except Problem as problem:
            self._refused(problem, made, verb, who, is_stale)
            assert self._rows() == before
        else:
            assert not is_stale
            assert self._may(who, made.platform, decides=verb in DECIDING)
            self._moved(before, made, moved, verb)
            if who != "maintainer" and verb in (Verb.PUT_IN_FORCE, Verb.RENEW):
                self._stays_within(moved)

    @rule(which=st.integers(0, 1_000), verb=st.sampled_from(ENDS))
    def end(self, which: int, verb: Verb) -> None:
        made = self._one(which)
        if made is None:
            return
        before = self._rows()
        try:
            moved = services.end(quarantine=made, verb=verb, reason="by its rules", actor=TESTS, now=self.now)
        except Problem as problem:
            self._unchanged(before, problem.code, "quarantine_state")
            assert (made.state, verb) not in TRANSITIONS
        else:
            self._moved(before, made, moved, verb)

    # --- what each step must have done ----------------------------------------------------------------------------

    def _unchanged(self, before: dict[str, Any], code: str, expected: str) -> None:
        assert code == expected
        assert self._rows() == before

    def _refused(self, problem: Problem, made: Quarantine, verb: Verb, who: str, is_stale: bool) -> None:
        if not self._may(who, made.platform, decides=False):
            assert problem.code == "not_permitted"
        elif (made.state, verb) not in TRANSITIONS:
            code = "quarantine_stale" if is_stale else "quarantine_state"
            assert problem.code in (code, "malformed" if verb == Verb.PUT_IN_FORCE else code)
        elif not self._may(who, made.platform, decides=verb in DECIDING):
            assert problem.code == "not_permitted"
        elif not is_stale:
            assert problem.code in REFUSALS - {"not_permitted"}
            if who == "maintainer":
                assert problem.code not in ("quarantine_cap", "quarantine_budget")

    def _moved(self, before: dict[str, Any], made: Quarantine, moved: Quarantine, verb: Verb) -> None:
        assert moved.state == TRANSITIONS[State(made.state), verb]
        assert moved.revision == made.revision + 1
        self._changed(before, moved, str(services.ACTIONS[verb]))
        if verb == Verb.PUT_IN_FORCE:
            assert moved.platform_id is not None
            assert moved.effective_from is not None
            assert moved.expires_at is not None
            held = Member.objects.filter(quarantine=moved).values_list("test_id", flat=True)
            scope = moved.pattern or frozenset(held)
            span = Span(moved.pk, scope, moved.tests, moved.platform_id, moved.variant, self.now, moved.expires_at)
            self.spans.append(span)
            assert moved.expires_at <= self.now + EXPIRY
        elif verb == Verb.RENEW:
            span = self._span(moved)
            assert self.now < span.ends
            span.ends += EXPIRY
        elif made.state in EFFECTIVE and moved.state not in EFFECTIVE:
            span = self._span(moved)
            span.ends = min(span.ends, self.now)

    def _changed(self, before: dict[str, Any], made: Quarantine, action: str) -> None:
        """One record and one event, whatever it was."""
        after = self._rows()
        assert {pk for pk, row in after["quarantines"].items() if before["quarantines"].get(pk) != row} == {made.pk}
        assert after["events"] == before["events"] + 1
        event = Event.objects.order_by("-seq")[0]
        assert (event.action, event.subject_id) == (action, str(made.public_id))
        assert event.is_decision == (made.platform_id == self.platforms[0].pk)

    def _stays_within(self, moved: Quarantine) -> None:
        """No more at once than the cap, and in no window more than the budget: not now, and not if all ends as said."""
        spans = [span for span in self.spans if (span.platform, span.variant) == (moved.platform_id, moved.variant)]
        assert Member.objects.filter(
            platform=moved.platform, variant=moved.variant, is_open=True, quarantine__state__in=EFFECTIVE
        ).count() <= (RULES.cap_least if moved.renewals == 0 else len(self.tests))
        for until in {self.now, *(span.ends for span in spans if span.ends > self.now)}:
            assert sum(span.used(until - WINDOW, until) for span in spans) <= BUDGET + 1e-6

    # --- what holds at any time -----------------------------------------------------------------------------------

    @invariant()
    def a_test_stands_in_one_open_quarantine(self) -> None:
        members = Member.objects.select_related("quarantine")
        for member in members:
            of = member.quarantine
            assert (member.platform_id, member.variant) == (of.platform_id, of.variant)
            assert member.is_open == (of.state in OPEN)
        taken = Counter(
            (one.platform_id, one.variant, one.test_id) for one in members if one.is_open and one.platform_id
        )
        assert set(taken.values()) <= {1}

    @invariant()
    def exclusions_are_what_was_promised(self) -> None:
        promised = Counter[Any]()
        for span in self.spans:
            if span.begins < span.ends:
                scopes = [span.scope] if isinstance(span.scope, str) else sorted(span.scope)
                promised.update((span.quarantine, scope, span.begins, span.ends) for scope in scopes)
        keys = {str(key): pk for pk, key in Quarantine.objects.values_list("pk", "public_id")}
        assert promised == Counter(
            (keys[one.source_id], one.pattern or one.test_id, one.from_at, one.until_at)
            for one in Exclusion.objects.all()
        )

    @invariant()
    def red_is_listed_apart_exactly_while_one_is_effective(self) -> None:
        for repository in self.repositories:
            for variant in VARIANTS:
                report = Report(repository=repository, variant=variant, received_at=self.now)
                wanted = set()
                for one in Quarantine.objects.filter(
                    platform=repository.platform,
                    variant=variant,
                    state__in=EFFECTIVE,
                    effective_from__lte=self.now,
                    expires_at__gt=self.now,
                ):
                    wanted |= set(one.members.values_list("test_id", flat=True))
                    wanted |= {test.pk for test in self.tests if one.pattern and fits(one.pattern, test)}
                assert set(excluded(report, self.tests)) == wanted

    # --- small parts ----------------------------------------------------------------------------------------------

    def _said(self, variant: str, numbers: set[int]) -> dict[str, Any]:
        return {
            "variant": variant,
            "tests": [self.tests[number].pk for number in numbers],
            "reason_class": ReasonClass.TIMING,
            "reason": "it races",
            "owner": "ada",
        }

    def _may(self, who: str, platform: Platform | None, decides: bool = False) -> bool:
        if who == "maintainer":
            return True
        own = {"kestrel": self.platforms[0], "osprey": self.platforms[1]}.get(who)
        return not decides and own is not None and own == platform

    def _one(self, which: int) -> Quarantine | None:
        known = list(Quarantine.objects.select_related("platform").order_by("pk"))
        return known[which % len(known)] if known else None

    def _span(self, moved: Quarantine) -> Span:
        return [span for span in self.spans if span.quarantine == moved.pk][-1]

    def _rows(self) -> dict[str, Any]:
        return {
            "quarantines": {row["id"]: row for row in Quarantine.objects.values()},
            "members": list(Member.objects.order_by("pk").values()),
            "exclusions": list(Exclusion.objects.order_by("pk").values()),
            "events": Event.objects.count(),
        }


@pytest.mark.django_db
def test_whatever_is_done_in_whatever_order() -> None:
    known = [catalogued(f"test_{number}") for number in range(5)]
    run_state_machine_as_test(
        lambda: Life(known),  # type: ignore[arg-type]
        settings=settings(
            max_examples=15,
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.reuse, Phase.generate],
        ),
    )
