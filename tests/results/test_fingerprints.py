"""One failure has one fingerprint, whatever test, machine or platform it shows up on."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.results.fingerprints import DEVICE_EXAMPLES, STEPS, fingerprint, innermost, normalise
from apps.results.names.rules import words_of

NPU, XPU = words_of("npu"), words_of("xpu")

TRACE = """Traceback (most recent call last):
  File "/var/lib/jenkins/workspace/test/test_ops.py", line {line}, in test_{test}
    op(sample.input)
  File "{root}/torch/testing/_internal/common_utils.py", line 3{line}, in wrapper
    method(*args, **kwargs)
  File "{root}/torch/_ops.py", line 1{line}, in __call__
    return self._op(*args)
  File "/work/test/test_ops.py", line 9, in check
RuntimeError: {message}
"""


@pytest.mark.parametrize(
    ("before", "after"), [example for step in STEPS for example in step.examples] + list(DEVICE_EXAMPLES)
)
def test_the_examples_of_the_table(before: str, after: str) -> None:
    assert normalise(before, NPU) == after


def trace(line: int, test: str, root: str, message: str = "boom") -> str:
    return TRACE.format(line=line, test=test, root=root, message=message)


def test_a_failure_is_the_same_in_another_test_on_another_platform() -> None:
    message = "Expected npu:0 at 0x7f01, got 3 of 4 in /opt/a/x.so"
    other = "Expected xpu:1 at 0x55aa, got 17 of 40 in C:\\b\\x.so"
    first = fingerprint(message, trace(10, "add_npu_float32", "/opt/py"), NPU)
    assert first == fingerprint(other, trace(77, "mul_xpu_int8", "/usr/lib"), XPU)
    assert len(first) == 16


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("boom in int64", trace(10, "a", "/opt")),  # another dtype
        ("bang in float32", trace(10, "a", "/opt")),  # another message
        ("boom in float32", trace(10, "a", "/opt").replace("_ops.py", "_meta.py")),  # raised elsewhere
        ("boom in float32", trace(10, "a", "/opt").replace("__call__", "__init__")),
    ],
)
def test_another_failure_has_another_fingerprint(message: str, shown: str) -> None:
    assert fingerprint(message, shown, NPU) != fingerprint("boom in float32", trace(10, "a", "/opt"), NPU)


def test_without_a_message_the_last_line_of_the_trace_speaks() -> None:
    first = fingerprint("", trace(1, "a", "/opt", "lost 3 of npu:1"), NPU)
    assert first == fingerprint(" \n", trace(2, "b", "/usr", "lost 5 of npu:0"), NPU)
    assert first != fingerprint("", trace(1, "a", "/opt", "found it"), NPU)


@pytest.mark.parametrize(
    ("shown", "place"),
    [
        (trace(1, "a", "/opt"), "_ops.py:__call__"),
        ("torch/_dynamo/eval_frame.py:12: in _fn\n    x\ntest/test_x.py:4: in test_a\n", "eval_frame.py:_fn"),
        ('  File "C:\\py\\torch\\_ops.py", line 3, in f\n', "_ops.py:f"),
        ("no frames at all", ""),
        ("", ""),
    ],
)
def test_the_place_is_the_last_frame_outside_a_test_file(shown: str, place: str) -> None:
    assert innermost(shown) == place


@given(st.text(st.characters(), max_size=200), st.text(st.characters(), max_size=200))
def test_any_text_has_a_fingerprint(message: str, shown: str) -> None:
    assert len(fingerprint(message, shown, NPU)) == 16


HOSTILE = [
    "/",
    "a/",
    "\\",
    "0x",
    "1",
    "1e",
    ".py:",
    'File "',
    "\n ",
    " ",
    "tmp",
    "a.b:1: in ",
    "test_",
    "npu:",
    "To execute this test\n",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_text_takes_no_more_than_its_beginning(piece: str) -> None:
    """A megabyte costs what the part that is looked at costs, and that is linear: eight times the text, eight times
    the time, not 64 times."""
    text = piece * (1_000_000 // len(piece))
    assert normalise(text, NPU) == normalise(text[:4_000], NPU)
    assert innermost(text) == innermost(text[-8_000:])

    def seconds(length: int) -> float:
        part, best = text[:length], float("inf")
        for _ in range(3):
            begun = time.process_time()
            for step in STEPS:
                step.pattern.sub(step.put, part)
            best = min(best, time.process_time() - begun)
        return best

    assert seconds(32_000) < 24 * max(seconds(4_000), 5e-5)
