"""The catalogue: one row a test, whoever writes at once and wherever it is stopped; a known suite costs one query."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import uuid

import numpy as np
import pytest
from django.db import IntegrityError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from apps.core.errors import Problem
from apps.results import catalogue
from apps.results.models import Reason, SearchedTest, Test
from apps.results.names.canonical import Canonical, Original, digest_of, restore
from tests.factories.tests import NPU, catalogued, names
from tests.live import READY_SECONDS, ClonedDatabase


def originals_of(identified: catalogue.Identified) -> list[Original]:
    """The names again, from the catalogue's rows and the report's spellings."""
    rows = Test.objects.in_bulk(identified.tests.tolist())
    return [
        restore(Canonical(row.file, row.class_name, row.name, identified.spellings[spelling]))
        for row, spelling in (
            (rows[test], spelling)
            for test, spelling in zip(identified.tests.tolist(), identified.spelling.tolist(), strict=True)
        )
    ]


def test_new_names_are_written_once_and_known_from_then_on(cloned_database: ClonedDatabase) -> None:
    first = catalogue.identify(names(50), NPU)
    assert (first.added, first.collisions, len(set(first.tests.tolist()))) == (50, 0, 50)
    assert originals_of(first) == names(50)
    row = Test.objects.get(pk=first.tests[7])
    assert (row.file, row.class_name, row.name) == ("test_ops", "TestOps0", "test_7_<device>_float32")
    assert row.digest.bytes == digest_of(row.file, row.class_name, row.name)

    again = catalogue.identify(names(60), NPU)
    assert (again.added, again.tests[:50].tolist()) == (10, first.tests.tolist())
    assert Test.objects.count() == 60


def test_a_test_has_one_row_over_platforms(cloned_database: ClonedDatabase) -> None:
    ours = catalogue.identify([("test_x.py", "TestXPRIVATEUSE1", "test_a_npu_int8")], NPU)
    theirs = catalogue.identify([("", "test_x.TestXCUDA", "test_a_cuda_int8")], frozenset({"cuda"}))
    assert ours.tests.tolist() == theirs.tests.tolist()
    assert originals_of(theirs) == [("", "test_x.TestXCUDA", "test_a_cuda_int8")]


@pytest.mark.parametrize("count", [100, 3_000])
def test_a_known_suite_costs_one_query(cloned_database: ClonedDatabase, count: int) -> None:
    catalogue.identify(names(count), NPU)
    with CaptureQueriesContext(connection) as queries:
        identified = catalogue.identify(names(count), NPU)
    assert (len(queries), identified.added) == (1, 0)


def test_another_process_s_rows_are_seen(cloned_database: ClonedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    first = catalogue.identify(names(20), NPU)
    # What a process knows that looked before the others wrote.
    stale = catalogue.known()
    second = catalogue.identify(names(20, first=20), NPU)
    monkeypatch.setitem(catalogue._remembered, catalogue._database(), stale)
    with CaptureQueriesContext(connection) as queries:
        both = catalogue.identify(names(40), NPU)
    assert (len(queries), both.added) == (1, 0)
    assert both.tests.tolist() == first.tests.tolist() + second.tests.tolist()


def test_many_queries_of_the_refresh_read_everything(
    cloned_database: ClonedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = catalogue.identify(names(35), NPU)
    monkeypatch.setattr(catalogue, "_REFRESH_ROWS", 10)
    monkeypatch.setattr(catalogue, "_remembered", {})
    with CaptureQueriesContext(connection) as queries:
        assert catalogue.identify(names(35), NPU).tests.tolist() == first.tests.tolist()
    assert len(queries) == 4


def test_chunks_and_steps_change_nothing(cloned_database: ClonedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "CHUNK", 7)
    monkeypatch.setattr(catalogue, "STEP", 3)
    # One of the first chunk under another spelling, in the last one.
    double = ("", "test_ops.TestOps0PRIVATEUSE1", "test_3_npu_float32")
    identified = catalogue.identify([*names(40), double], NPU)
    assert (identified.added, identified.collisions) == (41, 1)
    assert originals_of(identified) == [*names(40), double]
    assert catalogue.identify(iter([*names(40), double]), NPU).tests.tolist() == identified.tests.tolist()


def test_an_empty_report_has_no_tests(cloned_database: ClonedDatabase) -> None:
    identified = catalogue.identify([], NPU)
    assert (identified.tests.tolist(), identified.spelling.tolist(), identified.added) == ([], [], 0)


def test_two_originals_of_a_report_never_merge(cloned_database: ClonedDatabase) -> None:
    same = [
        ("test_x.py", "TestX", "test_a_npu"),
        ("test_x.py", "TestXPRIVATEUSE1", "test_a_npu"),  # the same identity
        ("", "test_x.TestX", "test_a_npu"),
        ("test_x", "TestX", "test_a_<device>"),  # its own name is the identity of the first
        ("test_x.py", "TestX", "test_a_privateuse1"),
    ]
    identified = catalogue.identify(same, NPU)
    assert (identified.collisions, len(set(identified.tests.tolist()))) == (4, 5)
    assert originals_of(identified) == same
    rows = Test.objects.in_bulk(identified.tests.tolist())
    assert [(rows[pk].file, rows[pk].class_name, rows[pk].name) for pk in identified.tests.tolist()] == [
        ("test_x", "TestX", "test_a_<device>"),
        same[1],
        same[2],
        ("test_x", "TestX", "test_a_<device> #2"),
        same[4],
    ]
    # And they are the same rows the next time.
    assert catalogue.identify(same, NPU).tests.tolist() == identified.tests.tolist()


def test_names_of_any_length_and_of_any_characters(cloned_database: ClonedDatabase) -> None:
    odd = [
        ("test_x.py", "TestX", "test_" + "x" * 100_000),
        ("a\tb\\N\n.py", "Test\\.", "\\N"),
        ("", "", ""),
        ("test_x.py", "TestX", "nul \0 and half \ud800"),
    ]
    identified = catalogue.identify(odd, NPU)
    assert originals_of(identified) == [*odd[:3], ("test_x.py", "TestX", "nul \ufffd and half \ufffd")]
    assert catalogue.identify(odd, NPU).added == 0


def test_digests_are_compared_whole() -> None:
    """Three tests whose digests begin alike, and one that begins like them and is another."""
    high = 2**63 + 5
    among = catalogue.Known(
        np.array([1, high, high, high, 2**64 - 1], np.uint64),
        np.array([9, 30, 10, 20, 1], np.uint64),
        np.array([5, 3, 1, 2, 4], np.int64),
        5,
    )
    digests = [uuid.UUID(int=(first << 64) + last).bytes for first, last in [
        (high, 10), (high, 20), (high, 30), (high, 40), (1, 9), (2**64 - 1, 1), (2**64 - 1, 2), (7, 9),
    ]]  # fmt: skip
    assert catalogue.find(among, digests).tolist() == [1, 2, 3, 0, 5, 4, 0, 0]
    assert catalogue.find(catalogue._NOTHING, digests[:1]).tolist() == [0]


def test_writers_at_once_end_with_one_row_each(
    cloned_database: ClonedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "STEP", 50)
    monkeypatch.setattr(catalogue, "_remembered", {})
    together, found = threading.Barrier(4), {}

    def write(number: int) -> None:
        together.wait()
        # Each begins elsewhere, and all have the same names in the end.
        turned = names(2_000)[number * 500 :] + names(2_000)[: number * 500]
        identified = catalogue.identify(turned, NPU)
        found[number] = dict(zip(turned, identified.tests.tolist(), strict=True)), identified.added
        connections.close_all()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Test.objects.count() == 2_000
    assert [found[number][0] for number in range(4)] == [found[0][0]] * 4
    assert sum(added for _, added in found.values()) == 2_000


KILLED = """
    import django
    django.setup()
    from apps.results import catalogue
    from tests.factories.tests import NPU, names
    catalogue.STEP = 100
    print("begun", flush=True)
    catalogue.identify(names(60_000), NPU)
"""


def test_a_writer_that_is_killed_leaves_nothing_wrong(cloned_database: ClonedDatabase) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(KILLED)], env=cloned_database.environment, stdout=subprocess.PIPE
    )
    assert process.stdout
    assert process.stdout.readline() == b"begun\n"
    until = time.monotonic() + READY_SECONDS
    while Test.objects.count() < 500 and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    # The server ends the step that was under way, one way or the other.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", catalogue._TESTS_LOCK)
    written = Test.objects.count()
    assert 500 <= written < 60_000
    assert written % 100 == 0
    identified = catalogue.identify(names(60_000), NPU)
    assert identified.added == 60_000 - written
    assert Test.objects.count() == len(set(identified.tests.tolist())) == 60_000


def test_new_names_are_not_written_inside_a_transaction(cloned_database: ClonedDatabase) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        catalogue.identify(names(1), NPU)
    assert not Test.objects.exists()


def test_what_is_rolled_back_is_not_remembered(cloned_database: ClonedDatabase) -> None:
    with transaction.atomic():
        Test.objects.create(digest=uuid.UUID(bytes=digest_of("test_x", "TestX", "test_a")), name="test_a")
        assert len(catalogue.known().ids) == 1
        transaction.set_rollback(True)
    assert len(catalogue.known().ids) == 0


@pytest.mark.parametrize("role", ["origin", "replica"])
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE results_test SET name = name", "UPDATE on results_test is refused"),
        ("DELETE FROM results_test", "DELETE on results_test is refused"),
        ("TRUNCATE results_test CASCADE", "TRUNCATE on results_test is refused"),
        ("UPDATE results_reason SET text = ''", "UPDATE on results_reason is refused"),
        ("DELETE FROM results_reason", "DELETE on results_reason is refused"),
        ("TRUNCATE results_reason", "TRUNCATE on results_reason is refused"),
    ],
)
@pytest.mark.django_db
def test_the_catalogue_only_grows(statement: str, words: str, role: str) -> None:
    catalogued("test_a")
    catalogue.reason_ids(["requires CUDA"])
    before = list(Test.objects.values()), list(Reason.objects.values())
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL session_replication_role = {role}")
        with pytest.raises(IntegrityError) as caught, transaction.atomic():
            cursor.execute(statement)
    assert str(caught.value).splitlines()[0] == f"the catalogue only grows: {words}"
    assert (list(Test.objects.values()), list(Reason.objects.values())) == before


@pytest.mark.django_db
def test_a_reason_has_one_row() -> None:
    first = catalogue.reason_ids(["requires CUDA", "", "requires CUDA", "Skipped!"])
    assert list(first) == ["requires CUDA", "", "Skipped!"]
    assert catalogue.reason_ids(["Skipped!", "new \0"]) == {
        "Skipped!": first["Skipped!"],
        "new \0": Reason.objects.get(text="new \ufffd").pk,
    }
    assert Reason.objects.count() == 4
    assert catalogue.reason_ids([]) == {}


@pytest.mark.django_db
def test_too_many_reasons_of_a_report_share_one_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "REASONS_MAX", 3)
    found = catalogue.reason_ids(f"reason {number}" for number in range(6))
    texts = dict(Reason.objects.values_list("id", "text"))
    assert {message: texts[pk] for message, pk in found.items() if message in {f"reason {n}" for n in range(6)}} == {
        "reason 0": "reason 0",
        "reason 1": "reason 1",
        "reason 2": "reason 2",
        **dict.fromkeys(["reason 3", "reason 4", "reason 5"], catalogue.OVERFLOW),
    }
    assert len(texts) == 4


def test_the_search_index_is_filled_in_steps(cloned_database: ClonedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.results.tasks import fill_search

    monkeypatch.setattr(catalogue, "SEARCH_STEP", 10)
    catalogue.identify(names(35), NPU)
    assert catalogue.fill_search(steps=2) == 20
    assert SearchedTest.objects.count() == 20
    assert fill_search() == 15
    assert fill_search() == 0
    catalogue.identify(names(40), NPU)
    assert fill_search() == 5
    assert SearchedTest.objects.count() == 40


def test_one_process_at_a_time_fills_the_search_index(cloned_database: ClonedDatabase) -> None:
    catalogue.identify(names(5), NPU)
    filled = []

    def fill() -> None:
        filled.append(catalogue.fill_search(steps=1))
        connections.close_all()

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", catalogue._SEARCH_LOCK)
        thread = threading.Thread(target=fill)
        thread.start()
        thread.join()
    assert filled == [0]
    assert catalogue.fill_search(steps=1) == 5


@pytest.mark.django_db
def test_search() -> None:
    for name in ("test_add", "test_add_100%", "test_sub"):
        catalogued(name)
    catalogued("test_add", "TestY", "functorch/test_y.py")
    catalogue.fill_search(steps=1)

    def found(text: str, limit: int = 10) -> list[str]:
        return [str(test) for test in catalogue.search(text, limit=limit)]

    everything = ["test_x TestX test_add", "test_x TestX test_add_100%", "functorch/test_y TestY test_add"]
    assert found("test_add") == everything
    assert found("TESTX add") == everything[:2]
    assert found("functorch test_add") == everything[2:]
    assert found("100%") == everything[1:2]
    assert found("t%t") == found("test__dd") == found("add\\") == []
    assert found("test_", limit=2) == everything[:2]
    for text in ("", "ab", "test ab"):
        with pytest.raises(Problem) as caught:
            found(text)
        assert caught.value.code == "malformed"


@pytest.mark.django_db
def test_search_uses_its_index() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN SELECT test_id FROM results_searchedtest WHERE words ILIKE '%test_add%'")
        assert "results_searched_words" in "\n".join(row[0] for row in cursor.fetchall())
