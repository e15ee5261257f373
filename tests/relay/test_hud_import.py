"""`manage.py hud import FILE`: upstream's job history, so that windows and tenure do not restart."""

import datetime
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from apps.audit.models import Event
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.platforms.models import LevelInterval, NameChange
from apps.relay.hud import import_history
from apps.relay.lookups import silent_runs
from apps.relay.models import Callback, Job
from apps.results import tasks
from apps.results.models import DayFigures
from tests.factories.jobs import days_ago, job
from tests.factories.listing import TESTS, listed
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
KESTREL = "kestrel-demo/torch-kestrel"
NOON = datetime.datetime(2026, 10, 5, 12, tzinfo=datetime.UTC)


@pytest.fixture
def kestrel() -> Any:
    return listed({KESTREL: 2})[KESTREL]


def line(**values: Any) -> dict[str, Any]:
    return {
        "repo": KESTREL.upper(),
        "delivery_id": "d-1",
        "event_type": "pull_request",
        "head_sha": "ab" * 20,
        "pr_number": 1234,
        "workflow_name": "CI",
        "job_name": "build",
        "check_run_id": 456,
        "run_id": 7,
        "run_attempt": 1,
        "status": "completed",
        "conclusion": "success",
        "started_at": "2026-10-05T12:05:00Z",
        "completed_at": "2026-10-05T12:15:00Z",
        "queue_time": 300.4,
        "execution_time": 600,
        "passed": 41,
        "failed": 0,
        "skipped": 1,
    } | values


def hud_import(tmp_path: Path, *rows: Any) -> tuple[str, list[str], str]:
    """What the command says: its summary, the refused lines, its last word."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"\n".join(r if isinstance(r, bytes) else json.dumps(r).encode() for r in rows) + b"\n")
    out, err, last = io.StringIO(), io.StringIO(), ""
    try:
        call_command("hud", "import", str(path), stdout=out, stderr=err)
    except CommandError as error:
        last = str(error)
    return out.getvalue().strip(), err.getvalue().splitlines(), last


def test_a_job_stands_at_its_own_time_and_is_marked(tmp_path: Path, kestrel: Any) -> None:
    assert hud_import(tmp_path, line()) == ("1 jobs and 0 levels imported, 0 jobs known already", [], "")
    made = Job.objects.get()
    minutes = datetime.timedelta(minutes=1)
    assert (made.repository, made.dispatch, made.delivery_id, made.flags) == (kestrel, None, "d-1", ["imported"])
    assert (made.run_id, made.run_attempt, made.workflow, made.job_name, made.leg) == ("7", 1, "CI", "build", "456")
    assert (made.status, made.conclusion, made.bucket, made.total) == ("completed", "success", "success", 42)
    assert (made.head_sha, made.pr_number) == ("ab" * 20, 1234)
    assert (made.first_seen_at, made.start_seen_at, made.completed_at) == (
        *(NOON + 5 * minutes,) * 2,
        NOON + 15 * minutes,
    )
    assert (made.queue_seconds, made.execution_seconds, made.relay_execution_seconds) == (300.0, 600.0, 600)
    assert (
        list(Callback.objects.values_list("claims", flat=True)) == [{"source": "import", "file": "history.jsonl"}] * 2
    )


def test_its_day_is_counted_anew(tmp_path: Path, kestrel: Any) -> None:
    second = line(job_name="test", conclusion="failure", completed_at="2026-10-05T13:05:00Z", queue_time=None)
    hud_import(tmp_path, line(), second, line(run_id=8, started_at=None))
    keys = list(Wakeup.objects.filter(topic="job_changed").values_list("key", flat=True))
    assert keys == [f"{kestrel.pk}:2026-10-05"]
    tasks.count_days(keys)
    row = DayFigures.objects.get()
    assert (row.scope, row.success, row.failure, row.first_ended, row.queued, row.queue_seconds) == (
        *("pull_request", 2, 1, 3),
        *(2, 600),
    )
    # Longest queue, and from the first start to the last end.
    assert row.runs == [300 + 3600]


def test_the_same_file_again_changes_nothing(tmp_path: Path, kestrel: Any) -> None:
    level = {"kind": "level", "repo": KESTREL, "level": "L2", "from": "2026-09-01T00:00:00Z"}
    rows = (line(), line(job_name="test"), line(event_type="nightly", run_id=9), level)
    assert hud_import(tmp_path, *rows)[0] == "3 jobs and 1 levels imported, 0 jobs known already"
    before = (list(Job.objects.values()), list(LevelInterval.objects.values()), Event.objects.count())
    assert hud_import(tmp_path, *rows)[0] == "0 jobs and 0 levels imported, 3 jobs known already"
    assert (list(Job.objects.values()), list(LevelInterval.objects.values()), Event.objects.count()) == before


def test_what_the_hub_knows_itself_stands(tmp_path: Path, kestrel: Any) -> None:
    own = job(kestrel, "failure", run_id="7", delivery_id="d-1", job_name="build", leg="456", at=days_ago(1))
    assert hud_import(tmp_path, line())[0] == "0 jobs and 0 levels imported, 1 jobs known already"
    assert list(Job.objects.all().values_list("pk", "conclusion", "flags")) == [(own.pk, "failure", [])]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"{", "The body is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)."),
        (b"[]", "The body is a list, send a JSON object."),
        (line(repo="who/knows"), "repo: 'who/knows' is not known here, list it first."),
        (line(repo=None), "repo: 'None' is not known here, list it first."),
        (line(run_id="x"), "run_id: saw 'x', send the run's number, decimal digits only."),
        (line(workflow_name=None), "workflow_name: is missing, send text."),
        (line(conclusion="splendid"), "conclusion: saw 'splendid', send one of success, failure, startup_failure, "
         "timed_out, cancelled, neutral, skipped, stale, action_required."),
        (line(completed_at=None), "completed_at: is missing, send when the job ended."),
        (line(status="in_progress", conclusion=None, started_at=None, completed_at=None),
         "started_at: is missing, send when the job began."),
        (line(status="in_progress", conclusion=None, completed_at=None),
         "status: a job that began so long ago runs no more: send how it ended, or leave it out."),
        (line(started_at="2026-10-05T12:16:00Z"), "started_at: is after completed_at."),
        (line(started_at="1970-01-01T00:00:00Z"), "started_at: 1970-01-01T00:00:00Z is not between 2024 and now."),
        (line(completed_at="2996-10-05T12:16:00Z"), "completed_at: 2996-10-05T12:16:00Z is not between 2024 and now."),
        (line(queue_time="soon"), "queue_time: is no number from 0 to 2147483647, send one or null."),
        (line(pr_number=-1), "pr_number: is no number from 0 to 9223372036854775807, send one or null."),
        (line(kind="other"), "kind: 'other' is neither job nor level."),
        ({"kind": "level", "repo": KESTREL, "level": "L9"}, "level: 'L9' is none of L0, L1, L2, L3, L4."),
        ({"kind": "level", "repo": KESTREL, "level": "L2"}, "from: is missing, send when the level began."),
        ({"kind": "level", "repo": KESTREL, "level": "L2", "from": "yesterday"},
         "from: saw 'yesterday', send a time like 2026-01-31T23:59:59Z."),
    ],
)  # fmt: skip
def test_a_bad_line_is_told_by_number_and_reason_and_the_others_are_imported(
    tmp_path: Path, kestrel: Any, bad: Any, why: str
) -> None:
    assert hud_import(tmp_path, line(job_name="before"), b"", bad, line(job_name="after")) == (
        "2 jobs and 0 levels imported, 0 jobs known already",
        [f"line 3: {why}"],
        "1 lines were refused; the others are imported.",
    )
    assert set(Job.objects.values_list("job_name", flat=True)) == {"before", "after"}


def test_another_end_of_an_imported_job_is_refused(tmp_path: Path, kestrel: Any) -> None:
    said = hud_import(tmp_path, line(), line(conclusion="failure"))
    assert said[1] == ["line 2: conclusion: the job was imported as success."]


def test_an_import_into_l1_is_refused(tmp_path: Path) -> None:
    listed({KESTREL: 1})
    assert hud_import(tmp_path, line())[1] == [f"line 1: repo: {KESTREL} is at L1, its results are not public."]


def test_a_job_that_may_still_run_is_imported_as_one(tmp_path: Path, kestrel: Any) -> None:
    an_hour_ago = (now() - datetime.timedelta(hours=1)).isoformat()
    said = hud_import(tmp_path, line(status="in_progress", conclusion=None, completed_at=None, started_at=an_hour_ago))
    assert said == ("1 jobs and 0 levels imported, 0 jobs known already", [], "")
    assert (Job.objects.get().status, silent_runs(now=now())) == ("in_progress", {})


def test_a_former_name_is_the_repositorys(tmp_path: Path, kestrel: Any) -> None:
    NameChange.objects.create(
        repository=kestrel, old_name="Kestrel/Old", new_name=KESTREL, seen_at=now(), confirmed_at=now()
    )
    assert hud_import(tmp_path, line(repo="kestrel/old"))[1] == []
    assert Job.objects.get().repository == kestrel


def test_an_import_that_dies_midway_stands_in_the_log(kestrel: Any) -> None:
    def dying() -> Iterator[bytes]:
        yield json.dumps(line()).encode()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_history(lines=dying(), source="history.jsonl", actor=TESTS, now=now())
    body = json.loads(Event.objects.order_by("-seq")[0].body)
    assert (body["action"], body["summary"]) == (
        "job.history_import_begun",
        "the import of jobs from history.jsonl begins",
    )
    assert Job.objects.count() == 1


def test_it_stands_in_the_log_with_the_files_digest(tmp_path: Path, kestrel: Any) -> None:
    hud_import(tmp_path, line(), b"{")
    event = Event.objects.order_by("-seq")[0]
    body = json.loads(event.body)
    assert (event.action, event.is_decision, body["summary"], body["after"]) == (
        *("job.history_imported", True, "1 jobs imported from history.jsonl"),
        {"jobs": 1, "lines_refused": 1},
    )
    assert len(body["evidence"]["sha256"]) == 64


def test_an_earlier_level_is_kept_up_to_the_hubs_own_record_and_tenure_goes_on(
    tmp_path: Path, kestrel: Any, client: Client
) -> None:
    own = LevelInterval.objects.get()
    started = now() - datetime.timedelta(days=40)
    levels = [
        {"kind": "level", "repo": KESTREL, "level": "L2", "from": started.isoformat()},
        {
            "kind": "level",
            "repo": KESTREL,
            "level": "L1",
            "from": (started - datetime.timedelta(days=5)).isoformat(),
            "until": started.isoformat(),
        },
    ]
    assert hud_import(tmp_path, *levels) == ("0 jobs and 2 levels imported, 0 jobs known already", [], "")
    assert list(LevelInterval.objects.values_list("level", "started_at", "ended_at", "is_imported")) == [
        (2, own.started_at, None, False),
        (2, started, own.started_at, True),
        (1, started - datetime.timedelta(days=5), started, True),
    ]
    page = Page(client.get(f"/platforms/{kestrel.platform.slug}/"))
    assert f"since {started:%Y-%m-%d} · 40 d" in page.text
    ended = [row[2] for row in page.tables["history"]]
    assert (ended[0], ended[1].endswith(" s ago imported"), ended[2]) == ("now", True, "40 d ago imported")
    overlapping = {"kind": "level", "repo": KESTREL, "level": "L1", "from": (started).isoformat()}
    assert hud_import(tmp_path, overlapping)[1] == [
        "line 1: from, until: overlap an interval that was imported before."
    ]
    late = {"kind": "level", "repo": KESTREL, "level": "L1", "from": now().isoformat()}
    assert "is not before" in hud_import(tmp_path, late)[1][0]


def test_a_file_that_cannot_be_opened_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"no-such: No such file or directory\."):
        call_command("hud", "import", str(tmp_path / "no-such"))
