"""The same failure under other names: message and trace, without what differs by test, machine or device → 16 bytes.

Pure. What is taken out is a table with examples; dtypes stay, because a failure in bfloat16 is not the one in int64.
"""

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from apps.results.names.canonical import DIGEST_BYTES

# How much of a message and of a trace's end is looked at.
MESSAGE_LOOKED_AT = 4_000
TRACE_LOOKED_AT = 8_000


@dataclass(frozen=True)
class Step:
    """One step: `pattern` is replaced by `put`. `examples`: before → after, of the whole normalisation for `npu`."""

    what: str
    pattern: re.Pattern[str]
    put: str | Callable[[re.Match[str]], str]
    examples: tuple[tuple[str, str], ...]


def _basename(found: re.Match[str]) -> str:
    """A path's last part; of a temporary folder nothing."""
    token = found[0].replace("\\", "/")
    if "/" not in token or not any(letter.isalpha() for letter in token):
        return found[0]
    if "/tmp" in f"/{token.lower()}":  # noqa: S108  only text
        return "<tmp>"
    return f"<path>/{token.rstrip('/').rpartition('/')[2]}"


STEPS: tuple[Step, ...] = (
    Step(
        "upstream's advice how to run the one test again",
        re.compile(
            r"\n[ \t]*+(?:To execute this test, run the following|This message can be suppressed by setting)"
            r"[^\n]*+(?:\n[^\n]*+)?"
        ),
        "",
        (
            (
                "boom\n\nTo execute this test, run the following from the base repo dir:\n  python a.py A.test_a",
                "boom",
            ),
        ),
    ),
    Step(
        "addresses",
        re.compile(r"\b0x[0-9a-fA-F]++"),
        "<address>",
        (("<Tensor object at 0x7f3a5c0d21f0>", "<Tensor object at <address>>"),),
    ),
    Step(
        "paths, to their last part; temporary ones whole",
        re.compile(r"[^\s'\"()\[\]<>{},;=]++"),
        _basename,
        (
            ("No such file: '/opt/py/lib/site-packages/torch/_ops.py'", "No such file: '<path>/_ops.py'"),
            ("cannot open C:\\build\\x\\lib.dll", "cannot open <path>/lib.dll"),
            ("open('/tmp/pytest-of-ci/pytest-3/a.bin')", "open('<tmp>')"),
        ),
    ),
    Step(
        "temporary names",
        re.compile(r"\btmp[a-z0-9_]{6,12}\b"),
        "<tmp>",
        (("cannot load tmpq8x7_1ab.so", "cannot load <tmp>.so"),),
    ),
    Step(
        "line numbers",
        re.compile(r"(?<=\.py):\d++(?::\d++)?|\bline \d++|\bat line:\d++"),
        "",
        (("_ops.py:1152: in __call__", "_ops.py: in __call__"), ('File "a.py", line 12, in f', 'File "a.py", , in f')),
    ),
    Step(
        "numbers, signs and exponents; not those inside a word: float32, int8, conv2d",
        re.compile(r"(?<![\w.])[-+]?\d++(?:\.\d++)?(?:e[-+]?\d++)?%?(?![A-Za-z_])", re.IGNORECASE),
        "<n>",
        (
            ("Mismatched elements: 3 / 24 (12.5%)", "Mismatched elements: <n> / <n> (<n>)"),
            ("Greatest absolute difference: 1.2e-05 in float32", "Greatest absolute difference: <n> in float32"),
            ("conv2d of bfloat16 failed with code -107", "conv2d of bfloat16 failed with code <n>"),
        ),
    ),
    Step("runs of white space", re.compile(r"\s++"), " ", (("a\n\n   b", "a b"),)),
)

# Of the platform's own words, with the number of the device.
DEVICE_EXAMPLES = (
    ("expected npu:0 but found cpu", "expected <device> but found cpu"),
    ("not implemented for 'PrivateUse1'", "not implemented for '<device>'"),
    ("NPU function error in npu_format_cast", "<device> function error in npu_format_cast"),
)

_FRAME = re.compile(
    r'^[ \t]*+(?:File "([^"\n]++)", line \d++, in (\S++)|((?:[A-Za-z]:)?[^\s:]++):\d++: in (\S++))', re.MULTILINE
)
_TEST_FILE = re.compile(r"(?:.*[\\/])?(?:test_[^\\/]*|[^\\/]*_test)\.py")


def normalise(text: str, words: Iterable[str]) -> str:
    """A message without what differs from run to run; `words` are the platform's (names.rules.words_of)."""
    return _normalised(text[:MESSAGE_LOOKED_AT], frozenset(words))


@lru_cache(maxsize=1024)
def _normalised(text: str, words: frozenset[str]) -> str:
    """Remembered: a report says the same message many times."""
    for step in STEPS:
        text = step.pattern.sub(step.put, text)
    device = "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))
    return re.sub(rf"(?<!\w)(?:{device})(?::\d++|:<n>)?(?!\w)", "<device>", text, flags=re.IGNORECASE).strip()


def innermost(trace: str) -> str:
    """Where it was raised: `file:function` of the last frame outside a test file, '' where a trace shows none.

    Frames of test files name the test, and one failure has many."""
    place = ""
    for found in _FRAME.finditer(trace[-TRACE_LOOKED_AT:]):
        file, function = found[1] or found[3], found[2] or found[4]
        if not _TEST_FILE.fullmatch(file):
            place = f"{file.replace(chr(92), '/').rpartition('/')[2]}:{function}"
    return place


def fingerprint(message: str, trace: str, words: Iterable[str]) -> bytes:
    """16 bytes that the same failure has in every test and on every platform.

    Of a failure without a message, the trace's last line speaks."""
    said = message.strip() or trace.strip()[-TRACE_LOOKED_AT:].rpartition("\n")[2]
    key = f"{normalise(said, words)}\0{innermost(trace)}"
    return hashlib.blake2b(key.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).digest()
