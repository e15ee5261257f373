"""Upstream's file of disabled tests: how it is read, when it is not taken, what its platforms are here."""

import json
from typing import Any

import pytest

from apps.quarantine.disabled_list import DisabledList, Line, Reach, Refusal, identity, judge, reach
from apps.quarantine.enums import ListAlarm

ISSUE = "https://github.com/pytorch/pytorch/issues/77"


def content(lines: dict[str, Any]) -> bytes:
    return json.dumps(lines).encode()


def many(count: int) -> dict[str, Any]:
    return {f"test_{number} (__main__.TestA)": [str(number), "", []] for number in range(count)}


def test_a_line_is_a_test_its_issue_and_its_platforms() -> None:
    said = {
        "test_a_cuda (__main__.TestFooCUDA)": ["77", ISSUE, ["Linux", "rocm", "linux"]],
        "test_b (jit.test_models.TestB)": [78, "javascript:alert(1)", []],
    }
    assert judge(content(said), ()) == DisabledList(
        (
            Line("test_a_cuda (__main__.TestFooCUDA)", "77", ISSUE, ("linux", "rocm")),
            Line("test_b (jit.test_models.TestB)", "78", "", ()),
        ),
        left_out=0,
    )


def test_a_line_is_found_as_it_stands_and_without_the_device_of_upstreams_own() -> None:
    assert Line("test_a_cuda_float32 (__main__.TestFooCUDA)", "", "", ()).identities == (
        "",
        [identity("TestFooCUDA", "test_a_cuda_float32"), identity("TestFoo", "test_a_<device>_float32")],
    )
    assert Line("test_b (jit.test_models.TestB)", "", "", ()).identities == (
        "jit/test_models",
        [identity("TestB", "test_b")],
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("no class", ["1", "", []]),
        ("two words (__main__.TestA)", ["1", "", []]),
        ("test_a (__main__.TestA)\0", ["1", "", []]),
        ("test_a (__main__.Test\nA)", ["1", "", []]),
        (f"test_{'a' * 500} (__main__.TestA)", ["1", "", []]),
        ("test_a (__main__.TestA)", ["1", ""]),
        ("test_a (__main__.TestA)", "1"),
        ("test_a (__main__.TestA)", ["1", "", "linux"]),
        ("test_a (__main__.TestA)", ["1", "", [None]]),
        ("test_a (__main__.TestA)", ["1", "", ["x" * 51]]),
        ("test_a (__main__.TestA)", ["1", "", ["\0"]]),
        ("test_a (__main__.TestA)", ["1", "", ["linux"] * 21]),
    ],
)
def test_a_line_of_another_form_is_left_out_and_counted(key: str, value: Any) -> None:
    judged = judge(content({key: value, "test_ok (__main__.TestA)": ["1", "", []]}), ())
    assert judged == DisabledList((Line("test_ok (__main__.TestA)", "1", "", ()),), left_out=1)


@pytest.mark.parametrize(
    ("sent", "refusal"),
    [
        (b"\xff{}", Refusal(ListAlarm.UNREADABLE, "byte 0 is not UTF-8")),
        (b" \n", Refusal(ListAlarm.EMPTY, "it has no content")),
        (b"\n<!doctype html><p>Sign in", Refusal(ListAlarm.HTML, "it begins with '<!doctype html><p>Sign in'")),
        (b"[]", Refusal(ListAlarm.UNREADABLE, "it is a list, not an object of tests")),
        (
            b'{"a": 1}',
            Refusal(ListAlarm.UNREADABLE, "none of its 1 lines is a test with issue and platforms"),
        ),
        (b"{}", Refusal(ListAlarm.EMPTY, "it names no test, 20 are disabled")),
        (
            content(many(15)),
            Refusal(
                ListAlarm.SHRINK,
                "5 of 20 are gone: test_15 (__main__.TestA), test_16 (__main__.TestA), test_17 (__main__.TestA), "
                "test_18 (__main__.TestA), test_19 (__main__.TestA)",
            ),
        ),
    ],
)
def test_a_guard_keeps_the_copy_in_use(sent: bytes, refusal: Refusal) -> None:
    assert judge(sent, list(many(20))) == refusal


@pytest.mark.parametrize("sent", [b"[" * 200_000, b'{"a": ' * 100_000, b"{,}"])
def test_what_is_no_json_is_refused(sent: bytes) -> None:
    judged = judge(sent, ())
    assert isinstance(judged, Refusal)
    assert (judged.kind, judged.detail[:14]) == (ListAlarm.UNREADABLE, "it is no JSON:")


def test_a_fifth_may_go_at_once_and_more_where_somebody_says_so() -> None:
    before = list(many(20))
    assert isinstance(judge(content(many(16)), before), DisabledList)
    assert isinstance(judge(content(many(1)), before, is_accepted=True), DisabledList)
    assert isinstance(judge(b"{}", before, is_accepted=True), Refusal)


def test_too_many_lines_are_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.quarantine.disabled_list.ENTRIES_MAX", 2)
    assert judge(content(many(3)), ()) == Refusal(ListAlarm.UNREADABLE, "it has 3 lines")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # All of upstream's own: the in-tree platforms that are here, and nobody else.
        ((), Reach(True, ("cuda", "xpu"), (), ())),
        (("xpu",), Reach(False, ("xpu",), (), ())),
        (("linux", "rocm"), Reach(False, (), ("linux", "rocm"), ())),
        # One unknown word, and the whole line is without effect.
        (("xpu", "kestrel"), Reach(False, (), (), ("kestrel",))),
        (("all",), Reach(False, (), (), ("all",))),
        (("",), Reach(False, (), (), ("",))),
        (("nv", "nothing"), Reach(False, ("cuda",), ("nothing",), ())),
    ],
)
def test_platforms_are_in_tree_ones_or_none(words: tuple[str, ...], expected: Reach) -> None:
    assert reach(words, {"cuda", "xpu"}, {"nv": "cuda", "nothing": None}) == expected


def test_what_was_said_of_a_word_holds_before_what_it_happens_to_be() -> None:
    assert reach(("rocm",), {"amd"}, {"rocm": "amd"}) == Reach(False, ("amd",), (), ())
