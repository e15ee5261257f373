"""From an upload to its final receipt: counts, findings, outcomes, files; and what stands in the way of it."""

import gzip
import io
import tarfile
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.test import Client

from apps.core.clock import now
from apps.core.models import Wakeup
from apps.platforms.models import Repository
from apps.results import leases, outcomes, parsing
from apps.results.formats.archive import REFUSALS
from apps.results.formats.cases import NOTES
from apps.results.formats.limits import Limits
from apps.results.models import Finding, Report, Test
from apps.results.parsing import TRACE_LEFT_OUT, TRACES_OF_A_FAILURE, parse, trimmed
from tests.factories.listing import listed
from tests.factories.pages import Page
from tests.live import ClonedDatabase
from tests.relay.downstream import Downstream
from tests.relay.test_callback import KESTREL
from tests.results.reporter import JUNIT, ended, failing, junit, passing, received, upload


@pytest.fixture
def kestrel(
    cloned_database: ClonedDatabase, storage_folder: Path, downstream: Callable[..., Downstream], client: Client
) -> Downstream:
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    # As a raise to L3 leaves it.
    Repository.objects.update(device="npu")
    return made


def parsed(name: str) -> str:
    return parse(report_pk=Report.objects.get(public_id=name).pk, clock=now)


def receipt(name: str) -> dict[str, Any]:
    answer: dict[str, Any] = Client().get(f"/api/v1/reports/{name}/").json()
    return answer


def counts(**some: int) -> dict[str, int]:
    words = ("passed", "failed", "error", "skipped", "xfailed", "xpassed", "flaky", "lost", "unknown")
    return {"total": sum(some.values())} | dict.fromkeys(words, 0) | some


def test_an_upload_becomes_a_receipt_outcomes_and_findings(kestrel: Downstream) -> None:
    name = received(upload(kestrel, ("out.xml", JUNIT)))
    assert parsed(name) == "ready"
    file = {"name": "out.xml", "state": "parsed", "parsed": 3, "dropped": 0, "notes": []}
    assert receipt(name) == {
        "id": name,
        "variant": "default",
        "state": "ready",
        "progress": 100,
        "counts": counts(passed=1, failed=1, skipped=1),
        "files": [file],
        "flags": [],
        "shards": {"declared": 1, "missing": []},
        "quarantined": 0,
        "raw_removed_at": None,
        "reason": "",
    }
    report = Report.objects.get(public_id=name)
    columns = outcomes.read(report.outcomes_name, ("test", "outcome", "attempts", "ms"))
    tests = {test.pk: (test.file, test.class_name, test.name) for test in Test.objects.all()}
    assert {
        tests[test]: (outcome, attempts, ms)
        for test, outcome, attempts, ms in zip(*(column.tolist() for column in columns.values()), strict=True)
    } == {
        ("test_foo", "TestFoo", "test_a_<device>_float32"): (0, 1, 500),
        ("test_foo", "TestFoo", "test_b_<device>_float32"): (1, 1, 100),
        ("test_foo", "TestFoo", "test_c_<device>"): (3, 1, -1),
    }
    finding = Finding.objects.get()
    assert (finding.test.name, finding.outcome, finding.message, finding.attempts) == (
        "test_b_<device>_float32",
        "failed",
        "boom",
        1,
    )
    assert finding.trace == "Traceback: AssertionError: boom"
    assert len(bytes(finding.fingerprint)) == 16
    assert parsed(name) == "nothing to do"
    page = Page(Client().get(f"/reports/{name}/"))
    assert page.facts["state"]["State"].startswith("◆ ready") or "ready" in page.facts["state"]["State"]
    assert "report_ready" in set(Wakeup.objects.values_list("topic", flat=True))


def test_a_shard_that_comes_later_is_read_with_the_others(kestrel: Downstream) -> None:
    key: dict[str, Any] = {"report_key": "k", "shards": 2}
    name = received(upload(kestrel, junit(passing("test_a"), passing("test_b")), shard=2, **key))
    parsed(name)
    first = receipt(name)
    assert (first["counts"], first["flags"]) == (counts(passed=2), ["shards_missing"])
    assert first["shards"] == {"declared": 2, "missing": [1]}
    old = Report.objects.get().outcomes_name
    received(upload(kestrel, junit(failing("test_c"), failing("test_a")), shard=1, **key))
    assert receipt(name)["state"] == "received"
    assert parsed(name) == "ready"
    assert (receipt(name)["counts"]["total"], receipt(name)["flags"]) == (3, [])
    assert Report.objects.get().revision == 2
    from apps.core.wakeups import drain

    assert default_storage.exists(old)
    drain()
    assert not default_storage.exists(old)
    assert default_storage.exists(Report.objects.get().outcomes_name)


def test_a_shard_that_comes_while_the_others_are_read_leads_to_another_revision(kestrel: Downstream) -> None:
    key: dict[str, Any] = {"report_key": "k", "shards": 2}
    name = received(upload(kestrel, junit(passing("test_a")), shard=1, **key))
    report = Report.objects.get()
    came: list[Any] = []

    def clock() -> Any:
        # The first look at the clock takes the report, the next ones say that the worker is alive.
        if report.pk and Report.objects.get().state == "parsing" and not came:
            came.append(upload(kestrel, junit(passing("test_b")), shard=2, **key).json()["status"])
        return now()

    assert parse(report_pk=report.pk, clock=clock) == "ready"
    report.refresh_from_db()
    assert (came, report.state, report.revision, report.wanted) == (["received"], "ready", 1, 2)
    assert Wakeup.objects.filter(topic="report_received", key=str(report.pk)).exists()
    assert parsed(name) == "ready"
    assert receipt(name)["counts"] == counts(passed=2)


def test_a_report_that_is_taken_down_meanwhile_leaves_nothing(kestrel: Downstream, storage_folder: Path) -> None:
    from apps.core.wakeups import drain
    from apps.results.removal import remove_report
    from tests.factories.listing import TESTS

    name = received(upload(kestrel))
    report = Report.objects.get()

    def clock() -> Any:
        if Report.objects.get().state == "parsing":
            remove_report(report=report, reason="a secret", actor=TESTS, now=now())
        return now()

    assert parse(report_pk=report.pk, clock=clock) == "lost"
    drain()
    assert (receipt(name)["state"], receipt(name)["counts"]) == ("removed", None)
    assert [path for path in storage_folder.rglob("*") if path.is_file()] == []


def test_a_lease_is_one_workers_and_runs_out(kestrel: Downstream) -> None:
    received(upload(kestrel))
    pk = Report.objects.get().pk
    moment = now()
    first = leases.take(report_pk=pk, now=moment)
    assert first is not None
    assert leases.take(report_pk=pk, now=moment + leases.LEASE / 2) is None
    leases.renew(first, progress=10, now=moment + leases.LEASE / 2)
    assert leases.take(report_pk=pk, now=moment + leases.LEASE) is None
    second = leases.take(report_pk=pk, now=moment + leases.LEASE * 2)
    assert second is not None
    assert second.token != first.token
    with pytest.raises(leases.Lost):
        leases.renew(first, progress=20, now=moment + leases.LEASE * 2)


def test_a_report_over_which_workers_die_has_failed_in_the_end_and_says_what_to_do(kestrel: Downstream) -> None:
    name = received(upload(kestrel))
    pk, moment = Report.objects.get().pk, now()
    for dead in range(leases.ATTEMPTS_MAX):
        assert leases.take(report_pk=pk, now=moment + leases.LEASE * 2 * dead) is not None
    Wakeup.objects.all().delete()
    later = moment + leases.LEASE * 2 * leases.ATTEMPTS_MAX
    assert leases.sweep(now=later) == 1
    assert list(Wakeup.objects.values_list("topic", "key")) == [("report_received", str(pk))]
    assert leases.take(report_pk=pk, now=later) is None
    assert (receipt(name)["state"], receipt(name)["reason"]) == ("failed", leases.DIED)
    assert leases.sweep(now=later + leases.LEASE * 10) == 0
    # Something else to read gives it another chance.
    received(upload(kestrel, report_key="other"))
    assert Page(Client().get(f"/reports/{name}/")).text.count("Upload it in more shards.") == 1


def test_bytes_that_are_gone_are_the_hubs_fault_tried_again_and_said(kestrel: Downstream, storage_folder: Path) -> None:
    name = received(upload(kestrel))
    for path in (storage_folder / "raw").rglob("*"):
        if path.is_file():
            path.unlink()
    assert [parsed(name) for _ in range(4)] == ["to be tried again"] * 3 + ["nothing to do"]
    assert (receipt(name)["state"], receipt(name)["counts"]) == ("failed", None)
    assert "FileNotFoundError" in receipt(name)["reason"]


# --- hostile uploads --------------------------------------------------------------------------------------------


def zipped(*files: tuple[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return target.getvalue()


def tarred(*files: tuple[str, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return target.getvalue()


TWO = (("a/test_a.xml", junit(passing("test_a"))), ("b/test_b.xml", junit(failing("test_b"))))
BOMB = gzip.compress(b"\0" * 60_000_000)
LAUGHS = b"<!DOCTYPE a [<!ENTITY b '%s'>]><testsuite><testcase name='&b;&b;'/></testsuite>" % (b"ha" * 999)


@pytest.mark.parametrize("content", [zipped(*TWO), tarred(*TWO)], ids=["zip", "tar.gz"])
def test_an_archive_is_read_file_by_file(kestrel: Downstream, content: bytes) -> None:
    name = received(upload(kestrel, ("reports", content)))
    assert parsed(name) == "ready"
    found = receipt(name)
    assert (found["counts"], [file["parsed"] for file in found["files"]]) == (counts(passed=1, failed=1), [1, 1])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 100,
        b"hello",
        b"\x1f\x8b",
        b"PK\x03\x04",
        zipped(),
        tarred(),
        zipped(*TWO)[:-30],
        tarred(*TWO)[:-30],
        gzip.compress(junit(passing("test_a")))[:-12],
        JUNIT[:-40],
        BOMB,
        zipped(("bomb.xml", b"\0" * 60_000_000)),
        zipped(("x.zip", zipped(*TWO))),
        zipped(("../../etc/passwd", JUNIT), ("/abs.xml", JUNIT), ("a\0b.xml", JUNIT)),
        LAUGHS,
        b'<testsuite><testcase name="' + b"x" * 2_000_000 + b'"/></testsuite>',
        b"<testsuite>" * 5_000,
        b'{"$report_type": "SessionStart"}\n{bad',
        b"<testsuite><testcase classname='a' name='\xff\xfe\x00'/></testsuite>",
    ],
    ids=[
        *("empty", "zeros", "text", "gzip head", "zip head", "empty zip", "empty tar", "cut zip"),
        *("cut tar", "cut gzip", "cut xml", "gzip bomb"),
        *("zip bomb", "nested zip", "paths", "laughs", "long name", "deep", "bad line", "bytes"),
    ],
)
def test_whatever_is_uploaded_ends_as_a_receipt(kestrel: Downstream, content: bytes) -> None:
    name = received(upload(kestrel, ("x", content)))
    state = parsed(name)
    found = receipt(name)
    assert (found["state"], bool(found["reason"])) == (state, state == "failed")
    assert state == "failed" or found["files"] or found["flags"] == ["no_tests"]
    assert state in ("ready", "failed")
    assert Client().get(f"/reports/{name}/").status_code == 200


def test_an_upload_that_cannot_be_opened_has_failed_and_says_what_to_send(kestrel: Downstream) -> None:
    name = received(upload(kestrel, ("x.rar", b"Rar!...")))
    assert parsed(name) == "failed"
    found = receipt(name)
    assert (found["state"], found["counts"]) == ("failed", None)
    assert found["reason"] == REFUSALS["not_a_report"]
    assert parsed(name) == "nothing to do"


def test_one_bad_file_never_stops_the_others(kestrel: Downstream) -> None:
    name = received(upload(kestrel, ("good.xml", JUNIT), ("bad.xml", b"<testsuite><testcase"), ("c.txt", b"log")))
    assert parsed(name) == "ready"
    found = receipt(name)
    assert (found["counts"]["total"] >= 3, "damaged" in found["flags"]) == (True, True)
    assert [(file["name"], file["state"]) for file in found["files"]] == [
        ("good.xml", "parsed"),
        ("bad.xml", "partial"),
        ("c.txt", "unread"),
    ]


def test_a_text_is_trimmed_in_the_middle() -> None:
    assert trimmed("short", 100) == "short"
    long = trimmed("a" * 500 + "z" * 500, 120)
    assert (len(long), long[:40], long[-20:]) == (120, "a" * 40, "z" * 20)
    assert "880 characters left out" in long


def test_of_one_failure_so_many_traces_are_kept(kestrel: Downstream) -> None:
    cases = [failing(f"test_{number:02}") for number in range(TRACES_OF_A_FAILURE + 2)]
    name = received(upload(kestrel, junit(*cases, ended("test_other", "failed", "something else"))))
    assert parsed(name) == "ready"
    same = Finding.objects.filter(message="no")
    assert len(set(same.values_list("fingerprint", flat=True))) == 1
    traces = list(same.order_by("test__name").values_list("trace", flat=True))
    assert traces == ["no"] * TRACES_OF_A_FAILURE + [TRACE_LEFT_OUT] * 2
    assert Finding.objects.get(test__name="test_other").trace == "something else"


def test_an_unknown_report_is_nothing_to_do(cloned_database: ClonedDatabase) -> None:
    assert parse(report_pk=uuid.uuid4().int % 1_000_000, clock=now) == "nothing to do"


def test_a_report_has_so_many_cases_whatever_its_files_and_shards(
    kestrel: Downstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "Limits", lambda: Limits(report=5))
    key: dict[str, Any] = {"report_key": "k", "shards": 2}
    first, second, third = (junit(*(passing(f"test_{name}{number}") for number in range(3))) for name in "abc")
    name = received(upload(kestrel, zipped(("a.xml", first), ("b.xml", second)), shard=1, **key))
    upload(kestrel, third, shard=2, **key)
    assert parsed(name) == "ready"
    said = receipt(name)
    assert (said["counts"], said["flags"]) == (counts(passed=5), ["damaged"])
    cut = [
        {"code": "too_many_in_report", "count": 1, "says": f"{NOTES['too_many_in_report'].says} At most 5 are read."}
    ]
    assert [(file["name"], file["state"], file["parsed"], file["notes"]) for file in said["files"]] == [
        ("a.xml", "parsed", 3, []),
        ("b.xml", "partial", 2, cut),
        ("report.xml", "partial", 0, cut),
    ]
