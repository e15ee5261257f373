"""Check runs of a repository that blocks carry what the gate says of its part."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest

from apps.accounts.policy import Role
from apps.checks import services
from apps.checks.carried import carrying
from apps.checks.enums import CheckStatus
from apps.checks.models import Check
from apps.checks.policy import Wanted
from apps.core import alarms
from apps.core.clock import now
from apps.core.models import Alarm
from apps.gate import breaking
from apps.gate.enums import Effect, Kind
from apps.gate.models import BreakerTrip
from apps.gate.overriding import grant_override
from apps.gate.policy import Requirement
from apps.gate.selectors import PartTold
from apps.platforms.models import Repository
from apps.simulator.standin import GitHubStandIn
from tests.checks.field import BUILD, KESTREL, NUMBER, Upstream, seconds_later, settle, shown
from tests.factories.listing import user
from tests.factories.policies import policy_in_force
from tests.relay.downstream import Downstream

AtLevel = Callable[[int], Downstream]
TEST = f"crcr/{KESTREL}/CI/test"


def part(kind: Kind, effect: Effect, outcome: str = "") -> PartTold:
    return PartTold(effect, (Requirement(kind, effect, KESTREL, 4, "What it says.", outcome=outcome),))


def wanted(conclusion: str) -> Wanted:
    status = CheckStatus.COMPLETED if conclusion else CheckStatus.IN_PROGRESS
    return Wanted(1, 7, "9", 1, status, conclusion, "Its own", "**Its own.**")


@pytest.mark.parametrize(
    ("own", "told", "expected"),
    [
        ("success", part(Kind.SATISFIED, Effect.PASSES), "success"),
        ("failure", part(Kind.QUARANTINED, Effect.PASSES), "success"),
        ("failure", part(Kind.UNSATISFIED, Effect.BLOCKS), "failure"),
        ("timed_out", part(Kind.ERRORED, Effect.BLOCKS, "timed_out"), "timed_out"),
        ("success", part(Kind.UNSATISFIED, Effect.BLOCKS), "failure"),
        ("", part(Kind.UNSATISFIED, Effect.BLOCKS), "failure"),
        ("success", part(Kind.PENDING, Effect.WAITS, "running"), ""),
        ("failure", part(Kind.PENDING, Effect.WAITS, "no_tests_named"), "failure"),
        ("", part(Kind.MISSING, Effect.PASSES, "running"), "neutral"),
        ("cancelled", part(Kind.ERRORED, Effect.PASSES, "cancelled"), "neutral"),
        ("failure", part(Kind.OVERRIDDEN, Effect.PASSES), "neutral"),
        ("", part(Kind.INFORMATIONAL, Effect.PASSES), "neutral"),
        ("success", part(Kind.ERRORED, Effect.UNKNOWN), "neutral"),
    ],
)
def test_what_a_check_run_says_of_its_repositorys_part(own: str, told: PartTold, expected: str) -> None:
    found = carrying(wanted(own), told)
    assert (found.conclusion, found.status) == (expected, "completed" if expected else "in_progress")
    assert found.title == ("Its own" if own == expected else "What it says.")


@pytest.mark.django_db
def test_a_success_waits_for_the_other_jobs_of_its_repository(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel, job_name="test", check_run_id="2")
    upstream.says(kestrel, "success")
    assert [(name, state) for name, state, _ in shown(github)] == [(TEST, "in_progress"), (BUILD, "in_progress")]
    upstream.says(kestrel, "success", job_name="test", check_run_id="2")
    assert [(name, state) for name, state, _ in shown(github)] == [(TEST, "success"), (BUILD, "success")]


@pytest.mark.django_db
def test_what_never_came_ends_under_the_names_that_it_bore_last(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    """Else a check that upstream requires, of a vendor that is away, freezes every merge."""
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel, "success")
    upstream.says(kestrel, "success", job_name="test", check_run_id="2")
    silent = "ab" * 20
    upstream.tells("synchronize", head_sha=silent)
    waiting = seconds_later(5 * 3600)
    assert services.look_at_commit(head_sha=silent, now=waiting) == 0
    over = seconds_later(6.1 * 3600)
    assert [services.look_at_commit(head_sha=silent, now=over) for _ in range(2)] == [2, 0]
    Check.objects.filter(head_sha=silent).update(next_attempt_at=now())  # as if those hours were over
    settle()
    said = [run for run in github.check_runs if run["head_sha"] == silent]
    assert [(run["name"], run["conclusion"]) for run in said] == [(BUILD, "neutral"), (TEST, "neutral")]
    assert "No job of it was heard for this commit" in said[0]["output"]["title"]
    # A job that comes after all says so itself.
    upstream.says(kestrel, "success")
    newest = [run for run in github.check_runs if (run["head_sha"], run["name"]) == (silent, BUILD)][-1]
    assert newest["conclusion"] == "success"


@pytest.mark.django_db
def test_an_override_makes_it_neutral_with_an_alarm(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    alarms.forget()
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel, "timed_out")
    assert [state for _, state, _ in shown(github)] == ["timed_out"]
    grant_override(
        pr_number=NUMBER,
        repository=Repository.objects.get(full_name=KESTREL),
        reason="The runner burns.",
        until=now() + datetime.timedelta(hours=2),
        by=user(Role.MAINTAINER),
        now=now(),
    )
    settle()
    ((name, state, title),) = shown(github)
    assert (name, state) == (BUILD, "neutral")
    assert str(title).startswith("Overridden by ")
    assert Alarm.objects.filter(kind="gate_neutral", key=KESTREL).exists()


@pytest.mark.django_db
def test_an_open_breaker_supersedes_what_failed_and_what_runs(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    limits: dict[str, Any] = {"breaker_timeouts": 1}
    policy_in_force(now(), limits=limits)
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel, "timed_out")
    upstream.says(kestrel, job_name="test", check_run_id="2")
    assert breaking.sweep(now=now()) == 1
    settle()
    assert [(name, state) for name, state, _ in shown(github)] == [(BUILD, "neutral"), (TEST, "neutral")]
    trip = BreakerTrip.objects.get()
    breaking.close_breaker(trip=trip, reason="Fixed.", by=user(Role.MAINTAINER), now=now())
    settle()
    assert {state for name, state, _ in shown(github) if name == BUILD} == {"timed_out"}
