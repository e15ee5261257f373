"""Celery: two queues, one beat table.

`relay` (threads) carries everything short that waits on the network; `heavy` (one process) carries long
computation, so that a big parse never delays a dispatch.
"""

import os
from contextlib import ExitStack
from typing import Any

from celery import Celery
from celery.signals import (
    beat_init,
    before_task_publish,
    task_failure,
    task_postrun,
    task_prerun,
    task_success,
)
from django.conf import settings

from apps.core import clock

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "accelhub.settings")

app = Celery("accelhub")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

HEAVY = "heavy"
app.conf.task_routes = {
    "apps.audit.tasks.verify_chain": {"queue": HEAVY},
    "apps.audit.tasks.make_checkpoint": {"queue": HEAVY},
    "apps.results.tasks_reports.parse_report": {"queue": HEAVY},
    "apps.results.tasks.fill_search": {"queue": HEAVY},
    "apps.results.tasks_reports.publish_names": {"queue": HEAVY},
    "apps.results.tasks_reports.count_coverage": {"queue": HEAVY},
    "apps.governance.tasks.evaluate_field": {"queue": HEAVY},
    "apps.quarantine.tasks.look_through": {"queue": HEAVY},
    "apps.quarantine.tasks.expire_quarantines": {"queue": HEAVY},
    "apps.quarantine.tasks.sweep_quarantines": {"queue": HEAVY},
    "apps.quarantine.tasks.sweep_evidence": {"queue": HEAVY},
}

# What runs by itself, how often (seconds), and why.
BEAT = [
    ("apps.core.tasks.drain_wakeups", 2, "wake-ups whose enqueue was lost"),
    ("apps.core.tasks.drain_lazy_wakeups", 10, "work that many changes in a row share: counting days"),
    ("apps.relay.tasks.look_up_due_runs", 30, "conclusions that GitHub's record of the run may confirm or contradict"),
    ("apps.relay.tasks.sweep_silent_jobs", 60, "jobs of which nothing was heard until their limit"),
    ("apps.relay.tasks.look_up_commits", 300, "commits that nightly runs name and nobody has asked upstream about"),
    ("apps.relay.tasks.sweep_dispatches", 5, "dispatches that are due again, waited for a place, or lost their task"),
    ("apps.checks.tasks.sweep_checks", 30, "check runs and re-runs whose task was lost, or whose next attempt is due"),
    ("apps.relay.tasks_adoption.sweep_forwards", 30, "results for the dashboard that are due, or whose task was lost"),
    ("apps.relay.tasks_adoption.look_at_checks", 120, "check runs that GitHub shows: whose they are, what they say"),
    ("apps.relay.tasks_adoption.compare_deliveries", 120, "shadow mode: what the hub would do beside what was done"),
    ("apps.relay.tasks_upstream.settle_graph", 60, "commits to be placed whose task was lost, or whose turn has come"),
    ("apps.relay.tasks_upstream.compare_delivery_log", 300, "webhooks that GitHub sent and the hub did not get"),
    ("apps.results.tasks.recount_recent", 3_600, "today's and yesterday's counts, whatever a lost message left behind"),
    ("apps.results.tasks_reports.sweep_reports", 30, "reports whose worker died or whose task was lost"),
    ("apps.results.tasks_reports.forget_raw", 3_600, "uploaded bytes that were kept as long as the setting says"),
    ("apps.results.tasks_reports.look_up_claimed_commits", 300, "commits that reports name, asked upstream about"),
    ("apps.results.tasks.fill_search", 60, "tests that reports have named and nobody can search for yet"),
    ("apps.results.tasks_reports.publish_names", 60, "tests of new public reports, for anyone to search for"),
    ("apps.results.tasks_reports.count_coverage", 60, "how much of what could be run new reports ran"),
    ("apps.quarantine.tasks.sweep_evidence", 300, "reports whose evidence of flaky tests is behind"),
    ("apps.quarantine.tasks.expire_quarantines", 60, "quarantines that have run out"),
    ("apps.quarantine.tasks.sweep_quarantines", 3_600, "quarantines that have vanished, or may go"),
    ("apps.quarantine.tasks.fetch_upstream_list", 900, "upstream's own list of disabled tests"),
    ("apps.platforms.tasks.pin_the_unpinned", 600, "repositories whose numeric ids GitHub has not confirmed yet"),
    ("apps.platforms.tasks.sync_allowlist", 120, "the allowlist file upstream, and the pull requests on it"),
    ("apps.platforms.tasks.confirm_names", 600, "new names of repositories that GitHub has not confirmed yet"),
    ("apps.platforms.tasks.check_names", 900, "repositories that were renamed or moved, and are not reached any more"),
    ("apps.governance.tasks.evaluate_field", 3_600, "the day's evaluation of every repository against the policy"),
    ("apps.levels.tasks.take_due_promotions", 60, "promotions of which the time for objections is over"),
    ("apps.levels.tasks.follow_falling", 600, "notices, temporary downgrades and ways back, as nights and time say"),
    (
        "apps.gate.tasks.sweep_breakers",
        60,
        "blocking repositories that fail beyond the policy, or have proved themselves",
    ),
    ("apps.gate.tasks.sweep_waiting", 60, "commits of which the gate waits for something that time alone may end"),
    ("apps.appeals.tasks.remind_overdue", 600, "appeals whose deadline has passed, told once to who may decide"),
    ("apps.governance.tasks.sweep_notices", 30, "e-mails whose task was lost, or whose next attempt is due"),
    ("apps.accounts.tasks.forget_the_expired", 3_600, "sessions that ran out, sign-ins that nobody finished"),
    ("apps.audit.tasks.verify_chain", 300, "the log's chain is proved, and the page says up to where"),
    ("apps.audit.tasks.make_checkpoint", 300, "the day's signed checkpoint of the log, once it is missing"),
    ("apps.audit.tasks.push_checkpoints", 60, "checkpoints that the outside repository lacks, when they are due"),
]
app.conf.beat_schedule = {
    task.rsplit(".", 1)[1]: {"task": task, "schedule": seconds, "options": {"expires": seconds}}
    for task, seconds, _why in BEAT
}


@beat_init.connect
def begin_comparison(**_: Any) -> None:
    """From here on the hub is answerable for webhooks in this mode, and its scheduled tasks for their work: nothing
    waits for a worker to say so."""
    from apps.core import rounds
    from apps.relay import missed

    missed.begin(now=clock.now())
    rounds.begin(now=clock.now())


# --- when a scheduled task last did its work (apps/core/rounds.py) ---------------------------------------------------


@task_prerun.connect
def begin_round(**_: Any) -> None:
    from apps.core import rounds

    rounds.start()


@task_success.connect
def note_success(sender: Any, **_: Any) -> None:
    from apps.core import rounds

    rounds.note(sender.name, now=clock.now())


@task_failure.connect
def note_failure(sender: Any, exception: BaseException, **_: Any) -> None:
    from apps.core import rounds

    rounds.note(sender.name, now=clock.now(), error=exception)


# --- a demo's pretended time goes with the messages that were published under it (apps/core/clock.py) ----------------

CLOCK_HEADER = "accelhub_clock"


@before_task_publish.connect
def send_clock(headers: dict[str, Any], **_: Any) -> None:
    if (moment := clock.pretended()) is not None:
        headers[CLOCK_HEADER] = moment.isoformat()


@task_prerun.connect
def take_clock(task: Any, **_: Any) -> None:
    text = (task.request.headers or {}).get(CLOCK_HEADER)
    if settings.DEMO and isinstance(text, str):
        pretending = ExitStack()
        pretending.enter_context(clock.at(clock.read(text)))
        task.request.pretending = pretending


@task_postrun.connect
def leave_clock(task: Any, **_: Any) -> None:
    if (pretending := task.request.get("pretending")) is not None:
        pretending.close()
