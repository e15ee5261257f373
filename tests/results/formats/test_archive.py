"""Archives of every kind, whole, damaged and hostile: each file is read or says why not."""

import bz2
import gzip
import io
import struct
import tarfile
import zipfile
from collections.abc import Callable

import pytest

from apps.results.formats import archive
from apps.results.formats.archive import REFUSALS, UploadRefused
from apps.results.formats.cases import Notes
from apps.results.formats.limits import Limits
from tests.results.formats.reading import File, Opened, read_upload

KIB, MIB = 1 << 10, 1 << 20
LOG = (
    b'{"nodeid": "t.py::test_log", "outcome": "passed", "when": "call", "$report_type": "TestReport"}\n'
    b'{"nodeid": "t.py::test_log", "outcome": "passed", "when": "teardown", "$report_type": "TestReport"}\n'
    b'{"$report_type": "SessionFinish"}\n'
)


def xml(name: str, size: int = 0) -> bytes:
    """A report with one case, and as much output."""
    return f'<testsuite name="s"><testcase name="{name}"/><system-out>{"x" * size}</system-out></testsuite>'.encode()


def zipped(*files: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        for name, data in files:
            made.writestr(name, data)
    return out.getvalue()


def tarred(*files: tuple[str, bytes], form: int = tarfile.PAX_FORMAT, types: dict[str, bytes] | None = None) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as made:
        for name, data in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            made.addfile(entry, io.BytesIO(data))
        for name, kind in (types or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            made.addfile(entry)
    return out.getvalue()


A, B = ("r/a.xml", xml("a")), ("r/b.jsonl", LOG)
READ_A: File = ("r/a.xml", "junit", ["a"], {})
READ_B: File = ("r/b.jsonl", "reportlog", ["test_log"], {})
BOTH = Opened([READ_A, READ_B], {})


@pytest.mark.parametrize(
    "data",
    [
        zipped(A, B),
        zipped(A, B, method=zipfile.ZIP_STORED),
        tarred(A, B),
        tarred(A, B, form=tarfile.USTAR_FORMAT),
        tarred(A, B, form=tarfile.GNU_FORMAT),
        gzip.compress(tarred(A, B)),
        zipped(("r/", b""), A, B),
        zipped(("r/a.xml", gzip.compress(A[1])), B),
        gzip.compress(tarred(("./r/a.xml", gzip.compress(A[1])), B)),
    ],
    ids=["zip", "stored", "pax", "ustar", "gnu", "tar.gz", "folder", "gz in zip", "gz in tar.gz"],
)
def test_every_kind_is_read_whatever_it_is_called(data: bytes) -> None:
    assert read_upload(data, name="anything.bin") == BOTH


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress], ids=["plain", "gz"])
def test_a_report_alone_is_read(pack: Callable[[bytes], bytes]) -> None:
    assert read_upload(pack(xml("a")), name="a.xml") == Opened([("a.xml", "junit", ["a"], {})], {})
    assert read_upload(pack(LOG), name="b") == Opened([("b", "reportlog", ["test_log"], {})], {})


def test_gzip_files_in_a_row_are_one() -> None:
    text = xml("a")
    data = gzip.compress(text[:20]) + gzip.compress(text[20:]) + bytes(512)
    assert read_upload(data, name="a") == Opened([("a", "junit", ["a"], {})], {})


def test_long_names_are_read_in_every_format_of_tar() -> None:
    name = "/".join(["folder" * 10] * 6) + "/a.xml"
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        assert read_upload(tarred((name, xml("a")), B, form=form)).files == [(name, "junit", ["a"], {}), READ_B]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/a.xml", "etc/a.xml"),
        ("/abs/a.xml", "abs/a.xml"),
        ("C:\\r\\a.xml", "r/a.xml"),
        ("r/\x1b[31ma\u202e.xml", "r/\ufffd[31ma\ufffd.xml"),
        ("x" * 1_200, "x" * 1_000),
        ("..", "unnamed"),
    ],
)
def test_names_are_cleaned_and_their_files_read(name: str, shown: str) -> None:
    expected = Opened([(shown, "junit", ["a"], {"path": 1})], {})
    assert read_upload(zipped((name, xml("a")))) == expected
    assert read_upload(tarred((name, xml("a")))) == expected


def test_files_of_one_name_are_all_read() -> None:
    again = ("r/a.xml", xml("again"))
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = zipped(A, again)
    expected = Opened([READ_A, ("r/a.xml", "junit", ["again"], {"same_path": 1})], {})
    assert read_upload(data) == read_upload(tarred(A, again)) == expected


def test_what_is_no_report_is_left_out() -> None:
    files = [("log.txt", b"hello"), ("empty.xml", b""), ("page.xml", b"<html/>"), A]
    expected = Opened(
        [
            ("log.txt", "", [], {"not_a_report": 1}),
            ("empty.xml", "", [], {"not_a_report": 1}),
            ("page.xml", "junit", [], {"no_suite": 1}),
            READ_A,
        ],
        {},
    )
    assert read_upload(zipped(*files)) == read_upload(tarred(*files)) == expected


@pytest.mark.parametrize(
    ("inner", "code"),
    [
        (zipped(A), "nested"),
        (tarred(A), "nested"),
        (gzip.compress(tarred(A)), "nested"),
        (gzip.compress(gzip.compress(xml("a"))), "nested"),
        (bz2.compress(xml("a")), "method"),
        (b"7z\xbc\xaf\x27\x1c and more", "method"),
    ],
    ids=["zip", "tar", "tar.gz", "gz in gz", "bz2", "7z"],
)
def test_archives_in_archives_are_not_opened(inner: bytes, code: str) -> None:
    expected = Opened([("inner", "", [], {code: 1}), READ_A], {})
    assert read_upload(zipped(("inner", inner), A)) == read_upload(tarred(("inner", inner), A)) == expected


def test_links_and_devices_are_left_out() -> None:
    kinds = {"sym": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "dev": tarfile.CHRTYPE, "pipe": tarfile.FIFOTYPE}
    left_out: list[File] = [(name, "", [], {"link": 1}) for name in kinds]
    assert read_upload(tarred(A, types=kinds)) == Opened([READ_A, *left_out], {})
    link = zipfile.ZipInfo("sym")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    assert read_upload(zipped((link, b"/etc/passwd"), A)) == Opened([("sym", "", [], {"link": 1}), READ_A], {})


def test_encrypted_files_and_other_methods_are_left_out() -> None:
    data = bytearray(zipped(A, B))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    assert read_upload(bytes(data)) == Opened([("r/a.xml", "", [], {"encrypted": 1}), READ_B], {})
    assert read_upload(zipped(A, method=zipfile.ZIP_LZMA)) == Opened([("r/a.xml", "", [], {"method": 1})], {})


def test_one_bad_file_does_not_stop_the_others() -> None:
    data = bytearray(zipped(A, B, method=zipfile.ZIP_STORED))
    data[data.index(b"<testsuite") + 20] ^= 1  # the checksum no longer fits
    assert read_upload(bytes(data)) == Opened(
        [("r/a.xml", "", [], {"archive_damaged": 1, "not_a_report": 1}), READ_B], {}
    )


def test_a_bomb_is_cut_at_its_ratio() -> None:
    limits = Limits(ratio=50, ratio_floor=64 * KIB)
    bomb = xml("a", 4 * MIB)
    notes = {"ratio": 1, "truncated": 1}
    assert read_upload(zipped(("bomb", bomb), A), limits=limits) == Opened(
        [("bomb", "junit", ["a"], notes), READ_A], {}
    )
    assert read_upload(gzip.compress(bomb), name="bomb", limits=limits) == Opened([("bomb", "junit", ["a"], notes)], {})
    within = read_upload(gzip.compress(tarred(("bomb", bomb), A)), limits=limits)
    assert within.notes == {"ratio": 1, "archive_damaged": 1}


def test_a_bomb_that_lies_about_its_size_is_cut_all_the_same() -> None:
    bomb = zipped(("bomb", xml("a", 4 * MIB)), A)
    lying = bomb.replace(struct.pack("<L", len(xml("a", 4 * MIB))), struct.pack("<L", 100))
    read = read_upload(lying)
    assert read.files[0][3] == {"archive_damaged": 1, "not_a_report": 1}
    assert read.files[1:] == [READ_A]


def test_a_file_is_cut_at_its_size_and_an_upload_at_what_it_expands_to() -> None:
    big = xml("big", 300 * KIB)
    limits = Limits(member=200 * KIB)
    cut = ("big", "junit", ["big"], {"too_large": 1, "truncated": 1})
    assert read_upload(zipped(("big", big), A), limits=limits) == Opened([cut, READ_A], {})
    assert read_upload(tarred(("big", big), A), limits=limits) == Opened([cut, READ_A], {})
    limits = Limits(expanded=200 * KIB)
    cut = ("big", "junit", ["big"], {"expanded": 1, "truncated": 1})
    assert read_upload(zipped(("big", big), A), limits=limits) == Opened([cut], {"expanded": 1})


def test_so_many_files_and_no_more() -> None:
    limits = Limits(files=2)
    files = [(f"{number}.xml", xml("a")) for number in range(4)]
    expected = Opened([(name, "junit", ["a"], {}) for name, _ in files[:2]], {"too_many_files": 1})
    assert read_upload(zipped(*files), limits=limits) == read_upload(tarred(*files), limits=limits) == expected


def test_a_tar_that_ends_early_gives_what_was_complete() -> None:
    data = tarred(A, ("r/b.xml", xml("b", 5_000)))
    read = read_upload(data[: 512 + 512 + 512 + 1_000])
    notes = {"archive_damaged": 1, "truncated": 1}
    assert read == Opened([READ_A, ("r/b.xml", "junit", ["b"], notes)], {"archive_damaged": 1})


def test_headers_of_a_tar_that_make_no_sense_end_it() -> None:
    huge = tarfile.TarInfo("x")
    huge.type, huge.size = b"x", 1 << 40
    for tail in (huge.tobuf(tarfile.USTAR_FORMAT if huge.size < 1 << 33 else tarfile.GNU_FORMAT), b"nonsense" * 64):
        read = read_upload(tarred(A)[:1024] + tail + bytes(1024))
        assert read == Opened([READ_A], {"archive_damaged": 1})


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty"),
        (b"hello", "not_a_report"),
        (bz2.compress(xml("a")), "not_a_report"),
        (zipped(A)[:-30], "archive_damaged"),
        (b"PK\x03\x04", "archive_damaged"),
        (b"\x1f\x8bnonsense", "archive_damaged"),
        (gzip.compress(xml("a"))[:11], "archive_damaged"),
        (zipped(*((f"{number:0200}", b"") for number in range(100))), "directory"),
        (bytes(70 * KIB) + xml("a"), "too_large"),
    ],
    ids=["empty", "text", "bz2", "zip cut", "zip's start", "no gzip", "gzip cut", "long directory", "large"],
)
def test_what_cannot_be_opened_at_all_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(UploadRefused) as refused:
        read_upload(data, limits=Limits(compressed=64 * KIB, directory=8 * KIB))
    assert refused.value.code == code
    assert str(refused.value).startswith(REFUSALS[code])


def test_a_gzip_file_that_ends_early_gives_what_was_complete() -> None:
    text = b"".join((b'<testsuite name="s">', *(f'<testcase name="{n * 7919}"/>'.encode() for n in range(9_999))))
    (member,) = archive.members(io.BytesIO(gzip.compress(text)[:-5_000]), name="a", limits=Limits(), notes=Notes())
    assert 0 < len(list(member.cases())) < 9_999
    assert member.notes.counts.keys() - {"dropped"} == {"archive_damaged", "truncated"}
