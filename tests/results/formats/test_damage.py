"""Whatever happens to a file on its way: reading never raises, and never finds more than the file holds."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from apps.results.formats import junit
from apps.results.formats.archive import UploadRefused
from apps.results.formats.cases import NOTES, Case, Notes, Outcome
from apps.results.formats.limits import Limits
from apps.results.formats.texts import FORBIDDEN
from tests.results.formats.reading import PATH, Read, read_junit, read_log, read_upload

FILES = {path.name: path.read_bytes() for path in sorted((Path(__file__).parent / "corpus").iterdir())}
REPORTS = [data for name, data in FILES.items() if name.endswith(".xml")]
LOGS = [data for name, data in FILES.items() if name.endswith(".jsonl")]
# What makes a case: an element, or a suite that lost some.
ELEMENTS = (b"<testcase", b"<testsuite", b"<error", b"<failure")
HEAD = 300  # bytes that a first read surely brings; encoding and document type stand in them
# Small, so that each is met.
LIMITS = Limits(
    depth=8, token=4_000, cases=6, running=3, line=400, message=20, trace=30, path=40, files=4, member=3_000
)

# Where, how many bytes go, and what comes in their place: a cut, a flip, an insertion.
pieces = st.one_of(
    st.binary(max_size=6),
    st.sampled_from(
        [b"<", b">", b"&", b"]]>", b"<!--", b"<![CDATA[", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"&#0;", b"&#x1b"]
    ),
    st.sampled_from([b"<testcase ", b"</testcase>", b"<error/>", b"{", b"}", b'"', b"\\ud800", b"9999", b"9" * 400]),
    st.sampled_from([b"<testsuite tests='9' failures='9'>", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"<a>" * 20, b"\n"]),
    st.sampled_from(
        [b"<?xml version='1.0' encoding='utf-16'?>", b'"$report_type"', b'"outcome": "failed"', b'"when": 1']
    ),
)
damages = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), pieces), max_size=6)
cuts = st.one_of(st.none(), st.floats(0, 1))


def damaged(data: bytes, damage: list[tuple[float, int, bytes]], cut: float | None) -> bytes:
    for place, gone, piece in damage:
        at = int(place * len(data))
        data = data[:at] + piece + data[at + gone :]
    return data if cut is None else data[: int(cut * len(data))]


def check(cases: list[Case], notes: dict[str, int], most: int) -> None:
    assert len(cases) <= most
    assert set(notes) <= set(NOTES)
    for case in cases:
        assert not any(FORBIDDEN.search(text) for text in (*case[:3], case.message, case.trace, case.word))
        assert case.seconds is None or 0 <= case.seconds <= LIMITS.seconds
        assert (case.outcome is Outcome.UNKNOWN) == bool(case.word)


@given(st.sampled_from(REPORTS), damages, cuts, st.sampled_from([Limits(), LIMITS]))
@example(b"<testsuite><testcase name='a'>" + b"<failure>" * 3, [], None, LIMITS)
def test_junit(data: bytes, damage: list[tuple[float, int, bytes]], cut: float | None, limits: Limits) -> None:
    data = damaged(data, damage, cut)
    cases, notes = read_junit(data, limits=limits)
    check(cases, notes, sum(data.count(element) for element in ELEMENTS))


@given(st.sampled_from(LOGS), damages, cuts, st.sampled_from([Limits(), LIMITS]))
def test_logs(data: bytes, damage: list[tuple[float, int, bytes]], cut: float | None, limits: Limits) -> None:
    data = damaged(data, damage, cut)
    cases, notes = read_log(data, limits=limits)
    check(cases, notes, len(data.split(b"\n")))


def without(notes: dict[str, int], codes: set[str]) -> dict[str, int]:
    return {code: count for code, count in notes.items() if code not in codes}


class Trickle:
    """A file that comes a few bytes at a time."""

    def __init__(self, data: bytes, most: int) -> None:
        self._stream, self._most = io.BytesIO(data), HEAD
        self._then = most

    def read(self, size: int) -> bytes:
        data = self._stream.read(min(size, self._most))
        self._most = self._then
        return data


@given(st.sampled_from(REPORTS), damages, st.integers(20, 90))
def test_it_does_not_matter_in_which_pieces_a_file_comes(
    data: bytes, damage: list[tuple[float, int, bytes]], most: int
) -> None:
    data = data[:HEAD] + damaged(data[HEAD:], damage, None)
    notes = Notes()
    cases = list(junit.read(Trickle(data, most), path=PATH, limits=Limits(), notes=notes))
    whole = read_junit(data)
    # Characters are replaced before the parser sees them, so past an end by damage nobody counts them alike.
    ahead = {"characters"}
    assert Read(cases, without(notes.counts, ahead)) == Read(whole.cases, without(whole.notes, ahead))


@given(st.sampled_from(REPORTS), st.floats(0, 1))
def test_a_cut_takes_cases_and_never_changes_one_that_is_whole(data: bytes, cut: float) -> None:
    whole, rest = read_junit(data), read_junit(data[: int(cut * len(data))])
    known = set(whole.cases)
    # What a cut may add: the case it went through, where that was red, and suites that now have lost some.
    odd = [case for case in rest.cases if case not in known and case.outcome is not Outcome.LOST]
    assert len(odd) <= 1
    assert all(case.outcome in (Outcome.FAILED, Outcome.ERROR, Outcome.XPASSED) for case in odd)


def _zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in FILES.items():
            made.writestr(name, data)
    return out.getvalue()


def _tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as made:
        for name, data in FILES.items():
            entry = tarfile.TarInfo(f"é/{name}")
            entry.size = len(data)
            made.addfile(entry, io.BytesIO(data))
    return out.getvalue()


ARCHIVES = [_zip(), _tar(), gzip.compress(_tar()), gzip.compress(REPORTS[0])]


@given(st.sampled_from(ARCHIVES), damages, cuts, st.sampled_from([Limits(), LIMITS]))
def test_archives(data: bytes, damage: list[tuple[float, int, bytes]], cut: float | None, limits: Limits) -> None:
    data = damaged(data, damage, cut)
    try:
        read = read_upload(data, limits=limits)
    except UploadRefused:
        return
    assert len(read.files) <= limits.files
    for path, _, _, notes in read.files:
        assert 0 < len(path) <= limits.path
        assert set(notes) <= set(NOTES)
    assert set(read.notes) <= set(NOTES)
