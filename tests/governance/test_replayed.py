"""What a replay and the breaker's trips say for L4, through evaluation."""

import datetime

from apps.gate.models import BreakerTrip
from apps.governance.nights import evaluations_of
from apps.platforms.models import Repository
from apps.policies.policy import Use
from tests.gate.conftest import gate_field
from tests.gate.field import FEN, KESTREL, NUMBER, PLACE, Field, hours, main_sha

__all__ = ["gate_field"]
NOW = hours(48)


def found(full_name: str, use: Use, measure: str, now: datetime.datetime = NOW) -> tuple[str, str]:
    """Verdict and sentence of one criterion."""
    repository = Repository.objects.get(full_name=full_name)
    (one,) = (one for one in evaluations_of([repository], now=now)[repository.pk] if (one.level, one.use) == (4, use))
    (result,) = (result for result in one.results if result.criterion.measure == measure)
    return result.verdict.value, result.sentence


def test_who_would_have_blocked_wrongly_does_not_rise_to_l4(gate_field: Field) -> None:
    fen = gate_field.fen
    assert found(FEN, Use.RISE, "wrongly_blocked_rate") == (
        "no result",
        "Wrongly blocked pull requests: no pull request of which it is known in 14 days.",
    )
    gate_field.reports({}, repository=fen, sha=main_sha(PLACE), at=-1)
    gate_field.sends(fen)
    failed = gate_field.fails({"test_a": "boom"}, repository=fen)
    assert found(FEN, Use.RISE, "wrongly_blocked_rate") == (
        "met",
        "Wrongly blocked pull requests 0 %, asked <= 1 %, over 1 pull requests.",
    )
    gate_field.says("success", repository=fen, at=3, run_id=failed.run_id, run_attempt=2)
    assert found(FEN, Use.RISE, "wrongly_blocked_rate") == (
        "not met",
        "Wrongly blocked pull requests 100 %, asked <= 1 %, over 1 pull requests.",
    )


def test_who_blocked_wrongly_does_not_stay_at_l4(gate_field: Field) -> None:
    gate_field.reports({}, sha=main_sha(PLACE), at=-1)
    gate_field.sends()
    failed = gate_field.fails({"test_a": "boom"}, number=NUMBER)
    gate_field.says("success", at=3, run_id=failed.run_id, run_attempt=2)
    assert found(KESTREL, Use.STAY, "wrongly_blocked_rate")[0] == "not met"


def test_trips_of_the_breaker_are_counted_by_day(gate_field: Field) -> None:
    def trip(days_ago: int, number: int) -> None:
        at = NOW - datetime.timedelta(days=days_ago)
        closed = {"closed_at": at, "closed_by": "evidence", "closed_why": "passed"}
        BreakerTrip.objects.create(
            repository=gate_field.kestrel,
            kind="timeouts",
            why="slow",
            policy_number=0,
            opened_at=at,
            event_seq=number,
            **closed,
        )

    for days_ago, number in ((1, 1), (1, 2), (31, 3)):
        trip(days_ago, number)
    assert found(KESTREL, Use.STAY, "breaker_trips") == (
        "met",
        "Trips of the breaker 2, asked <= 2, over 2 trips.",
    )
    trip(2, 4)
    assert found(KESTREL, Use.STAY, "breaker_trips")[0] == "not met"
