"""What ships, and which policies are refused: rows, thresholds, contradictions."""

import copy
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.policies.policy import (
    CRITERIA,
    HANDLING,
    NUMBERS,
    SHIPPED,
    Comparison,
    Contradiction,
    Criterion,
    Difference,
    Use,
    differences,
    read,
    shown,
    written,
)


def test_what_ships_contradicts_nothing_and_is_read_as_it_is_written() -> None:
    assert read(written(SHIPPED)) == SHIPPED


def test_what_ships_asks_for_the_fields_own_numbers() -> None:
    rows = {row.key: (row.asks, row.window_days, row.source) for row in CRITERIA if row.level == 3}
    assert rows == {
        "L3.rise.tenure_days": (">= 30 days", 0, "RFC-0050"),
        "L3.rise.data_days": (">= 14 days", 30, "RFC-0050"),
        "L3.rise.e2e_seconds_p50": ("< 3 h", 14, "RFC-0050"),
        "L3.rise.overrun_rate": ("< 1 %", 14, "RFC-0050"),
        "L3.rise.avg_queue_seconds": ("< 30 min", 14, "RFC-0050"),
        "L3.rise.timeout_rate": ("< 1 %", 14, "RFC-0050"),
        "L3.rise.pass_rate": (">= 90 %", 14, "RFC-0050"),
        "L3.rise.answer_rate": (">= 95 %", 14, "AccelHub"),
        "L3.rise.runs": (">= 20", 14, "AccelHub"),
        "L3.stay.pass_rate": (">= 88 %", 7, "AccelHub"),
        "L3.stay.timeout_rate": ("< 1.5 %", 7, "AccelHub"),
        "L3.stay.e2e_seconds_p50": ("< 3 h 15 min", 7, "AccelHub"),
        "L3.stay.answer_rate": (">= 92 %", 7, "AccelHub"),
        "L3.stay.silent_days": ("< 7 days", 0, "AccelHub"),
    }


def test_exactly_one_percent_is_not_less_than_one_percent() -> None:
    row = next(row for row in CRITERIA if row.key == "L3.rise.overrun_rate")
    assert [row.is_met(Fraction(part, 1_000)) for part in (9, 10, 11)] == [True, False, False]


def test_no_value_meets_evidence() -> None:
    row = next(row for row in CRITERIA if row.key == "L1.rise.hardware")
    assert row.asks == "shown by evidence"
    with pytest.raises(ValueError, match="evidence"):
        row.is_met(Fraction(1))


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (Fraction(9_333, 10_000), "share", "93.33 %"),
        (Fraction(8_130), "seconds", "2 h 15 min"),
        (Fraction(95), "seconds", "1 min 35 s"),
        (Fraction(0), "seconds", "0 s"),
        (Fraction(3, 2), "days", "1.5 days"),
        (Fraction(20), "count", "20"),
    ],
)
def test_values_are_shown_as_people_read_them(value: Fraction, unit: str, text: str) -> None:
    assert shown(value, unit) == text


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """What ships, with one thing changed."""
    values: Any = copy.deepcopy(written(SHIPPED))
    at = values
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return values


def place(key: str) -> int:
    return next(place for place, row in enumerate(CRITERIA) if row.key == key)


PASS, EVIDENCE, TENURE = place("L3.rise.pass_rate"), place("L1.rise.hardware"), place("L3.rise.tenure_days")
STAY, MATURE = place("L3.stay.pass_rate"), place("L4.rise.pass_rate")

REFUSED = [
    ([], "policy", "send an object of criteria, handling and limits."),
    (changed("criteria", to={}), "criteria", "send a list of rows."),
    (changed("criteria", PASS, to="pass"), f"criteria.{PASS}", "send an object of"),
    (changed("criteria", PASS, "level", to=5), f"criteria.{PASS}.level", "saw 5, send 1 to 4."),
    (changed("criteria", PASS, "level", to=True), f"criteria.{PASS}.level", "saw True"),
    (changed("criteria", PASS, "use", to="fall"), f"criteria.{PASS}.use", "send rise or stay."),
    (changed("criteria", PASS, "measure", to="luck"), f"criteria.{PASS}.measure", "saw 'luck'"),
    (changed("criteria", PASS, "source", to=""), f"criteria.{PASS}.source", "say who asks"),
    (changed("criteria", PASS, "comparison", to="~"), f"criteria.{PASS}.comparison", "saw '~'"),
    (changed("criteria", PASS, "window_days", to=0), f"criteria.{PASS}.window_days", "send 1 to 90 days."),
    (changed("criteria", PASS, "window_days", to=91), f"criteria.{PASS}.window_days", "saw 91"),
    (changed("criteria", TENURE, "window_days", to=7), f"criteria.{TENURE}.window_days", "as of now"),
    (changed("criteria", PASS, "threshold", to="90 %"), f"criteria.{PASS}.threshold", "0 to 1, as in 0.95."),
    (changed("criteria", PASS, "threshold", to="1.01"), f"criteria.{PASS}.threshold", "saw '1.01'"),
    (changed("criteria", PASS, "threshold", to="NaN"), f"criteria.{PASS}.threshold", "saw 'NaN'"),
    (changed("criteria", PASS, "threshold", to=0.9), f"criteria.{PASS}.threshold", "saw 0.9, send decimal text"),
    (changed("criteria", EVIDENCE, "threshold", to="1"), f"criteria.{EVIDENCE}", "hardware is shown by evidence"),
    (changed("handling", "missing", to="pass"), "handling.missing", "send act"),
    (changed("handling", to={}), "handling", "a row for each of missing"),
    (changed("handling", "missing", "hours", to=73), "handling.missing.hours", "send 1 to 72."),
    (changed("handling", "late", "hours", to=1), "handling.late.hours", "only wait has hours"),
    (changed("handling", "missing", "then", to="wait"), "handling.missing.then", "block or pass"),
    (changed("limits", to={"no_such": 1}), "limits", "a number for each of dwell_days"),
    (changed("limits", "approvals_l4", to=1), "limits.approvals_l4", "saw 1, send 2 to 5."),
    (changed("criteria", STAY, "threshold", to="0.91"), "L3.stay.pass_rate", "who rises would fall"),
    (changed("criteria", STAY, "comparison", to=">"), "L4.stay.pass_rate", "for >= 88 %, L3 for > 88 %"),
    (changed("criteria", MATURE, "threshold", to="0.89"), "L4.rise.pass_rate", "ask for no less"),
    (changed("criteria", place("L3.rise.timeout_rate"), "threshold", to="0"), "L3.rise.timeout_rate", "no value"),
]


@pytest.mark.parametrize(("values", "field", "says"), REFUSED, ids=range(len(REFUSED)))
def test_a_policy_that_is_wrong_or_contradicts_itself_is_refused_by_its_row(values: Any, field: str, says: str) -> None:
    with pytest.raises(Contradiction) as refused:
        read(values)
    assert refused.value.field == field
    assert says in refused.value.text


def test_a_version_that_is_older_than_a_limit_says_what_ships() -> None:
    values = written(SHIPPED)
    older = {name: number for name, number in values["limits"].items() if name != "breaker_repeat_days"}
    assert read(values | {"limits": older}).limits == SHIPPED.limits


def test_a_row_that_stands_twice_and_a_level_without_rows_are_refused() -> None:
    rows = written(SHIPPED)["criteria"]
    with pytest.raises(Contradiction, match=r"L3\.rise\.pass_rate: it stands there twice"):
        read(written(SHIPPED) | {"criteria": [*rows, rows[PASS]]})
    with pytest.raises(Contradiction, match=r"L2\.rise: it asks for nothing"):
        read(written(SHIPPED) | {"criteria": [row for row in rows if (row["level"], row["use"]) != (2, "rise")]})


def test_differences_are_named_row_for_row() -> None:
    values = changed("criteria", PASS, "threshold", to="0.9")
    assert differences(SHIPPED, read(values)) == []
    values = changed("criteria", PASS, "window_days", to=30)
    values["criteria"] = [row for row in values["criteria"] if row["measure"] != "oncalls"]
    values["handling"]["late"] = {"act": "pass", "hours": 0, "then": ""}
    values["limits"]["dwell_days"] = 5
    assert differences(SHIPPED, read(values)) == [
        Difference("L3.rise.pass_rate", ">= 90 %, over 14 days (RFC-0050)", ">= 90 %, over 30 days (RFC-0050)"),
        Difference("L4.rise.oncalls", ">= 2 (AccelHub)", ""),
        Difference("gate.late", "blocks", "passes, with a record"),
        Difference("limit.dwell_days", "3", "5"),
    ]


def around(share: str) -> list[int]:
    """The thousandths beside a share, and its own."""
    middle = round(float(share) * 1_000)
    return [max(middle - 1, 0), middle, min(middle + 1, 1_000)]


shares = st.integers(0, 1_000).map(lambda thousandths: f"{thousandths / 1_000:.3f}")


@given(rise=shares, stay=shares, rises=st.sampled_from(Comparison), stays=st.sampled_from(Comparison))
def test_who_may_rise_under_an_accepted_policy_may_stay(
    rise: str, stay: str, rises: Comparison, stays: Comparison
) -> None:
    values = changed("criteria", PASS, "threshold", to=rise)
    values["criteria"][PASS]["comparison"] = rises.value
    values["criteria"][STAY] |= {"threshold": stay, "comparison": stays.value}
    values["criteria"] = [
        row for row in values["criteria"] if not (row["level"] == 4 and row["measure"] == "pass_rate")
    ]
    try:
        policy = read(values)
    except Contradiction:
        return
    up, down = (next(row for row in policy.of(3, use) if row.measure == "pass_rate") for use in (Use.RISE, Use.STAY))
    for part in (0, 1, 999, 1_000, *around(rise), *around(stay)):
        assert not up.is_met(Fraction(part, 1_000)) or down.is_met(Fraction(part, 1_000))


def test_every_outcome_and_limit_that_ships_has_its_row() -> None:
    assert {name: one.asks for name, one in HANDLING.items()} == {
        "missing": "waits 6 h, then passes, with a record",
        "running": "waits 6 h, then passes, with a record",
        "timed_out": "blocks",
        "cancelled": "waits 6 h, then passes, with a record",
        "neutral": "passes, with a record",
        "contradicted": "passes, with a record",
        "unexpected": "blocks",
        "no_tests_named": "waits 1 h, then blocks",
        "base_unknown": "blocks",
        "late": "blocks",
        "undispatched": "waits 6 h, then passes, with a record",
    }
    assert (NUMBERS["approvals_l3"], NUMBERS["approvals_l4"], NUMBERS["dwell_days"]) == (1, 2, 3)


def test_a_criterion_names_itself_by_level_use_and_measure() -> None:
    assert Criterion(3, Use.RISE, "runs", Comparison.AT_LEAST, "20", 14).key == "L3.rise.runs"
