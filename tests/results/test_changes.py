"""The table of changes: total, disjoint, and what it says."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from apps.results.changes import ABSENT, MEANINGS, SIDE_OF, TABLE, Change, Columns, Side, compare
from apps.results.formats.cases import Outcome

REPORTS = st.dictionaries(st.integers(1, 30), st.sampled_from(list(Outcome)))


def columns(outcomes: dict[int, Outcome]) -> Columns:
    return Columns.of(np.array(list(outcomes), np.int64), np.array(list(outcomes.values()), np.int8))


def test_every_pair_of_sides_is_one_change_and_every_change_happens() -> None:
    pairs = {(before, after) for before in Side for after in Side} - {(Side.ABSENT, Side.ABSENT)}
    assert set(TABLE) == pairs
    assert set(TABLE.values()) == set(Change) == set(MEANINGS)
    assert set(SIDE_OF) == {*Outcome, ABSENT}


def test_what_is_red_now_is_newly_or_still_red_and_what_was_red_is_never_lost() -> None:
    assert {change for (_, after), change in TABLE.items() if after is Side.RED} == {
        Change.NEWLY_RED,
        Change.STILL_RED,
    }
    assert {after: change for (before, after), change in TABLE.items() if before is Side.RED} == {
        Side.GREEN: Change.FIXED,
        Side.RED: Change.STILL_RED,
        Side.FLAKY: Change.NEWLY_FLAKY,
        Side.SKIPPED: Change.SILENCED,
        Side.UNKNOWN: Change.UNCLEAR,
        Side.ABSENT: Change.SILENCED,
    }


@given(REPORTS, REPORTS)
def test_changes_are_what_the_table_says_and_sum_to_the_union(
    before: dict[int, Outcome], after: dict[int, Outcome]
) -> None:
    found = compare(columns(before), columns(after))
    union = sorted(set(before) | set(after))
    expected = [TABLE[SIDE_OF[before.get(test, ABSENT)], SIDE_OF[after.get(test, ABSENT)]] for test in union]
    assert found.test.tolist() == union
    assert found.counts == {change.value: expected.count(change) for change in Change}
    assert sum(tests for *_, tests in found.cells) == sum(found.counts.values()) == len(union)
    for change in Change:
        assert [union[at] for at in found.rows(change.value)] == [
            test for test, is_so in zip(union, expected, strict=True) if is_so is change
        ]


def test_rows_are_listed_by_urgency_without_what_is_as_it_was() -> None:
    before = {1: Outcome.PASSED, 2: Outcome.FAILED, 3: Outcome.SKIPPED, 4: Outcome.PASSED, 5: Outcome.SKIPPED}
    after = {1: Outcome.PASSED, 2: Outcome.PASSED, 3: Outcome.SKIPPED, 4: Outcome.LOST, 6: Outcome.PASSED}
    found = compare(columns(before), columns(after))
    assert found.test[found.rows()].tolist() == [4, 5, 2, 6]
    assert found.cells == [
        ("passed", "passed", Change.UNCHANGED, 1),
        ("passed", "lost", Change.NEWLY_RED, 1),
        ("failed", "passed", Change.FIXED, 1),
        ("skipped", "skipped", Change.STILL_SKIPPED, 1),
        ("skipped", "not there", Change.DISAPPEARED, 1),
        ("not there", "passed", Change.APPEARED, 1),
    ]
