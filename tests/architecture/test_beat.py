"""Tasks: what runs by itself exists, and goes to a queue that a worker reads."""

from accelhub.celery import BEAT, app
from apps.core import wakeups


def test_every_line_of_the_beat_table_names_a_task_that_exists() -> None:
    app.loader.import_default_modules()
    assert [name for name, _, _ in BEAT if name not in app.tasks] == []
    assert len(app.conf.beat_schedule) == len(BEAT)


def test_every_task_goes_to_one_of_the_two_queues() -> None:
    app.loader.import_default_modules()
    names = [name for name in app.tasks if name.startswith("apps.")]
    queues = {name: app.amqp.router.route({}, name)["queue"].name for name in names}
    assert set(queues.values()) == {"relay", "heavy"}
    assert queues["apps.audit.tasks.verify_chain"] == "heavy"


def test_every_topic_has_its_handler() -> None:
    assert set(wakeups._handlers) == {
        "repository_unpinned",
        "repository_renamed",
        "delivery_received",
        "dispatch_pending",
    } | {
        *("job_changed", "notice_pending", "forward_pending", "graph_pending"),
        *("report_received", "report_ready", "file_unwanted"),
        *("allowlist_edit_pending", "allowlist_sync_wanted", "decision_put_back", "allowlist_alarm"),
        "quarantine_broken",
        *("job_for_checks", "delivery_for_checks", "listing_for_checks", "check_pending", "rerun_pending"),
        *("gate_changed", "breaker_changed", "breaker_said", "gate_asked", "blocking_changed", "base_known"),
    }
