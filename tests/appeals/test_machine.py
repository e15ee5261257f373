"""Verbs of vendors, deciders and strangers in any order: what holds whatever happens."""

import datetime
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.appeals.enums import Outcome
from apps.appeals.models import Appeal, AppealedRow
from apps.audit.models import Event
from apps.core.errors import Problem
from apps.results.models import SetAside
from tests.appeals.field import HOUR, NOW, Field
from tests.factories.listing import user

REFUSALS = {"not_permitted", "recusal", "already_appealed", "malformed"} | {
    f"appeal_{why}" for why in ("stale", "paused", "overdue")
}
people = st.sampled_from(["zoe", "zoe", "ada", "ada", "zack", "stranger"])
numbers = st.integers(0, 1_000)


class Appeals(RuleBasedStateMachine):
    """zoe speaks for the platform, ada decides; zack is both, and so decides nothing."""

    @initialize()
    def begin(self) -> None:
        self.savepoint = transaction.savepoint()
        self.field = Field.make()
        zack = user(Role.MAINTAINER, username="zack")
        self.field.platform.memberships.create(user=zack, joined_at=NOW)
        self.people: dict[str, User] = {
            "zoe": self.field.zoe,
            "ada": self.field.ada,
            "zack": zack,
            "stranger": user(username="stranger"),
        }
        self.now = NOW
        self.made: list[Appeal] = []
        self.done: dict[int, list[Any]] = {}

    def teardown(self) -> None:
        if hasattr(self, "savepoint"):
            transaction.savepoint_rollback(self.savepoint)

    def attempts(self, act: Any, *args: Any, **values: Any) -> bool:
        self.now += HOUR
        events = Event.objects.count()
        result: Any = None
        try:
            with transaction.atomic():
                result = act(*args, at=self.now, **values)
        except Problem as problem:
            refusal = problem.code
        else:
            refusal = ""
        if refusal:
            assert (refusal in REFUSALS, Event.objects.count()) == (True, events)
            return False
        assert Event.objects.count() == events + 1
        if act == self.field.contests:
            self.made.append(result)
        return True

    def one(self, number: int) -> Appeal | None:
        if not self.made:
            return None
        return Appeal.objects.select_related("platform", "repository").get(pk=self.made[number % len(self.made)].pk)

    @rule(who=people, rows=st.sets(st.integers(0, 3), min_size=1))
    def contest(self, who: str, rows: set[int]) -> None:
        named = [self.field.red[row] for row in rows]
        held = AppealedRow.objects.filter(job__in=named, is_freed=False).exists()
        held |= any(AppealedRow.objects.filter(job=one, is_freed=True).count() == 2 for one in named)
        went = self.attempts(self.field.contests, *(self.field.red[row] for row in rows), by=self.people[who])
        assert went == (who in ("zoe", "zack") and not held)

    @rule(who=people, which=numbers, days=st.integers(0, 6), is_late=st.booleans())
    def pause(self, who: str, which: int, days: int, is_late: bool) -> None:
        if (appeal := self.one(which)) is None:
            return
        may = who != "stranger" and 1 <= days <= 5 and appeal.state == "open" and appeal.paused_at is None
        before = appeal.deadline_at
        revision = appeal.revision - is_late
        went = self.attempts(self.field.pauses, appeal, days, by=self.people[who], revision=revision)
        assert went == (may and not is_late)
        if went:
            assert appeal.deadline_at - before >= datetime.timedelta(days=days)

    @rule(who=people, which=numbers)
    def withdraw(self, who: str, which: int) -> None:
        if (appeal := self.one(which)) is None:
            return
        may = who in ("zoe", "zack") and appeal.state == "open"
        assert self.attempts(self.field.withdraws, appeal, by=self.people[who]) == may

    @rule(who=people, which=numbers, outcome=st.sampled_from(Outcome), rows=st.integers(0, 4), is_late=st.booleans())
    def decide(self, who: str, which: int, outcome: Outcome, rows: int, is_late: bool) -> None:
        if (appeal := self.one(which)) is None:
            return
        jobs = [row.job for row in appeal.rows.select_related("job").order_by("pk")]
        named = jobs[:rows]
        fits = 0 < len(named) < len(jobs) if outcome is Outcome.AMEND else not named
        revision = appeal.revision - is_late
        may = who == "ada" and appeal.state == "open" and fits and not is_late
        assert self.attempts(self.field.decides, appeal, outcome, *named, by=self.people[who], revision=revision) == may

    @invariant()
    def each_row_stands_in_one_appeal(self) -> None:
        if hasattr(self, "field"):
            held = list(AppealedRow.objects.filter(is_freed=False).values_list("job", flat=True))
            assert len(held) == len(set(held))

    @invariant()
    def what_stands_aside_is_what_was_accepted(self) -> None:
        if hasattr(self, "field"):
            accepted = AppealedRow.objects.filter(is_accepted=True)
            assert set(SetAside.objects.values_list("job", flat=True)) == set(accepted.values_list("job", flat=True))
            assert set(accepted.values_list("appeal__state", flat=True)) <= {"amended", "overturned"}

    @invariant()
    def what_is_over_stays_as_it_was(self) -> None:
        if hasattr(self, "field"):
            over = Appeal.objects.exclude(state="open")
            for pk, *rest in over.values_list("pk", "state", "decided_at", "decided_by", "reason", "deadline_at"):
                assert self.done.setdefault(pk, rest) == rest


@pytest.mark.django_db
def test_verbs_in_any_order() -> None:
    run_state_machine_as_test(
        Appeals,
        settings=settings(
            max_examples=15,
            stateful_step_count=20,
            deadline=None,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
