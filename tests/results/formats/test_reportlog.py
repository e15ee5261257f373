"""pytest's report logs where a corpus of small files does not reach."""

import json
from typing import Any

import pytest

from apps.results.formats.cases import Case, Outcome
from apps.results.formats.limits import Limits
from tests.results.formats.reading import Read, read_log

END = {"exitstatus": 0, "$report_type": "SessionFinish"}


def phase(when: str, outcome: str = "passed", **more: Any) -> dict[str, Any]:
    return {"nodeid": "t.py::test_a", "when": when, "outcome": outcome, "$report_type": "TestReport"} | more


def log(*rows: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in (*rows, END))


def one(outcome: Outcome, message: str = "", trace: str = "", **more: Any) -> Case:
    return Case("t.py", "", "test_a", outcome, None, message, trace, **more)


@pytest.mark.parametrize(
    ("rows", "case"),
    [
        ([phase("setup"), phase("call"), phase("teardown")], one(Outcome.PASSED)),
        ([phase("setup", "failed", longrepr="no"), phase("teardown")], one(Outcome.ERROR, "no", "no")),
        ([phase("call", "failed", longrepr="Unexpected success"), phase("teardown")],
         one(Outcome.XPASSED, "Unexpected success", "Unexpected success")),
        ([phase("call", "skipped", longrepr=["t.py", 1, "Skipped: a"]), phase("teardown", "skipped")],
         one(Outcome.SKIPPED, "a")),
        ([phase("call", "rerun", longrepr="busy"), phase("call", "failed", longrepr="red"), phase("teardown")],
         one(Outcome.FAILED, "red", "red", reruns=1)),
        ([phase("call", "rerun", longrepr="busy"), phase("setup"), phase("call", "rerun", longrepr="still"),
          phase("call"), phase("teardown")], one(Outcome.FLAKY, "still", "still", reruns=2)),
        ([phase("call", "xfailed"), phase("teardown")], one(Outcome.XFAILED)),
    ],
)  # fmt: skip
def test_phases_become_one_case(rows: list[dict[str, Any]], case: Case) -> None:
    assert read_log(log(*rows)) == Read([case], {})


def test_a_chain_of_exceptions_is_told_whole() -> None:
    links = [[{"reprentries": [{"data": {"lines": [line]}}]}, None, None] for line in ("first", "then")]
    failed = phase("call", "failed", longrepr={"reprcrash": {"message": "then"}, "chain": links})
    assert read_log(log(failed, phase("teardown"))) == Read([one(Outcome.FAILED, "then", "first\nthen")], {})


@pytest.mark.parametrize(
    "longrepr",
    [7, [], ["a"], [1, 2, 3], {}, {"reprcrash": 1, "chain": 2}, {"reprcrash": {"message": 1}, "chain": [[], [1]]},
     {"reprtraceback": {"reprentries": [1, {"data": 1}, {"data": {"lines": 1}}, {"data": {"lines": [1]}}]}}],
)  # fmt: skip
def test_what_was_said_may_have_any_form(longrepr: object) -> None:
    assert read_log(log(phase("call", "failed", longrepr=longrepr), phase("teardown"))) == Read(
        [one(Outcome.FAILED)], {}
    )


@pytest.mark.parametrize("word", [None, 1, [], {}, "odd"])
def test_an_outcome_may_be_anything_and_is_never_green(word: object) -> None:
    shown = {"NoneType": "NoneType", "int": "1", "str": "odd"}.get(type(word).__name__, type(word).__name__)
    assert read_log(log(phase("call", "passed") | {"outcome": word}, phase("teardown"))) == Read(
        [one(Outcome.UNKNOWN, word=shown)], {"unknown_word": 1}
    )


def test_lines_past_the_limit_are_left_out_and_the_next_is_read() -> None:
    text = log(phase("call"), phase("call", sections="x" * 3_000), phase("teardown"))
    assert read_log(text, limits=Limits(line=1_000)) == Read([one(Outcome.PASSED)], {"long_line": 1})


def test_so_many_cases_and_no_more() -> None:
    rows = [phase(when, nodeid=f"t.py::test_{number}") for number in range(9) for when in ("call", "teardown")]
    read = read_log(log(*rows), limits=Limits(cases=3))
    assert ([case.name for case in read.cases], read.notes) == (
        ["test_0", "test_1", "test_2"],
        {"too_many_cases": 1, "no_end": 1},
    )


def test_so_many_at_once_and_no_more() -> None:
    rows = [phase("setup", nodeid=f"t.py::test_{number}") for number in range(9)]
    read = read_log(log(*rows), limits=Limits(running=3))
    assert ([case.outcome for case in read.cases], read.notes) == (
        [Outcome.LOST] * 4,
        {"too_many_cases": 1, "no_end": 1, "lost": 4},
    )


def test_nesting_without_end_is_a_bad_line() -> None:
    assert read_log("[" * 100_000 + "\n" + log()) == Read([], {"bad_line": 1})
    assert read_log('{"outcome":' + "[" * 900 + "]" * 900 + "}\n" + log()).notes == {"unknown_line": 1}
