"""pytest-reportlog's JSON lines: one line a phase (setup, call, teardown), written while the run goes on.

Source: docs/results.md, "pytest report log". Because lines are written as they happen, a test without its last phase is
one that was running when the process died: it is lost, never passed. Lines of parallel workers may be mixed.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from apps.results.formats.cases import RED, Case, Notes, Outcome, evidence_of
from apps.results.formats.dialects import STRICT_XPASS, UNEXPECTED_SUCCESS, WORDS
from apps.results.formats.junit import WORD_MAX
from apps.results.formats.limits import Limits
from apps.results.formats.texts import FORBIDDEN, REPLACEMENT, Excerpt, LineSource, json_lines

TEST, COLLECTION, END = "TestReport", "CollectReport", "SessionFinish"
SUBTESTS = ("SubTestReport", "SubtestReport")
# Lines about the run, not about a test.
OTHERS = ("SessionStart", "WarningMessage", "WarningReport")
_KIND, _SUBTEST_KIND, _SUBTEST = "$report_type", "_report_type", "_subtest.context"
_RERUN = "rerun"
# How pytest begins what it says of a skip or an expected failure.
_PREFIXES = ("Skipped: ", "reason: ")

OUTSIDE, EXPECTED, UNEXPECTED = "in setup or teardown", "with `wasxfail`", "`longrepr` tells of an unexpected pass"


class Line(NamedTuple):
    """What a line's word means, and where; the first row that fits holds."""

    word: str
    where: str
    outcome: Outcome


LINES = (
    Line("passed", EXPECTED, Outcome.XPASSED),
    Line("passed", "", Outcome.PASSED),
    Line("skipped", EXPECTED, Outcome.XFAILED),
    Line("skipped", "", Outcome.SKIPPED),
    Line("failed", OUTSIDE, Outcome.ERROR),
    Line("failed", UNEXPECTED, Outcome.XPASSED),
    Line("failed", "", Outcome.FAILED),
    Line(_RERUN, "", Outcome.FLAKY),
)


class _Test:
    """A test whose last phase has not been read yet."""

    __slots__ = ("message", "outcome", "reruns", "seconds", "trace", "was_red", "word")

    def __init__(self) -> None:
        self.reruns = 0
        self.was_red = ("", "")
        self.again()

    def again(self) -> None:
        """A new attempt begins."""
        self.outcome: Outcome | None = None
        self.seconds: float | None = None
        self.message = self.trace = self.word = ""


def read(stream: LineSource, *, path: str, limits: Limits, notes: Notes) -> Iterator[Case]:
    """The cases of one log. Whatever is wrong with it ends as a note, never as an exception. `path` is not needed:
    every line names its test's file.
    """
    reader = _Reader(limits, notes)
    count = 0
    for line, is_whole in json_lines(stream, limits.line, notes):
        if not line.strip():
            continue
        row = _row(line, notes)
        if row is None:
            notes.add("bad_line" if is_whole else "truncated", f"It begins: {line[:40].decode(errors='replace')}")
            continue
        case = reader.take(row)
        if case is not None:
            yield case
            count += 1
        if count >= limits.cases or reader.running > limits.running:
            notes.add("too_many_cases", f"At most {limits.cases} are read, {limits.running} of them running at once.")
            break
    yield from reader.close()


def _row(line: bytes, notes: Notes) -> dict[str, Any] | None:
    text = line.decode("utf-8-sig", "replace")
    if REPLACEMENT in text:
        notes.add("characters")
    try:
        row = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


class _Reader:
    """Puts phases together. What is open is as much as runs at once."""

    def __init__(self, limits: Limits, notes: Notes) -> None:
        self._limits, self._notes = limits, notes
        self._open: dict[str, _Test] = {}
        self._has_end = self._has_any = False

    @property
    def running(self) -> int:
        """How many tests have begun and not ended."""
        return len(self._open)

    def take(self, row: dict[str, Any]) -> Case | None:
        """Read a line; the case that it ends, if it ends one."""
        kind = row.get(_KIND) or row.get(_SUBTEST_KIND)
        if kind == COLLECTION:
            return self._collected(row)
        if kind in SUBTESTS or (kind == TEST and _SUBTEST in row):
            self._subtest(row)
        elif kind == TEST:
            return self._phase(row)
        elif kind == END:
            self._has_end = True
        elif kind not in OTHERS:
            self._notes.add("unknown_line", f"The first: {self._text(kind)[:WORD_MAX]}.")
        return None

    def close(self) -> Iterator[Case]:
        """After the last line: tests that had begun and did not end."""
        if not self._has_end:
            self._notes.add("no_end")
        for node, test in self._open.items():
            if test.outcome not in RED:
                self._notes.add("lost", f"The first: {node}.")
                test.outcome = Outcome.LOST
                test.message = test.message or "The test had begun, and the log ends before it did."
            yield self._case(node, test)

    def _phase(self, row: dict[str, Any]) -> Case | None:
        node = self._node(row)
        if not node:
            return None
        test = self._open.setdefault(node, _Test())
        word = row.get("outcome")
        if word == _RERUN:
            test.reruns += 1
            was_red = self._said(row)
            test.again()
            test.was_red = was_red
            return None
        self._worsen(test, row, self._outcome(row))
        self._add_time(test, row)
        if row.get("when") != "teardown":
            return None
        del self._open[node]
        return self._case(node, test)

    def _subtest(self, row: dict[str, Any]) -> None:
        """A part of a test: it makes the test red, and nothing else."""
        node = self._node(row)
        outcome = self._outcome(row)
        if node and (outcome in RED or outcome is Outcome.UNKNOWN):
            self._worsen(self._open.setdefault(node, _Test()), row, outcome)

    def _collected(self, row: dict[str, Any]) -> Case | None:
        """A file or class that could not be collected is a case; one that was is none."""
        word = row.get("outcome")
        if word == "passed":
            return None
        node = self._node(row)
        outcome = Outcome.SKIPPED if word == "skipped" else Outcome.ERROR
        message, trace = self._said(row)
        file, class_name, name = _names(node)
        return Case(file, class_name, name, outcome, None, message, trace if outcome in RED else "")

    def _worsen(self, test: _Test, row: dict[str, Any], outcome: Outcome) -> None:
        """What one more phase makes of a test: red stays, and a setup or teardown that passed says nothing."""
        when = row.get("when")
        if test.outcome in RED or (outcome is Outcome.PASSED and when != "call"):
            return
        if test.outcome is not None and outcome not in RED and when != "call":
            return
        test.outcome = outcome
        test.word = self._text(row.get("outcome"))[:WORD_MAX] if outcome is Outcome.UNKNOWN else ""
        test.message, test.trace = self._said(row)

    def _outcome(self, row: dict[str, Any]) -> Outcome:
        """What a line says, by the first row of LINES that fits."""
        word = row.get("outcome")
        circumstances = _circumstances(row)
        for line in LINES:
            if line.word == word and (not line.where or line.where in circumstances):
                return line.outcome
        known = WORDS.get(word) if isinstance(word, str) else None
        if known is not None:
            return known
        self._notes.add("unknown_word", f"The first: {self._text(word)[:WORD_MAX]}.")
        return Outcome.UNKNOWN

    def _said(self, row: dict[str, Any]) -> tuple[str, str]:
        """Message and trace, from the forms that `longrepr` takes: text, a skip's triple, pytest's tree."""
        said = row.get("longrepr")
        message = trace = ""
        if isinstance(said, str):
            message, trace = said.strip().partition("\n")[0], said
        elif isinstance(said, list) and len(said) == 3:
            message = said[2] if isinstance(said[2], str) else ""
        elif isinstance(said, dict):
            crash = said.get("reprcrash")
            message = crash["message"] if isinstance(crash, dict) and isinstance(crash.get("message"), str) else ""
            trace = "\n".join(_lines(said))
        reason = row.get("wasxfail")
        if isinstance(reason, str) and reason:
            message = reason
        for prefix in _PREFIXES:
            message = message.removeprefix(prefix)
        if (evidence := evidence_of(message)) and evidence.is_flaky:
            self._notes.add("flaky_evidence", f"The first: {evidence.red} red, {evidence.green} green.")
        excerpt = Excerpt(self._limits.trace)
        excerpt.add(self._text(trace).strip())
        if excerpt.is_cut or len(message) > self._limits.message:
            self._notes.add("cut")
        return self._text(message)[: self._limits.message], str(excerpt)

    def _add_time(self, test: _Test, row: dict[str, Any]) -> None:
        """A test takes as long as its phases do together."""
        said = row.get("duration")
        if said is None:
            return
        limit = self._limits.seconds
        seconds = (test.seconds or 0.0) + said if isinstance(said, int | float) and 0 <= said <= limit else -1.0
        if not 0 <= seconds <= limit:
            self._notes.add("time", f"The first: {self._text(said)[:20]}.")
            return
        test.seconds = seconds

    def _case(self, node: str, test: _Test) -> Case:
        """The test as one case."""
        outcome, (message, trace) = test.outcome, (test.message, test.trace)
        if outcome is None:
            outcome = Outcome.LOST
            message = "The log has no call of this test."
            self._notes.add("lost", f"The first: {node}.")
        elif test.reruns and outcome not in RED and outcome is not Outcome.UNKNOWN:
            outcome, (message, trace) = Outcome.FLAKY, test.was_red
        if outcome not in RED and outcome is not Outcome.FLAKY:
            trace = ""
        word = test.word if outcome is Outcome.UNKNOWN else ""
        return Case(*_names(node), outcome, test.seconds, message, trace, test.reruns, word)

    def _node(self, row: dict[str, Any]) -> str:
        node = row.get("nodeid")
        if not isinstance(node, str) or not node:
            self._notes.add("bad_line", "It has no nodeid.")
            return ""
        return self._text(node)

    def _text(self, said: object) -> str:
        """Anything as text that can be stored."""
        if not isinstance(said, str):
            said = str(said) if isinstance(said, int | float) else type(said).__name__
        text, count = FORBIDDEN.subn(REPLACEMENT, said)
        if count:
            self._notes.add("characters", count=count)
        return text


def _circumstances(row: dict[str, Any]) -> list[str]:
    """What else of a line decides."""
    said = row.get("longrepr")
    is_xpass = isinstance(said, str) and said.lstrip().startswith((STRICT_XPASS, UNEXPECTED_SUCCESS))
    return [
        name
        for name, holds in (
            (OUTSIDE, row.get("when") in ("setup", "teardown")),
            (EXPECTED, "wasxfail" in row),
            (UNEXPECTED, is_xpass),
        )
        if holds
    ]


def _names(node: str) -> tuple[str, str, str]:
    """`file::Class::name[parameters]` as file, class and name; parameters may hold colons."""
    bare, bracket, parameters = node.partition("[")
    file, *inner = bare.split("::")
    if not inner:
        return file, "", node
    return file, "::".join(inner[:-1]), inner[-1] + bracket + parameters


def _lines(tree: dict[str, Any]) -> Iterator[str]:
    """The lines of pytest's tree of a failure; of chained exceptions all, the last one being the failure."""
    chain = tree.get("chain")
    links = [link[0] for link in chain if isinstance(link, list) and link] if isinstance(chain, list) else []
    for link in links or [tree.get("reprtraceback")]:
        entries = link.get("reprentries") if isinstance(link, dict) else None
        for entry in entries if isinstance(entries, list) else ():
            data = entry.get("data") if isinstance(entry, dict) else None
            lines = data.get("lines") if isinstance(data, dict) else None
            yield from (line for line in lines if isinstance(line, str)) if isinstance(lines, list) else ()
