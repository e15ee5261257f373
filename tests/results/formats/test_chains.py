"""What several attempts of one test come to."""

import itertools
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.results.formats.cases import RED, Case, Outcome
from apps.results.formats.chains import CHAINS, TEARDOWN, WORST_FIRST, Chain, settle

GREEN_AGAIN = (Outcome.PASSED, Outcome.FLAKY)

outcomes = st.sampled_from(Outcome)
cases = st.builds(
    Case,
    file=st.just("f"),
    class_name=st.sampled_from("CD"),
    name=st.sampled_from("xyz"),
    outcome=outcomes,
    seconds=st.sampled_from([None, 0.5, 2.0]),
    message=st.sampled_from(["", "m", "n", f"{TEARDOWN} of it"]),
    reruns=st.integers(0, 2),
)
# Files as pairs of their order and their cases.
reports = st.lists(st.tuples(st.integers(0, 2), st.lists(cases, max_size=6)), max_size=6)


def case(word: str) -> Case:
    if word == "teardown":
        return Case("f", "C", "n", Outcome.ERROR, None, f"{TEARDOWN} with “leak”")
    return Case("f", "C", "n", Outcome[word.upper()], None, word)


@pytest.mark.parametrize("row", CHAINS, ids=lambda row: f"{row.seen} {'in order' if row.are_ordered else ''}")
def test_every_row_of_the_table_is_true(row: Chain) -> None:
    files = [[case(word) for word in part.split(", ")] for part in row.seen.split("; ")]
    orders = range(len(files)) if row.are_ordered else [0] * len(files)
    (settled,) = settle(zip(orders, files, strict=True))
    assert (settled.outcome, settled.reruns + 1) == (row.outcome, row.attempts)


def test_a_test_with_one_case_is_that_case() -> None:
    one = Case("f", "C", "n", Outcome.SKIPPED, 0.1, "why", "", 3)
    assert list(settle([(0, [one])])) == [one]


def test_a_flaky_test_tells_why_it_was_red_and_how_long_the_pass_took() -> None:
    red = Case("f", "C", "n", Outcome.FAILED, 9.0, "busy", "trace")
    assert list(settle([(2, [Case("f", "C", "n", Outcome.PASSED, 1.0)]), (1, [red])])) == [
        Case("f", "C", "n", Outcome.FLAKY, 1.0, "busy", "trace", 1)
    ]


def test_of_equals_the_newest_is_shown() -> None:
    old, new = (Case("f", "C", "n", Outcome.FAILED, 1.0, message) for message in ("old", "new"))
    assert list(settle([(2, [new]), (1, [old])])) == [new._replace(reruns=1)]


def test_file_class_and_name_tell_tests_apart() -> None:
    apart = [Case(*key, Outcome.PASSED) for key in itertools.product("ab", "CD", "xy")]
    assert list(settle([(0, apart)])) == apart


def test_every_outcome_has_its_place() -> None:
    assert sorted(WORST_FIRST) == sorted(Outcome)


@given(reports, st.randoms(use_true_random=False))
def test_files_of_one_order_may_come_in_any_sequence(files: list[tuple[int, list[Case]]], dice: Random) -> None:
    mixed = list(files)
    dice.shuffle(mixed)
    assert sorted(settle(mixed), key=repr) == sorted(settle(files), key=repr)


@given(reports)
def test_no_red_is_lost_and_the_counts_sum(files: list[tuple[int, list[Case]]]) -> None:
    seen = [(order, one) for order, cases in files for one in cases]
    settled = {one[:3]: one for one in settle(files)}
    assert set(settled) == {one[:3] for _, one in seen}
    assert sum(Counter(one.outcome for one in settled.values()).values()) == len(settled)
    for key, result in settled.items():
        orders = [order for order, one in seen if one[:3] == key and one.outcome in RED]
        if result.outcome in RED or not orders:
            assert orders or result.outcome not in RED
            continue
        # Not red although it was: unknown words weigh as much, or a pass followed, in a later file or the same one.
        assert result.outcome in (Outcome.FLAKY, Outcome.UNKNOWN)
        assert any(
            order >= max(orders) and one.outcome in (*GREEN_AGAIN, Outcome.UNKNOWN)
            for order, one in seen
            if one[:3] == key
        )
        assert result.reruns + 1 <= sum(one.reruns + 1 for _, one in seen if one[:3] == key)
