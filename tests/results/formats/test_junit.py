"""JUnit XML where a corpus of small files does not reach: sizes, limits, encodings, words of notes."""

import io
import tracemalloc
from collections.abc import Iterator

import pytest

from apps.results.formats import junit
from apps.results.formats.cases import NOTES, Case, Evidence, Notes, Outcome, evidence_of
from apps.results.formats.dialects import CHILDREN, DIALECTS, WORDS, Dialect, seconds_of
from apps.results.formats.limits import Limits
from tests.results.formats.reading import LIMITS, PATH, Read, read_junit

MIB = 1 << 20


def suite(*cases: str) -> str:
    return f'<testsuite name="s">{"".join(cases)}</testsuite>'


def passed(name: str, file: str = "test_ops") -> Case:
    return Case(file, "", name, Outcome.PASSED)


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("test-reports/python-pytest/test_ops/test_ops-1.xml", "test_ops"),
        ("a/b/test-reports/python-unittest/functorch/test_ops/x.xml", "functorch/test_ops"),
        ("python-pytest/functorch.test_ops/x.xml", "functorch.test_ops"),
        ("python-pytest/x.xml", ""),
        ("report.xml", ""),
    ],
)
def test_the_file_comes_from_the_report_where_nobody_says_it(path: str, file: str) -> None:
    assert read_junit(suite('<testcase name="a"/>'), path=path) == Read([passed("a", file)], {})


def test_a_case_says_its_file_before_its_suite_and_the_suite_before_the_path() -> None:
    text = '<testsuite file="s.py"><testcase name="a" file="c.py"/><testcase name="b"/></testsuite>'
    assert read_junit(text) == Read([passed("a", "c.py"), passed("b", "s.py")], {})


@pytest.mark.parametrize("row", DIALECTS, ids=lambda row: f"{row.element}-{row.part}-{row.begins}")
def test_every_dialect_of_the_table_is_read(row: Dialect) -> None:
    parts = {"type": "", "message": "", "text": ""} | {row.part: row.begins}
    opening = f'<{row.element} type="{parts["type"]}" message="{parts["message"]}">'
    case = f'<testcase name="a">{opening}{parts["text"]}</{row.element}></testcase>'
    assert [one.outcome for one in read_junit(suite(case)).cases] == [row.outcome]


@pytest.mark.parametrize(("word", "outcome"), WORDS.items())
def test_every_word_of_the_table_is_read(word: str, outcome: Outcome) -> None:
    read = read_junit(suite(f'<testcase name="a" status="{word.upper()}"/>', f'<testcase name="b" result="{word}"/>'))
    assert ([one.outcome for one in read.cases], read.notes) == ([outcome, outcome], {})


@pytest.mark.parametrize("element", CHILDREN)
def test_every_element_of_the_table_is_read(element: str) -> None:
    read = read_junit(suite(f'<testcase name="a"><{element}/></testcase>'))
    outcome = CHILDREN[element].outcome or Outcome.PASSED
    assert ([one.outcome for one in read.cases], read.notes) == ([outcome], {})


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("0.5", 0.5),
        ("1,234.5", 1234.5),
        ("1,234,567", 1_234_567.0),
        ("1e-3", 0.001),
        ("0", 0.0),
        ("12,34", None),
        ("nan", None),
        ("-1", None),
        ("inf", None),
        ("1e9", None),
        ("soon", None),
    ],
)
def test_times(said: str, seconds: float | None) -> None:
    assert seconds_of(said, LIMITS.seconds) == seconds
    assert read_junit(suite(f'<testcase name="a" time="{said}"/>')) == Read(
        [Case("test_ops", "", "a", Outcome.PASSED, seconds)], {} if seconds is not None else {"time": 1}
    )


def test_a_header_that_differs_is_noted_with_both_numbers() -> None:
    notes = Notes()
    cases = '<testcase name="a"/><testcase name="b"><failure/></testcase>'
    text = f'<testsuite name="s" tests="9" skipped="2" failures="0">{cases}</testsuite>'
    list(junit.read(io.BytesIO(text.encode()), path=PATH, limits=LIMITS, notes=notes))
    first = "Suite s: tests 9 said, 2 counted."
    assert list(notes.sentences()) == [("header", 3, f"{NOTES['header'].says} {first}")]


def test_what_an_inner_suite_has_lost_is_not_lost_twice() -> None:
    text = '<testsuites><testsuite name="o" failures="2"><testsuite name="i" failures="2"/></testsuite></testsuites>'
    message = "The suite counts 2 failures and errors, the file holds 0: 2 lost."
    assert read_junit(text) == Read([Case("test_ops", "", "i", Outcome.LOST, None, message)], {"header": 1, "lost": 2})


def test_when_it_began() -> None:
    notes = Notes()
    times = ("2026-09-01T10:00:00", "2027-01-01T00:00:00")
    text = "".join(f'<testsuite timestamp="{time}"/>' for time in times).join(("<testsuites>", "</testsuites>"))
    list(junit.read(io.BytesIO(text.encode()), path=PATH, limits=LIMITS, notes=notes))
    assert notes.started == "2026-09-01T10:00:00"


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "shift_jis"]
)
def test_encodings(encoding: str) -> None:
    declared = {"utf-8-sig": "UTF-8", "utf-16-le": "utf-16", "utf-16-be": "utf-16"}.get(encoding, encoding)
    name = "表" if encoding == "shift_jis" else "é"
    text = f'<?xml version="1.0" encoding="{declared}"?>' + suite(f'<testcase name="{name}"/>')
    read = read_junit(text.encode(encoding))
    assert read.cases == [passed(name)]


@pytest.mark.parametrize("declared", ["zip", "unicode_escape", "idna", "utf-7", "klingon"])
def test_an_encoding_that_is_none_is_noted(declared: str) -> None:
    text = f'<?xml version="1.0" encoding="{declared}"?>' + suite('<testcase name="é"/>')
    assert read_junit(text) == Read([passed("é")], {"encoding": 1})


def test_an_entity_in_a_name_is_not_expanded_whatever_it_is_called() -> None:
    read = read_junit(suite('<testcase name="a&nbsp;b"/>', '<testcase name="c"><failure>&copy;x</failure></testcase>'))
    assert [(one.name, one.trace) for one in read.cases] == [("ab", ""), ("c", "x")]


def test_a_document_type_that_comes_late_ends_the_file() -> None:
    text = f"<!--{' ' * 300_000}--><!DOCTYPE testsuite [<!ENTITY a 'b'>]>" + suite('<testcase name="&a;"/>')
    assert read_junit(text) == Read([], {"entities": 1, "damaged": 1})


def test_names_of_any_length_are_kept() -> None:
    name = "n" * (8 * MIB)
    assert read_junit(suite(f'<testcase name="{name}"/>')) == Read([passed(name)], {})


def test_references_across_pieces_are_read_whole() -> None:
    start = '<testsuite name="s"><testcase name="'
    for shift in range(-12, 3):
        pad = "p" * (128 * 1024 - len(start) + shift)
        assert read_junit(f'{start}{pad}&#xD800;&#233;&#65;"/></testsuite>') == Read(
            [passed(f"{pad}\ufffdéA")], {"characters": 1}
        )


def test_messages_and_traces_are_cut() -> None:
    limits = Limits(message=4, trace=10)
    text = suite('<testcase name="a"><failure message="123456">abcdefghijklmnopqrst</failure></testcase>',
                 '<testcase name="b"><skipped message="123456"/></testcase>')  # fmt: skip
    assert read_junit(text, limits=limits) == Read(
        [
            Case("test_ops", "", "a", Outcome.FAILED, None, "1234", "abcde\n… 10 characters left out …\npqrst"),
            Case("test_ops", "", "b", Outcome.SKIPPED, None, "1234"),
        ],
        {"cut": 3},
    )


@pytest.mark.parametrize(
    ("text", "limits", "expected"),
    [
        ("<a>" * 200, LIMITS, Read([], {"too_deep": 1})),
        (suite('<testcase name="a">' + "<properties>" * 200), LIMITS, Read([], {"too_deep": 1, "dropped": 1})),
        ('<testsuite><testcase name="' + "x" * 600_000, Limits(token=200_000), Read([], {"long_token": 1})),
        ("", LIMITS, Read([], {"truncated": 1})),
        ("<html><body/></html>", LIMITS, Read([], {"no_suite": 1})),
        ("<testsuite/>", LIMITS, Read([], {})),
        (suite('<testcase name="a"/>') * 2, LIMITS, Read([passed("a")], {"damaged": 1})),
        (
            suite('<testcase name="a"><testcase name="b"/></testcase>'),
            LIMITS,
            Read([passed("a"), passed("b")], {"nested_case": 1}),
        ),
    ],
    ids=["deep", "deep in a case", "token", "empty", "html", "no case", "two documents", "nested cases"],
)
def test_where_reading_ends(text: str, limits: Limits, expected: Read) -> None:
    assert read_junit(text, limits=limits) == expected


def test_so_many_cases_and_no_more() -> None:
    text = suite(*(f'<testcase name="case number {number}"/>' for number in range(20_000)))
    read = read_junit(text, limits=Limits(cases=100))
    assert read.notes == {"too_many_cases": 1}
    assert 100 < len(read.cases) < 20_000


class Huge:
    """A file with eighty megabytes of output in the middle, which never lies in memory as a whole."""

    def __init__(self) -> None:
        self._pieces = self._made()

    def _made(self) -> Iterator[bytes]:
        yield b'<testsuite name="s"><testcase name="a"><failure message="m">'
        yield from (b"trace" * 20_000 for _ in range(400))
        yield b"</failure><system-out>"
        yield from (b"noise" * 20_000 for _ in range(400))
        yield b'</system-out></testcase><testcase name="b"/></testsuite>'

    def read(self, size: int) -> bytes:
        return next(self._pieces, b"")


def test_huge_output_is_never_held() -> None:
    notes = Notes()
    tracemalloc.start()
    cases = list(junit.read(Huge(), path=PATH, limits=LIMITS, notes=notes))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(one.name, one.outcome, len(one.trace) < 17_000) for one in cases] == [
        ("a", Outcome.FAILED, True),
        ("b", Outcome.PASSED, True),
    ]
    assert notes.counts == {"cut": 1}
    assert peak < 4 * MIB


@pytest.mark.parametrize(
    ("message", "evidence"),
    [
        ('{"num_red": 2, "num_green": 8, "flaky": true}', Evidence(True, 2, 8)),
        ('{"num_red": 0, "num_green": 8, "flaky": false}', Evidence(False, 0, 8)),
        ('{"num_red": 0, "num_green": 8}', Evidence(False, 0, 8)),
        ('{"num_red": "2", "num_green": 8, "flaky": true}', None),
        ('{"num_red": -1, "num_green": 8, "flaky": true}', None),
        ('{"num_red": 2, "flaky": true}', None),
        ('{"num_red": 2', None),
        ('{"num_red": ' + "[" * 100_000, None),
        ("requires CUDA", None),
    ],
)
def test_evidence_in_a_skip(message: str, evidence: Evidence | None) -> None:
    assert evidence_of(message) == evidence
