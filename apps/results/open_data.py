"""The catalogue's part of one report, as Parquet beside its outcomes: any reader joins them as they lie.

It is made while it is sent: kept, the names of every report would be most of what the hub stores. Rows of the catalogue
never change, so the same revision gives the same rows.
"""

import io
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from apps.results import outcomes
from apps.results.models import Reason, Report, Test
from apps.results.skips import classify

# So many rows are read and written at once: all that is held of the file.
ROWS_AT_ONCE = 20_000

TESTS = pa.schema(
    [
        pa.field("test", pa.int64(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("class_name", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
    ]
)
REASONS = pa.schema(
    [
        pa.field("reason", pa.int32(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("class", pa.string(), nullable=False),
    ]
)
# What the columns mean, for people. docs/names-and-skips.md prints it.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "tests": {
        "test": "the test's number, as in the outcomes; ascending, each once",
        "file": "the file it stands in; '' where nobody said",
        "class_name": "its class, without the device",
        "name": "its name, without the device",
    },
    "reasons": {
        "reason": "the message's number, as in the outcomes; ascending, each once",
        "text": "the message, as reports write it",
        "class": "its class, by the table of today",
    },
}
assert [list(columns) for columns in COLUMNS.values()] == [TESTS.names, REASONS.names]


def tests_of(report: Report) -> Iterator[bytes]:
    """The tests that a ready report names, as a Parquet file in pieces. Raises outcomes.Gone before the first."""
    numbers = outcomes.read(report.outcomes_name, ("test",))["test"].tolist()
    return _pieces(TESTS, _tests(numbers))


def reasons_of(report: Report) -> Iterator[bytes]:
    """The reasons for which a ready report skipped tests, with their classes, as a Parquet file in pieces. Raises
    outcomes.Gone before the first."""
    numbers = np.unique(outcomes.read(report.outcomes_name, ("reason",))["reason"])
    return _pieces(REASONS, _reasons(numbers[numbers >= 0].tolist()))


def _tests(numbers: list[int]) -> Iterator[list[tuple[object, ...]]]:
    for start in range(0, len(numbers), ROWS_AT_ONCE):
        found = Test.objects.filter(pk__in=numbers[start : start + ROWS_AT_ONCE]).order_by("pk")
        yield list(found.values_list(*("pk", "file", "class_name", "name")))


def _reasons(numbers: list[int]) -> Iterator[list[tuple[object, ...]]]:
    found = Reason.objects.filter(pk__in=numbers).order_by("pk").values_list("pk", "text")
    yield [(number, text, classify(text).value) for number, text in found]


def _pieces(schema: pa.Schema, groups: Iterator[list[tuple[object, ...]]]) -> Iterator[bytes]:
    """A Parquet file of these groups of rows, piece by piece."""
    sink = io.BytesIO()
    # The numbers ascend: what stands there is how far each is from the one before.
    numbers, *texts = schema.names
    with pq.ParquetWriter(
        sink,
        schema,
        compression="zstd",
        use_dictionary=texts,
        column_encoding={numbers: "DELTA_BINARY_PACKED"},
        sorting_columns=[pq.SortingColumn(0)],
        store_schema=False,
    ) as writer:
        for rows in groups:
            columns = list(zip(*rows, strict=True)) or [()] * len(schema)
            writer.write_table(pa.table([list(column) for column in columns], schema=schema))
            yield _taken(sink)
    yield _taken(sink)


def _taken(sink: io.BytesIO) -> bytes:
    """What was written since the last piece. The writer itself counts where it is."""
    piece = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return piece
