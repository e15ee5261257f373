"""A full run's report from upload to final receipt, beside a bare parse that only counts; then many at once.

The first report names every test for the first time, the second is the same suite's next run. At last MANY reports of
MANY_CASES are uploaded at once, and the worker that parses is killed twice meanwhile.
"""

import json
import os
import signal
import tarfile
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import requests
from django.conf import settings
from django.core.files.storage import default_storage
from django.db import connection

from accelhub import processes
from bench import hub, reports_data
from bench.catalogue import count_cases

CASES = int(os.environ.get("BENCH_CASES", str(reports_data.CASES)))
MANY = int(os.environ.get("BENCH_MANY", "20"))
MANY_CASES = int(os.environ.get("BENCH_MANY_CASES", "50000"))
KILLS_AFTER = (4.0, 9.0)
READY_SECONDS, LOOK_SECONDS = 900, 0.1
ROW_BYTES = 64  # a row's header and its fixed columns
UPLOADS_AT_ONCE = 20


def run() -> None:
    """Print how long each report took as a multiple of the bare parse, what it left, and what became of the many."""
    print(f"\nReports: {CASES:,} cases, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="accelhub-reports-") as folder, hub.standin() as github:
        (name, *_) = hub.list_repositories(github, 1)
        first, floor = _made(Path(folder), 1, CASES, is_told=True)
        second, _ = _made(Path(folder), 2, CASES)
        with hub.running("web", "relay", "heavy", "beat"):
            _one(github, name, first, "1", floor, "first sight of every name")
            _one(github, name, second, "2", floor, "the same suite's next run")
        many = [_made(Path(folder), 10 + number, MANY_CASES)[0] for number in range(MANY)]
        with hub.running("web", "relay", "beat"):
            _many(github, name, many)


def _made(folder: Path, number: int, cases: int, *, is_told: bool = False) -> tuple[Path, float]:
    """A run's reports as a tar.gz, and how many seconds a bare parse of its files takes."""
    where = folder / str(number)
    written = reports_data.write(where, cases=cases, files=max(1, min(reports_data.FILES, cases // 10)), run=number)
    paths = sorted(where.rglob("*.xml"))
    begun = time.perf_counter()
    assert sum(count_cases(path) for path in paths) == cases
    floor = time.perf_counter() - begun
    archive = folder / f"{number}.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=6) as packed:
        packed.add(where, arcname=".")
    if is_told:
        for line in written.lines():
            print(line)
        print(f"floor: a bare parse that counts {floor:.2f} s; packed {archive.stat().st_size / 2**20:.1f} MiB")
    return archive, floor


def _upload(github: Any, repository: str, archive: Path, run_id: str) -> str:
    """Upload a nightly's report. Returns its receipt's address."""
    meta = json.dumps({"event_type": "nightly", "run_id": run_id, "workflow": "nightly", "job_name": "test"})
    token = github.mint_token(repository, audience=settings.OIDC_AUDIENCE, run_id=run_id)
    with archive.open("rb") as file:
        answer = requests.post(
            f"http://127.0.0.1:{settings.PORT}/api/v1/reports/",
            headers={"Authorization": f"Bearer {token}"},
            data={"meta": meta},
            files={"file": (archive.name, file)},
            timeout=300,
        )
    if answer.status_code != 202:
        raise RuntimeError(f"{answer.status_code} {answer.text[:500]}")
    return str(answer.json()["receipt"])


def _receipt(url: str) -> dict[str, Any]:
    return dict(requests.get(f"http://127.0.0.1:{settings.PORT}/api/v1/reports/{_id_of(url)}/", timeout=30).json())


def _id_of(url: str) -> str:
    return url.rstrip("/").rpartition("/")[2]


def _until_final(url: str) -> dict[str, Any]:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        receipt = _receipt(url)
        if receipt["state"] in ("ready", "failed"):
            return receipt
        time.sleep(LOOK_SECONDS)
    raise RuntimeError(f"no final receipt after {READY_SECONDS} s: {receipt}")


def _one(github: Any, repository: str, archive: Path, run_id: str, floor: float, what: str) -> None:
    from apps.results.models import Report, Test

    known = Test.objects.count()
    begun = time.perf_counter()
    url = _upload(github, repository, archive, run_id)
    uploaded = time.perf_counter() - begun
    receipt = _until_final(url)
    took = time.perf_counter() - begun
    report = Report.objects.get(public_id=_id_of(url))
    assert (receipt["state"], receipt["counts"]["total"]) == ("ready", CASES), receipt
    outcomes = default_storage.size(report.outcomes_name)
    rows = _bytes_of_findings(report.pk)
    print(
        f"{what}: {took:.1f} s to the final receipt ({uploaded:.1f} s of it the upload), {took / floor:.1f}× the bare "
        f"parse; {Test.objects.count() - known:,} new names"
    )
    print(
        f"{'':4}outcome file {outcomes / 1e6:.2f} MB, findings {rows / 1e6:.2f} MB, together "
        f"{(outcomes + rows) / 1e6:.2f} MB; the worker's memory at its peak {_peak_memory()} MiB"
    )


def _bytes_of_findings(report_pk: int) -> int:
    """As they lie on the disk: each column as stored, and a row's header."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(pg_column_size(message) + pg_column_size(trace) + pg_column_size(fingerprint) + %s)"
            ", 0) FROM results_finding WHERE report_id = %s",
            [ROW_BYTES, report_pk],
        )
        return int(cursor.fetchone()[0])


def _peak_memory() -> int:
    """The most that a process of the heavy worker has held, in MiB."""
    mine = hub.program("heavy").argv[-1].encode()
    peaks = [0]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"celery" not in (line := (process / "cmdline").read_bytes()) or mine not in line:
                continue
            status = (process / "status").read_text()
        except OSError:  # it has ended
            continue
        peaks += [int(row.split()[1]) // 1024 for row in status.splitlines() if row.startswith("VmHWM:")]
    return max(peaks)


def _many(github: Any, repository: str, archives: list[Path]) -> None:
    worker = hub.start(hub.program("heavy"))
    kills = 0
    try:
        hub.until_ready(("heavy",))
        begun = time.perf_counter()
        with ThreadPoolExecutor(UPLOADS_AT_ONCE) as pool:
            waiting = [pool.submit(_upload, github, repository, one, str(100 + n)) for n, one in enumerate(archives)]
            for after in KILLS_AFTER:
                threading.Event().wait(max(0, after - (time.perf_counter() - begun)))
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
                kills += 1
                worker = hub.start(hub.program("heavy"))
            urls = [one.result() for one in waiting]
        finals = [_until_final(url) for url in urls]
        took = time.perf_counter() - begun
    finally:
        processes.stop(worker, signal.SIGTERM, hub.program("heavy").stop_seconds)
    ready = sum(final["state"] == "ready" and final["counts"]["total"] == MANY_CASES for final in finals)
    print(
        f"{len(archives)} reports of {MANY_CASES:,} cases at once, the worker killed {kills} times: {ready} final and "
        f"whole, {len(archives) - ready} lost, in {took:.0f} s"
    )
