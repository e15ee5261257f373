"""Cells of a CSV: what a downstream wrote is text in a spreadsheet, whatever it begins with."""

from typing import Any

import pytest

from apps.core.sheets import cell


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, ""),
        ("", ""),
        ("plain", "plain"),
        ("a=b", "a=b"),
        (0, "0"),
        (-3.5, "-3.5"),
        (True, "true"),
        (["late_start", "joined"], "late_start joined"),
        ({"b": 1, "a": "x"}, '{"a": "x", "b": 1}'),
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        (" =1", "' =1"),
        ("\t=1", "'\t=1"),
        ("\rx", "'\rx"),
        ("\nx", "'\nx"),
        ("\uff1d1", "'\uff1d1"),
        (["=1", "x"], "'=1 x"),
    ],
)
def test_a_cell_is_never_a_formula(value: Any, written: str) -> None:
    assert cell(value) == written
