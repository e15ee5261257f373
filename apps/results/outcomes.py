"""The outcomes of a report as one Parquet file in Django's storage: open data, which any reader reads as it lies.

A row a test, in ascending order of its number in the catalogue, in row groups with statistics: a column is read alone,
and one test's row without the others. docs/names-and-skips.md says what columns and metadata mean.
"""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from django.core.files.base import ContentFile, File
from django.core.files.storage import default_storage
from numpy.typing import NDArray

from apps.core.errors import Problem
from apps.results.formats.cases import Outcome
from apps.results.names.canonical import Spelling, spelling_of

FORMAT = 1
KEY = b"accelhub"
# Small enough that one test of a report is found in a millisecond; the file grows by one per cent against 65,536.
ROWS_A_GROUP = 16_384
MS_MAX = 2**31 - 1
ATTEMPTS_MAX = 2**15 - 1

SCHEMA = pa.schema(
    [
        pa.field("test", pa.int64(), nullable=False),
        pa.field("outcome", pa.int8(), nullable=False),
        pa.field("attempts", pa.int16(), nullable=False),
        pa.field("ms", pa.int32()),
        pa.field("reason", pa.int32()),
        pa.field("spelling", pa.int32(), nullable=False),
    ]
)
# What the columns mean, for people. docs/names-and-skips.md prints it.
COLUMNS: Mapping[str, str] = {
    "test": "the test's number in the catalogue; ascending, each once",
    "outcome": ", ".join(f"{outcome.value} {outcome.label}" for outcome in Outcome),
    "attempts": "how often it was run in this report",
    "ms": "how long it took, in milliseconds; null where nobody said",
    "reason": "the number of the skip's message in the catalogue; null where it was not skipped",
    "spelling": "which of the file's `spellings` says how this report writes the name",
}
assert set(COLUMNS) == set(SCHEMA.names)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """A report's outcomes, row by row in any order. `ms` and `reason` hold -1 where there is none."""

    test: NDArray[np.int64]
    outcome: NDArray[np.int8]
    attempts: NDArray[np.int16]
    ms: NDArray[np.int32]
    reason: NDArray[np.int32]
    spelling: NDArray[np.int32]
    spellings: Sequence[Spelling]


class Row(NamedTuple):
    """One test's outcome."""

    outcome: Outcome
    attempts: int
    ms: int | None
    reason: int | None
    spelling: Spelling


@dataclass(frozen=True, slots=True)
class About:
    """What a file says about itself."""

    format: int
    report: str
    revision: int
    spellings: tuple[Spelling, ...]


class UnknownFormat(ValueError):
    """The file is not one of ours, or of a later version."""


class Gone(Problem):
    """The file went away after its row was read: the report was read anew, or taken down."""

    def __init__(self) -> None:
        super().__init__("report_unready", "The report was read anew or taken down meanwhile: ask again.")


def opened(name: str) -> File:
    """A stored file, open to be read. Raises Gone."""
    try:
        return default_storage.open(name)
    except FileNotFoundError:
        raise Gone from None


def milliseconds(seconds: Sequence[float | None]) -> NDArray[np.int32]:
    """Seconds as the column keeps them: whole milliseconds, -1 for None."""
    said = np.array(seconds, np.float64)  # None is no number
    return np.where(np.isnan(said), -1, np.minimum(np.rint(said * 1_000), MS_MAX)).astype(np.int32)


def name_of(report: str, revision: int) -> str:
    """Where a report's outcomes lie in the storage."""
    return f"outcomes/{report}/{revision}.parquet"


def write(outcomes: Outcomes, *, report: str, revision: int) -> str:
    """Store a report's outcomes under its public id. Returns the file's name.

    The same revision again replaces the file: whoever was stopped in the middle begins anew. Raises ValueError where a
    test has two rows, or lists differ in length.
    """
    name = name_of(report, revision)
    data = _parquet(outcomes, report=report, revision=revision)
    if default_storage.exists(name):
        default_storage.delete(name)
    return default_storage.save(name, ContentFile(data))


def _parquet(outcomes: Outcomes, *, report: str, revision: int) -> bytes:
    order = np.argsort(outcomes.test, kind="stable")
    test = outcomes.test[order]
    if (again := np.flatnonzero(test[1:] == test[:-1])).size:
        raise ValueError(f"test {test[again[0]]} has two rows: settle its attempts, and keep collisions apart.")
    about = {
        "format": FORMAT,
        "report": report,
        "revision": revision,
        "outcomes": {str(outcome.value): outcome.label for outcome in Outcome},
        "spelling_fields": Spelling._fields,
        "spellings": outcomes.spellings,
    }
    table = pa.table(
        [
            pa.array(test),
            pa.array(outcomes.outcome[order], pa.int8()),
            pa.array(outcomes.attempts[order], pa.int16()),
            _or_null(outcomes.ms[order]),
            _or_null(outcomes.reason[order]),
            pa.array(outcomes.spelling[order], pa.int32()),
        ],
        schema=SCHEMA,
    )
    target = io.BytesIO()
    with pq.ParquetWriter(
        target,
        SCHEMA,
        compression="zstd",
        use_dictionary=["outcome", "attempts", "reason", "spelling"],
        column_encoding={"test": "DELTA_BINARY_PACKED", "ms": "DELTA_BINARY_PACKED"},
        sorting_columns=[pq.SortingColumn(0)],
        # Arrow's own copy of the schema says nothing that Parquet's does not.
        store_schema=False,
    ) as writer:
        writer.write_table(table, row_group_size=ROWS_A_GROUP)
        writer.add_key_value_metadata({KEY: json.dumps(about, separators=(",", ":"))})
    return target.getvalue()


def _or_null(values: NDArray[np.int32]) -> Any:
    return pa.array(values, pa.int32(), mask=values < 0)


def read(name: str, columns: Iterable[str] = ("test", "outcome")) -> dict[str, NDArray[Any]]:
    """Columns of a stored file as arrays, -1 for null. Only these columns are fetched and decoded. Raises Gone."""
    wanted = list(columns)
    with opened(name) as stored, pq.ParquetFile(stored) as file:
        _check(file)
        table = file.read(columns=wanted)
    return {column: table[column].fill_null(-1).to_numpy() for column in wanted}


def about(name: str) -> About:
    """What a stored file says about itself."""
    with opened(name) as stored, pq.ParquetFile(stored) as file:
        return _check(file)


def row_of(name: str, test: int) -> Row | None:
    """One test's outcome, None where the report does not have it. Only the row group that may hold it is read. Raises
    Gone."""
    with opened(name) as stored, pq.ParquetFile(stored) as file:
        groups = [at for at in range(file.num_row_groups) if _may_hold(file.metadata.row_group(at), test)]
        if not groups:
            return None
        # In this thread alone: starting others takes longer than the decoding.
        group = file.read_row_group(groups[0], use_threads=False)
        tests = group["test"].to_numpy()
        at = int(np.searchsorted(tests, test))
        if at == len(tests) or tests[at] != test:
            return None
        rest = group.slice(at, 1).to_pylist()[0]
        spellings = _check(file).spellings
    return Row(Outcome(rest["outcome"]), rest["attempts"], rest["ms"], rest["reason"], spellings[rest["spelling"]])


def outcome_of(name: str, tests: Sequence[int]) -> Outcome | None:
    """How one test ended, under the first of its numbers that the report has; None where it has none of them. For many
    files: a third of what row_of costs, since the file is read at once and only two columns are decoded."""
    with opened(name) as stored, pq.ParquetFile(pa.BufferReader(stored.read())) as file:
        _check(file)
        for test in tests:
            groups = [at for at in range(file.num_row_groups) if _may_hold(file.metadata.row_group(at), test)]
            if not groups:
                continue
            found = file.read_row_group(groups[0], columns=["test", "outcome"], use_threads=False)
            numbers = found["test"].to_numpy()
            at = int(np.searchsorted(numbers, test))
            if at < len(numbers) and numbers[at] == test:
                return Outcome(found["outcome"][at].as_py())
    return None


def outcomes_of(name: str, tests: Iterable[int]) -> dict[int, Outcome]:
    """How each of these tests ended, by number; those that the report does not have are left out. Only the row groups
    that may hold one are decoded. Raises Gone."""
    wanted = np.unique(np.fromiter(tests, np.int64))
    answer: dict[int, Outcome] = {}
    with opened(name) as stored, pq.ParquetFile(pa.BufferReader(stored.read())) as file:
        _check(file)
        for at in range(file.num_row_groups):
            if not any(_may_hold(file.metadata.row_group(at), test) for test in wanted.tolist()):
                continue
            found = file.read_row_group(at, columns=["test", "outcome"], use_threads=False)
            is_wanted = np.isin(found["test"].to_numpy(), wanted)
            numbers = found["test"].to_numpy()[is_wanted].tolist()
            codes = found["outcome"].to_numpy()[is_wanted].tolist()
            answer |= {number: Outcome(code) for number, code in zip(numbers, codes, strict=True)}
    return answer


def _may_hold(group: Any, test: int) -> bool:
    statistics = group.column(0).statistics
    # A file without rows has a group without any.
    return statistics is not None and bool(statistics.min <= test <= statistics.max)


def _check(file: pq.ParquetFile) -> About:
    """The file's word about itself. Raises UnknownFormat where this hub cannot read it."""
    said = json.loads((file.metadata.metadata or {}).get(KEY, b"{}"))
    if said.get("format") != FORMAT:
        raise UnknownFormat(f"format {said.get('format')}: this hub reads {FORMAT}. Read it with a newer hub.")
    return About(FORMAT, said["report"], said["revision"], tuple(spelling_of(values) for values in said["spellings"]))
