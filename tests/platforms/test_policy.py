"""Levels, and which of them can be set directly."""

import dataclasses
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.platforms.allowlist import FULL_NAME
from apps.platforms.policy import (
    BY_CODE,
    CONSEQUENCE_TITLES,
    LEVELS,
    Consequence,
    consequences,
    default_platform_slug,
    direct_targets,
    refuse_direct_change,
    suggested_target,
)

L3_L4 = (
    "cannot be reached by a direct change: raising goes up to L2. Open a promotion: it freezes the evidence that "
    "maintainers approve."
)


def test_levels_are_numbered_as_they_stand() -> None:
    assert [(level.number, level.code, level.name) for level in LEVELS] == [
        (0, "L0", "Unlisted"),
        (1, "L1", "Onboarding"),
        (2, "L2", "Observation"),
        (3, "L3", "Stable"),
        (4, "L4", "Mature"),
    ]
    assert {code: level.number for code, level in BY_CODE.items()} == {"L0": 0, "L1": 1, "L2": 2, "L3": 3, "L4": 4}


def test_what_can_be_set_directly_from_each_level() -> None:
    assert {level.code: [target.code for target in direct_targets(level.number)] for level in LEVELS} == {
        "L0": ["L1", "L2"],
        "L1": ["L0", "L2"],
        "L2": ["L0", "L1"],
        "L3": ["L0", "L1", "L2"],
        "L4": ["L0", "L1", "L2", "L3"],
    }


def test_what_a_page_offers_first_from_each_level() -> None:
    assert {level.code: suggested_target(level.number).code for level in LEVELS} == {
        "L0": "L1",
        "L1": "L2",
        "L2": "L1",
        "L3": "L2",
        "L4": "L3",
    }


@pytest.mark.parametrize(
    ("before", "after", "device", "refusal"),
    [
        (1, 2, "", None),
        (4, 0, "", None),
        (4, 3, "npu", None),
        (2, 2, "", "The repository is at L2 already."),
        (3, 3, "", "The repository is at L3 already."),
        (2, 3, "npu", f"L3 {L3_L4}"),
        (0, 4, "npu", f"L4 {L3_L4}"),
        (3, 4, "npu", f"L4 {L3_L4}"),
        (4, 3, "", "L3 needs a device, the word in the label ciflow/crcr/<device>: send one."),
    ],
)
def test_a_refusal_says_which_rule_and_what_to_do(before: int, after: int, device: str, refusal: str | None) -> None:
    assert refuse_direct_change(before, after, device=device) == refusal


@pytest.mark.parametrize(("before", "after"), list(itertools.product(range(5), repeat=2)))
def test_consequences_compare_the_rows_of_the_table(before: int, after: int) -> None:
    rows = consequences(before, after)
    assert rows == [
        Consequence(title, getattr(LEVELS[before], name), getattr(LEVELS[after], name))
        for name, title in CONSEQUENCE_TITLES.items()
    ]
    assert any(row.is_change for row in rows) is (before != after)


def test_consequences_leave_nothing_of_a_level_out() -> None:
    assert {field.name for field in dataclasses.fields(LEVELS[0])} == {"number", "name", *CONSEQUENCE_TITLES}


@settings(deadline=None)
@given(st.from_regex(FULL_NAME, fullmatch=True))
def test_every_repository_gets_a_slug_that_an_address_can_hold(full_name: str) -> None:
    slug = default_platform_slug(full_name)
    assert 0 < len(slug) <= 80
    assert set(slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_the_slug_is_owner_and_repository() -> None:
    assert default_platform_slug("TorchedHat/pytorch_redhat.ci") == "torchedhat-pytorch-redhat-ci"
