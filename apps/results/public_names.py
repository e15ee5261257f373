"""Which tests anyone may search for: those that a public report names.

Names from private reports stand in the catalogue too, and must not be found by a stranger who guesses at them.
"""

import numpy as np
from django.db import connection, transaction
from django.db.models import F
from numpy.typing import NDArray

from apps.results.enums import ReportState
from apps.results.models import Report
from apps.results.report_selectors import PUBLIC

# So many rows a step, each committed by itself.
STEP = 20_000
_KNOWN = "SELECT string_agg(int8send(test_id), ''::bytea ORDER BY test_id) FROM results_publictest"
_ADD = "INSERT INTO results_publictest (test_id) SELECT unnest(%s::bigint[]) ON CONFLICT DO NOTHING"
_REMOVE = "DELETE FROM results_publictest WHERE test_id = ANY(%s::bigint[])"


def publish(*, reports: int) -> int:
    """Make the tests of up to so many public reports findable. Returns how many reports. Idempotent: a report that is
    read again, or was made public by the acceptance of its owner, comes again."""
    from apps.results import outcomes  # pyarrow: for the memory of those processes that are asked

    ready = Report.objects.filter(PUBLIC, state=ReportState.READY).exclude(named_revision=F("revision"))
    waiting = list(ready.order_by("parsed_at")[:reports])
    for report in waiting:
        try:
            new = np.setdiff1d(_tests_of(report), _known(), assume_unique=True)
        except outcomes.Gone:
            continue
        for first in range(0, len(new), STEP):
            with connection.cursor() as cursor:
                cursor.execute(_ADD, [new[first : first + STEP].tolist()])
        Report.objects.filter(pk=report.pk, revision=report.revision, state=ReportState.READY).update(
            named_revision=report.revision
        )
    return len(waiting)


@transaction.atomic
def withdraw(report: Report) -> None:
    """A report is taken down: its tests are found no more, until the other public reports have been gone through."""
    if report.outcomes_name and report.named_revision:
        from apps.results import outcomes  # pyarrow: for the memory of those processes that are asked

        try:
            named = _tests_of(report)
        except outcomes.Gone:
            named = _known()  # which were this report's nobody knows: all are gone through anew
        with connection.cursor() as cursor:
            cursor.execute(_REMOVE, [named.tolist()])
        Report.objects.filter(PUBLIC, state=ReportState.READY).update(named_revision=0)


def _tests_of(report: Report) -> NDArray[np.int64]:
    from apps.results import outcomes  # pyarrow: for the memory of those processes that are asked

    return outcomes.read(report.outcomes_name, ("test",))["test"]


def _known() -> NDArray[np.int64]:
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN)
        row = cursor.fetchone()
    return np.frombuffer(row[0] or b"", ">i8").astype(np.int64) if row else np.empty(0, np.int64)
