"""From stored bytes to outcomes: read, settle, name, count, write. Idempotent: what a dead worker left is done again.

The last step is one transaction that asks for the lease. Before it only two things are written, and both may be there
already: names of the catalogue, and the file of outcomes under this revision's name.
"""

import contextlib
import datetime
import gc
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import IO, Any, BinaryIO, NamedTuple, cast

import numpy as np
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.utils import InterfaceError, OperationalError
from numpy.typing import NDArray

from apps.core.wakeups import wake
from apps.results import catalogue, leases, outcomes
from apps.results.enums import FileState, ReportFlag, ReportState
from apps.results.fingerprints import fingerprint
from apps.results.formats import archive
from apps.results.formats.cases import Case, Notes, Outcome
from apps.results.formats.chains import settle
from apps.results.formats.limits import Limits
from apps.results.models import Finding, Report, ReportFile, Upload, UploadPart
from apps.results.names.rules import words_of
from apps.results.topics import FILE_UNWANTED, REPORT_READY, REPORT_RECEIVED
from apps.results.uploads import lock_names

log = logging.getLogger(__name__)

Clock = Callable[[], datetime.datetime]

READY, FAILED, NOTHING, LOST, AGAIN = "ready", "failed", "nothing to do", "lost", "to be tried again"
# How often a parse says that it is alive, in seconds.
BEAT_SECONDS = 2.0
# What reading the files is of the whole, in per cent; the rest is naming and writing.
READ_SHARE = 70
# The outcomes that become rows, with what was said about them.
FOUND = (Outcome.FAILED, Outcome.ERROR, Outcome.XPASSED, Outcome.FLAKY, Outcome.LOST)
# What makes a success a contradiction.
FAILING = (Outcome.FAILED, Outcome.ERROR, Outcome.LOST)
FINDINGS_MAX = 10_000
MESSAGE_KEPT, TRACE_KEPT = 1_000, 3_000
# Traces of one failure, by its fingerprint, that are kept: the next ones say the same.
TRACES_OF_A_FAILURE = 50
TRACE_LEFT_OUT = f"… left out: {TRACES_OF_A_FAILURE} traces of this failure are kept in this report …"
_CASES_A_BEAT = 2_000
_ROWS_AT_ONCE = 1_000
_DROPPED = ("dropped", "bad_line", "long_line")
_UNREAD = frozenset({"not_a_report", "no_suite", "encrypted", "method", "nested", "link"})


def parse(*, report_pk: int, clock: Clock) -> str:
    """Parse a report, if it waits and nobody else is at it. Returns what came of it, in words.

    A fault of the hub's gives the report back, to be tried again; at the last attempt it has failed, and says so.
    """
    lease = leases.take(report_pk=report_pk, now=clock())
    if lease is None:
        return NOTHING
    try:
        with _without_collector():
            return _parse(lease, clock)
    except leases.Lost:
        log.warning("report %s: another worker has it, or it was taken down", report_pk)
        _forget_outcomes(lease, clock())
        return LOST
    except (OperationalError, InterfaceError):
        raise  # without a database nothing can be given back: the lease runs out
    except Exception as error:
        log.exception("report %s", report_pk)
        why = (
            f"The hub failed {leases.ATTEMPTS_MAX} times to read this report ({type(error).__name__}). Its operators "
            "see why in the log; upload it again once they have mended it."
        )
        leases.give_back(lease, why=why, now=clock())
        return AGAIN


@transaction.atomic
def _forget_outcomes(lease: leases.Lease, now: datetime.datetime) -> None:
    """What may have been written for nothing goes, unless the report names it."""
    name = Report.objects.values_list("public_id", flat=True).get(pk=lease.report_pk)
    wake(FILE_UNWANTED, [outcomes.name_of(str(name), lease.revision)], now=now)


class Pulse:
    """Says that the worker is alive while it works, and how far it is. Raises leases.Lost."""

    def __init__(self, lease: leases.Lease, clock: Clock, total_bytes: int) -> None:
        self._lease, self._clock, self._total = lease, clock, max(total_bytes, 1)
        self._at = time.monotonic()
        self.bytes = 0

    def beat(self, progress: int | None = None) -> None:
        """Cheap: the database hears of it every BEAT_SECONDS."""
        if progress is None and time.monotonic() - self._at < BEAT_SECONDS:
            return
        self._at = time.monotonic()
        read = min(READ_SHARE, self.bytes * READ_SHARE // self._total)
        leases.renew(self._lease, progress=read if progress is None else progress, now=self._clock())


class _Watched:
    """A stream whose every read is a beat."""

    def __init__(self, stream: IO[bytes], pulse: Pulse) -> None:
        self._stream, self._pulse, self._furthest = stream, pulse, 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        at = self._stream.tell()
        if at > self._furthest:  # an archive's reader also goes back
            self._pulse.bytes += at - self._furthest
            self._furthest = at
        self._pulse.beat()
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _File(NamedTuple):
    """How reading one file went. `is_refused`: an upload that cannot be opened at all."""

    name: str
    state: FileState
    parsed: int
    dropped: int
    notes: list[dict[str, Any]]
    is_incomplete: bool = False
    is_refused: bool = False

    @classmethod
    def of(cls, name: str, notes: Notes, parsed: int) -> "_File":
        said = [{"code": code, "count": count, "says": says} for code, count, says in notes.sentences()]
        state = FileState.PARTIAL if notes.is_incomplete else FileState.PARSED
        if not parsed and _UNREAD & set(notes.counts):
            state = FileState.UNREAD
        dropped = sum(notes.counts.get(code, 0) for code in _DROPPED)
        return cls(name, state, parsed, dropped, said, notes.is_incomplete)


class Shard(NamedTuple):
    """What one upload comes to by itself. `is_whole`: every file was read to its end, and every outcome is known."""

    tests: int
    failing: int
    is_whole: bool


@dataclass
class Read:
    """A report's uploads, read: one case a test, what each upload came to, and how reading each file went. `left`: how
    many cases more are read."""

    left: int
    cases: list[Case] = field(default_factory=list)
    files: list[_File] = field(default_factory=list)
    shards: dict[int, "Shard"] = field(default_factory=dict)


@dataclass(frozen=True)
class Made:
    """What was made of it, besides what reading told."""

    outcomes_name: str
    counts: dict[str, int]
    flags: dict[ReportFlag, bool]
    collisions: int
    findings: list[Finding]


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Of millions of small objects none is part of a circle, and looking for circles takes a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _parse(lease: leases.Lease, clock: Clock) -> str:
    report = Report.objects.select_related("repository", "source").get(pk=lease.report_pk)
    uploads = list(Upload.objects.filter(report=report).prefetch_related("parts").order_by("shard"))
    pulse = Pulse(lease, clock, sum(upload.bytes for upload in uploads))
    read = _read(uploads, pulse)
    if read.files and all(file.is_refused for file in read.files):
        leases.fail(lease, why=read.files[0].notes[0]["says"], now=clock())
        return FAILED
    pulse.beat(READ_SHARE)
    words = words_of(report.device)
    identified = catalogue.identify((case[:3] for case in _beaten(read.cases, pulse)), words)
    pulse.beat((READ_SHARE + 100) // 2)
    columns = _columns(read.cases, identified)
    findings, is_cut = _findings(report, read.cases, columns, words)
    name = outcomes.write(columns, report=str(report.public_id), revision=lease.revision)
    counts = counted(columns.outcome)
    made = Made(name, counts, _flags(uploads, report.shards, read, counts, is_cut), identified.collisions, findings)
    _finish(lease, report, uploads, read, made, now=clock())
    return READY


# --- reading ----------------------------------------------------------------------------------------------------


def _read(uploads: Iterable[Upload], pulse: Pulse) -> Read:
    """Every file of every upload. Within an upload a later file is a later attempt, as far as files say when they
    began; between uploads the attempts of their jobs are."""
    read = Read(left=Limits().report)
    of_uploads: list[tuple[int, list[Case]]] = []
    for upload in uploads:
        before = len(read.files)
        settled = list(settle(_ordered(upload, read, pulse)))
        codes = _codes(settled)
        is_whole = not any(file.is_incomplete for file in read.files[before:]) and Outcome.UNKNOWN not in codes
        read.shards[upload.pk] = Shard(len(settled), int(np.isin(codes, FAILING).sum()), is_whole)
        of_uploads.append((upload.run_attempt, settled))
    read.cases = of_uploads[0][1] if len(of_uploads) == 1 else list(settle(of_uploads))
    return read


def _ordered(upload: Upload, read: Read, pulse: Pulse) -> Iterator[tuple[str, list[Case]]]:
    for part in upload.parts.all():
        for file, started, cases in _files_of(part, read, pulse):
            read.files.append(file)
            yield started, cases


def _files_of(part: UploadPart, read: Read, pulse: Pulse) -> Iterator[tuple[_File, str, list[Case]]]:
    """The files of one uploaded file: what is to be said of each, when it says that it began, and its cases."""
    notes = Notes()
    with default_storage.open(part.storage_name) as stored:
        watched = cast(BinaryIO, _Watched(stored, pulse))
        try:
            for member in archive.members(watched, name=part.name, limits=Limits(), notes=notes):
                cases = list(islice(member.cases(), read.left + 1))
                if len(cases) > read.left:
                    cases.pop()
                    member.notes.add("too_many_in_report", f"At most {Limits().report} are read.")
                read.left -= len(cases)
                yield _File.of(member.path, member.notes, len(cases)), member.notes.started, cases
        except archive.UploadRefused as refused:
            said = [{"code": refused.code, "count": 1, "says": str(refused)}]
            yield _File(part.name, FileState.UNREAD, 0, 0, said, is_incomplete=True, is_refused=True), "", []
    if notes.counts:
        yield _File.of(part.name, notes, 0), "", []


def _beaten(cases: Iterable[Case], pulse: Pulse) -> Iterator[Case]:
    """The same cases, with a beat now and then."""
    for number, case in enumerate(cases):
        if number % _CASES_A_BEAT == 0:
            pulse.beat()
        yield case


# --- columns, findings, counts ----------------------------------------------------------------------------------


def _codes(cases: list[Case]) -> NDArray[np.int8]:
    return np.fromiter((case.outcome for case in cases), np.int8, len(cases))


def _columns(cases: list[Case], identified: catalogue.Identified) -> outcomes.Outcomes:
    skipped = [at for at, case in enumerate(cases) if case.outcome is Outcome.SKIPPED]
    reasons = catalogue.reason_ids(cases[at].message for at in skipped)
    reason = np.full(len(cases), -1, np.int32)
    reason[skipped] = [reasons[cases[at].message] for at in skipped]
    attempts = np.fromiter((case.reruns + 1 for case in cases), np.int64, len(cases))
    return outcomes.Outcomes(
        test=identified.tests,
        outcome=_codes(cases),
        attempts=np.minimum(attempts, outcomes.ATTEMPTS_MAX).astype(np.int16),
        ms=outcomes.milliseconds([case[4] for case in cases]),
        reason=reason,
        spelling=identified.spelling,
        spellings=identified.spellings,
    )


def _findings(
    report: Report, cases: list[Case], columns: outcomes.Outcomes, words: Iterable[str]
) -> tuple[list[Finding], bool]:
    """The first FINDINGS_MAX, and whether there are more: of a run in which everything fails nobody reads all."""
    words = frozenset(words)
    places = np.flatnonzero(np.isin(columns.outcome, FOUND)).tolist()
    found: list[Finding] = []
    traces: Counter[bytes] = Counter()
    for at in places[:FINDINGS_MAX]:
        case = cases[at]
        failure = fingerprint(case.message, case.trace, words)
        traces[failure] += bool(case.trace)
        is_kept = traces[failure] <= TRACES_OF_A_FAILURE
        found.append(
            Finding(
                report=report,
                test_id=int(columns.test[at]),
                outcome=case.outcome.label,
                message=trimmed(case.message, MESSAGE_KEPT),
                trace=trimmed(case.trace, TRACE_KEPT) if is_kept or not case.trace else TRACE_LEFT_OUT,
                fingerprint=failure,
                attempts=int(columns.attempts[at]),
            )
        )
    return found, len(places) > FINDINGS_MAX


def trimmed(text: str, kept: int) -> str:
    """At most `kept` characters: a third from the beginning, the rest from the end, where a trace says most."""
    if len(text) <= kept:
        return text
    head = kept // 3
    mark = f"\n… {len(text) - kept:,} characters left out …\n"
    return text[:head] + mark + text[-(kept - head - len(mark)) :]


def counted(codes: NDArray[np.int8]) -> dict[str, int]:
    """The columns of a report: `total`, and each outcome."""
    found = np.bincount(codes, minlength=len(Outcome)).tolist()
    return {"total": len(codes)} | {outcome.label: found[outcome] for outcome in Outcome}


def _flags(
    uploads: list[Upload], shards: int, read: Read, counts: dict[str, int], is_cut: bool
) -> dict[ReportFlag, bool]:
    """What the tests say must stand beside their counts."""
    return {
        ReportFlag.SHARDS_MISSING: len(uploads) < shards,
        ReportFlag.NO_TESTS: counts["total"] == 0,
        ReportFlag.UNKNOWN_OUTCOMES: counts["unknown"] > 0,
        ReportFlag.DAMAGED: any(file.is_incomplete for file in read.files),
        ReportFlag.FINDINGS_CUT: is_cut,
    }


def _row(report: Report, position: int, file: _File) -> ReportFile:
    return ReportFile(
        report=report,
        position=position,
        name=file.name,
        state=file.state,
        parsed=file.parsed,
        dropped=file.dropped,
        notes=file.notes,
    )


@transaction.atomic
def _finish(
    lease: leases.Lease, report: Report, uploads: list[Upload], read: Read, made: Made, *, now: datetime.datetime
) -> None:
    """Everything at once, if the lease is still ours. Raises leases.Lost; FileNotFoundError where the outcomes were
    removed meanwhile by whoever took them for another worker's."""
    locked = leases.held(lease).select_for_update().first()
    if locked is None:
        raise leases.Lost
    lock_names([made.outcomes_name])
    if not default_storage.exists(made.outcomes_name):
        raise FileNotFoundError(made.outcomes_name)
    leases.held(lease).update(
        state=ReportState.READY,
        revision=lease.revision,
        lease=None,
        lease_until=None,
        attempts=0,
        progress=100,
        collisions=made.collisions,
        # What is known of the commit and of the job stays.
        flags=[flag.value for flag in ReportFlag if made.flags.get(flag, flag.value in locked.flags)],
        outcomes_name=made.outcomes_name,
        changed_at=now,
        parsed_at=now,
        **made.counts,
    )
    ReportFile.objects.filter(report=report).delete()
    Finding.objects.filter(report=report).delete()
    rows = (_row(report, position, file) for position, file in enumerate(read.files))
    ReportFile.objects.bulk_create(rows, batch_size=_ROWS_AT_ONCE)
    Finding.objects.bulk_create(made.findings, batch_size=_ROWS_AT_ONCE)
    for upload in uploads:
        shard = read.shards[upload.pk]._asdict()
        Upload.objects.filter(pk=upload.pk).update(**shard, judged_revision=None)
    if locked.outcomes_name not in ("", made.outcomes_name):
        wake(FILE_UNWANTED, [locked.outcomes_name], now=now)
    if locked.wanted > lease.revision:
        wake(REPORT_RECEIVED, [str(report.pk)], now=now)
    wake(REPORT_READY, [str(report.pk)], now=now)
