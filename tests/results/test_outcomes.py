"""A report's outcomes in a file: what is written is read, by us and by any reader, and no more of it than is asked."""

import io
import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage, default_storage
from pytest_django import Settings

from apps.results import outcomes
from apps.results.formats.cases import Outcome
from apps.results.names.canonical import AS_WRITTEN, Spelling
from apps.results.outcomes import About, Outcomes, Row, UnknownFormat

SPELLINGS = (AS_WRITTEN, Spelling(root="test/", ending=".py", class_device="PRIVATEUSE1", name_device="npu"))


@pytest.fixture(autouse=True)
def storage(tmp_path: Path, settings: Settings) -> Path:
    """A storage of the test's own."""
    place = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": tmp_path}}
    settings.STORAGES = settings.STORAGES | {"default": place}
    return tmp_path


def some(rows: int) -> Outcomes:
    """Outcomes of so many tests: 3, 6, 9 … in a shuffled order."""
    order = np.random.default_rng(5).permutation(rows)
    return Outcomes(
        test=((order + 1) * 3).astype(np.int64),
        outcome=(order % 9).astype(np.int8),
        attempts=(1 + order % 2).astype(np.int16),
        ms=np.where(order % 5, order, -1).astype(np.int32),
        reason=np.where(order % 9 == Outcome.SKIPPED, order % 7 + 1, -1).astype(np.int32),
        spelling=(order % 2).astype(np.int32),
        spellings=SPELLINGS,
    )


def by_rows(written: Outcomes) -> dict[str, list[Any]]:
    """What a reader should see of it."""
    order = np.argsort(written.test)
    shown = {name: getattr(written, name)[order].tolist() for name in outcomes.COLUMNS}
    return shown | {name: [None if value < 0 else value for value in shown[name]] for name in ("ms", "reason")}


def test_what_is_written_is_read() -> None:
    written = some(200)
    name = outcomes.write(written, report="01990b6e", revision=3)
    assert name == "outcomes/01990b6e/3.parquet"
    order = np.argsort(written.test)
    read = outcomes.read(name, outcomes.COLUMNS)
    assert {column: values.tolist() for column, values in read.items()} == {
        column: getattr(written, column)[order].tolist() for column in outcomes.COLUMNS
    }
    assert list(outcomes.read(name)) == ["test", "outcome"]
    assert outcomes.about(name) == About(1, "01990b6e", 3, SPELLINGS)


def test_any_reader_reads_it_as_it_lies(storage: Path) -> None:
    written = some(100)
    path = storage / outcomes.write(written, report="r", revision=1)
    table = pq.read_table(path)
    assert table.to_pydict() == by_rows(written)
    assert {field.name: str(field.type) for field in table.schema} == {
        "test": "int64",
        "outcome": "int8",
        "attempts": "int16",
        "ms": "int32",
        "reason": "int32",
        "spelling": "int32",
    }
    about = json.loads(table.schema.metadata[b"accelhub"])
    assert about == {
        "format": 1,
        "report": "r",
        "revision": 1,
        "outcomes": {
            "0": "passed",
            "1": "failed",
            "2": "error",
            "3": "skipped",
            "4": "xfailed",
            "5": "xpassed",
            "6": "flaky",
            "7": "lost",
            "8": "unknown",
        },
        "spelling_fields": [
            *("root", "separator", "ending", "file_parts", "head", "module_parts"),
            *("class_device", "name_device", "mark"),
        ],
        "spellings": [list(spelling) for spelling in SPELLINGS],
    }


def test_the_file_is_parquet_to_the_byte(storage: Path) -> None:
    """What a reader that is not Arrow's relies on: magic at both ends, the footer's length before the last."""
    data = (storage / outcomes.write(some(10), report="r", revision=1)).read_bytes()
    (footer,) = struct.unpack("<I", data[-8:-4])
    assert (data[:4], data[-4:], 0 < footer < len(data) - 12) == (b"PAR1", b"PAR1", True)
    assert b"ARROW:schema" not in data


def test_groups_have_statistics_and_ids_are_deltas(storage: Path) -> None:
    path = storage / outcomes.write(some(150_000), report="r", revision=1)
    metadata = pq.ParquetFile(path).metadata
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    assert [group.num_rows for group in groups] == [16_384] * 9 + [2_544]
    spans = [(group.column(0).statistics.min, group.column(0).statistics.max) for group in groups]
    assert (spans[0], spans[1], spans[9]) == ((3, 49_152), (49_155, 98_304), (442_371, 450_000))
    assert "DELTA_BINARY_PACKED" in groups[0].column(0).encodings
    assert metadata.row_group(0).sorting_columns[0].column_index == 0


class CountingFile(io.FileIO):
    """A file that counts the bytes that are read from it."""

    count = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(-1 if size is None else size)
        CountingFile.count += len(data)
        return data


class Counting(FileSystemStorage):
    def _open(self, name: str, mode: str = "rb") -> File:
        return File(CountingFile(self.path(name)))


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (3, Row(Outcome.PASSED, 1, None, None, SPELLINGS[0])),
        (12, Row(Outcome.SKIPPED, 2, 3, 4, SPELLINGS[1])),
        (200_001, Row(Outcome.SKIPPED, 1, 66_666, 6, SPELLINGS[0])),
        (4, None),  # between two
        (0, None),  # before all
        (1_000_000, None),  # behind all
    ],
)
def test_one_test_s_row(test: int, expected: Row | None) -> None:
    name = outcomes.write(some(150_000), report="r", revision=1)
    assert outcomes.row_of(name, test) == expected


def test_only_what_is_asked_for_is_fetched(storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "default_storage", Counting(location=storage))
    times = np.random.default_rng(6).integers(0, 2**30, 150_000, np.int32)
    name = outcomes.write(replace(some(150_000), ms=times), report="r", revision=1)
    size = default_storage.size(name)
    CountingFile.count = 0
    outcomes.row_of(name, 200_001)
    assert 0 < CountingFile.count < size * 0.6
    CountingFile.count = 0
    outcomes.read(name, ["outcome"])
    assert 0 < CountingFile.count < size * 0.3


def test_the_same_revision_again_replaces_the_file(storage: Path) -> None:
    first = outcomes.write(some(10), report="r", revision=1)
    assert outcomes.write(some(20), report="r", revision=1) == first
    assert len(outcomes.read(first)["test"]) == 20
    assert [path.name for path in (storage / "outcomes/r").iterdir()] == ["1.parquet"]


def test_a_report_without_tests_is_a_file_without_rows() -> None:
    name = outcomes.write(some(0), report="r", revision=1)
    assert {column: values.tolist() for column, values in outcomes.read(name).items()} == {"test": [], "outcome": []}
    assert outcomes.row_of(name, 3) is None


def test_a_test_with_two_rows_is_refused() -> None:
    written = some(10)
    written.test[3] = written.test[7]
    with pytest.raises(ValueError, match=f"test {written.test[7]} has two rows"):
        outcomes.write(written, report="r", revision=1)
    assert not default_storage.exists("outcomes/r/1.parquet")


@pytest.mark.parametrize("metadata", [None, {b"accelhub": b'{"format": 2}'}])
def test_a_file_of_another_format_is_refused(metadata: dict[bytes, bytes] | None) -> None:
    target = pa.BufferOutputStream()
    pq.write_table(pa.table({"test": [1], "outcome": [0]}).replace_schema_metadata(metadata), target)
    default_storage.save("other.parquet", ContentFile(target.getvalue().to_pybytes()))
    for read in (outcomes.read, outcomes.about):
        with pytest.raises(UnknownFormat, match="this hub reads 1"):
            read("other.parquet")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(None, -1), (0.0, 0), (0.0004, 0), (1.2345, 1234), (1e12, 2**31 - 1)],
)
def test_milliseconds(seconds: float | None, expected: int) -> None:
    assert outcomes.milliseconds([seconds]).tolist() == [expected]
