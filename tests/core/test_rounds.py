"""When scheduled tasks last did their work, and who is told where they have not."""

import base64
import datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from accelhub.celery import BEAT, app
from apps.accounts.policy import Role
from apps.audit import services as audit
from apps.core import rounds
from apps.core.clock import now
from apps.core.models import Round
from apps.core.rounds import OVERDUE_INTERVALS
from tests.factories.listing import listed, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db

HOURLY = "apps.accounts.tasks.forget_the_expired"
QUICK = "apps.core.tasks.drain_wakeups"
MINUTE = datetime.timedelta(minutes=1)
HOUR = datetime.timedelta(hours=1)


def registered(task: str) -> Any:
    app.loader.import_default_modules()
    return app.tasks[task]


def ran(task: str, *, at: datetime.datetime, say: Any = None, error: BaseException | None = None) -> Round:
    rounds.start()
    if say:
        say()
    rounds.note(task, now=at, error=error)
    return Round.objects.get(name=task)


def told(row: Round) -> tuple[datetime.datetime | None, datetime.datetime | None, bool, str]:
    return row.tried_at, row.succeeded_at, row.is_off, row.said


def test_a_real_success_is_work_done_and_not_only_a_run() -> None:
    moment = now()
    assert told(ran(HOURLY, at=moment)) == (moment, moment, False, "")
    later = moment + HOUR
    silent = ran(HOURLY, at=later, say=lambda: rounds.undone("GitHub is silent\0"))
    assert told(silent) == (later, moment, False, "GitHub is silent")
    assert told(ran(HOURLY, at=later, error=ValueError("secret"))) == (later, moment, False, "it raised ValueError")
    assert told(ran(HOURLY, at=later, say=rounds.off)) == (later, moment, True, "")
    assert told(ran(HOURLY, at=later)) == (later, later, False, "")


def test_of_a_task_that_is_not_scheduled_nothing_is_kept() -> None:
    rounds.note("apps.relay.tasks.send_dispatch", now=now())
    assert Round.objects.count() == 0


@pytest.mark.parametrize(("task", "limit"), [(HOURLY, OVERDUE_INTERVALS * HOUR), (QUICK, MINUTE)])
def test_after_three_intervals_without_a_success_it_is_overdue(task: str, limit: datetime.timedelta) -> None:
    moment = now()
    name = task.rpartition(".")[2]
    assert rounds.overdue(now=moment) == []  # nothing has woken anything yet
    ran(task, at=moment)
    ran(task, at=moment + limit, say=lambda: rounds.undone("no answer"))
    assert rounds.overdue(now=moment + limit) == []
    assert rounds.overdue(now=moment + limit + MINUTE) == [name]
    # One that is off has no work to be late with, as long as it says so.
    ran(task, at=moment + limit, say=rounds.off)
    assert rounds.overdue(now=moment + 2 * limit) == []
    assert rounds.overdue(now=moment + 2 * limit + MINUTE) == [name]


def test_a_task_that_never_ran_is_overdue_from_when_beat_began() -> None:
    moment = now()
    Round.objects.create(name="apps.gone.tasks.gone", since_at=moment)
    rounds.begin(now=moment)
    rounds.begin(now=moment + 24 * HOUR)
    assert set(Round.objects.values_list("name", "since_at")) == {(task, moment) for task, _, _ in BEAT}
    late = rounds.overdue(now=moment + HOUR)
    assert ("drain_wakeups" in late, "forget_the_expired" in late) == (True, False)


def test_every_task_of_the_table_is_followed_by_celery_itself() -> None:
    registered(HOURLY).apply()
    assert told(Round.objects.get(name=HOURLY))[2:] == (False, "")
    broken = "apps.relay.tasks.look_up_due_runs"
    task = registered(broken)
    task.apply(args=["more than it takes"])
    row = Round.objects.get(name=broken)
    assert (row.succeeded_at, row.said) == (None, "it raised TypeError")


@pytest.mark.parametrize(
    ("task", "setting", "value"),
    [
        ("apps.platforms.tasks.sync_allowlist", "ALLOWLIST_AUTHORITY", "hub"),
        ("apps.results.tasks_reports.forget_raw", "RAW_DAYS", 0),
        ("apps.relay.tasks_adoption.compare_deliveries", "MODE", "active"),
        ("apps.checks.tasks.sweep_checks", "MODE", "observer"),
        ("apps.relay.tasks_adoption.look_at_checks", "MODE", "observer"),
        ("apps.relay.tasks_upstream.compare_delivery_log", "MODE", "observer"),
        ("apps.quarantine.tasks.fetch_upstream_list", "DISABLED_TESTS_URL", ""),
        ("apps.audit.tasks.make_checkpoint", "CHECKPOINT_KEY", ""),
        ("apps.audit.tasks.push_checkpoints", "CHECKPOINT_GIT", ""),
    ],
)
def test_a_task_that_a_setting_leaves_nothing_to_do_says_that_it_is_off(
    settings: Any, task: str, setting: str, value: Any
) -> None:
    setattr(settings, setting, value)
    registered(task).apply()
    assert told(Round.objects.get(name=task))[1:] == (None, True, "")


def test_checkpoints_that_are_not_made_or_not_pushed_are_no_success(settings: Any) -> None:
    settings.CHECKPOINT_KEY, settings.CHECKPOINT_GIT = "not a key", "/nowhere/at-all.git"
    listed({"acme/torch": 2})
    making, pushing = "apps.audit.tasks.make_checkpoint", "apps.audit.tasks.push_checkpoints"
    registered(making).apply()
    row = Round.objects.get(name=making)
    assert (row.succeeded_at, "Ed25519" in row.said, "not a key" in row.said) == (None, True, False)
    settings.CHECKPOINT_KEY = base64.b64encode(bytes(32)).decode()
    registered(making).apply()
    assert Round.objects.get(name=making).said == ""
    for _ in range(2):  # the second is not due, and nothing has been pushed
        registered(pushing).apply()
        row = Round.objects.get(name=pushing)
        assert (row.succeeded_at, row.said.startswith("git clone: ")) == (None, True)


def test_a_log_that_is_broken_is_no_success() -> None:
    task = "apps.audit.tasks.verify_chain"
    registered(task).apply()
    sound = Round.objects.get(name=task)
    assert (sound.succeeded_at is not None, sound.said) == (True, "")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE audit_head DISABLE TRIGGER USER")
        cursor.execute("UPDATE audit_head SET seq = seq + 7")
    registered(task).apply()
    row = Round.objects.get(name=task)
    assert (row.succeeded_at, row.said) == (sound.succeeded_at, audit.verify(now=now()).finding)
    assert row.said


def test_health_says_how_every_task_stands() -> None:
    moment = now()
    ran(HOURLY, at=moment - 4 * HOUR)
    ran(QUICK, at=moment)
    ran("apps.governance.tasks.sweep_notices", at=moment, say=lambda: rounds.undone("no mail server"))
    ran("apps.platforms.tasks.sync_allowlist", at=moment, say=rounds.off)
    client = Client()
    client.force_login(user(Role.OPERATOR))
    rows = Page(client.get("/staff/health/")).tables["tasks"]
    assert [row[0] for row in rows] == [task.rpartition(".")[2] for task, _, _ in BEAT]
    shown = {row[0]: row[3:] for row in rows}
    assert {name: shown[name] for name in ("forget_the_expired", "drain_wakeups", "sweep_notices")} == {
        "forget_the_expired": ("■ overdue", "4 h ago"),
        "drain_wakeups": ("● done", "0 s ago"),
        "sweep_notices": ("▲ not done no mail server", "never"),
    }
    assert (shown["sync_allowlist"], shown["check_names"]) == (("○ off", "never"), ("not run yet", "never"))
    rooms = {row[0]: row[1] for row in Page(client.get("/console/operations/")).tables["rooms"]}
    assert rooms["Scheduled tasks"] == "▲ 1 overdue"
    assert client.get("/readyz").json() == {"ok": True, "failing": [], "overdue": ["forget_the_expired"]}
