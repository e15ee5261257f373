"""Celery: two queues, one beat table.

`relay` (threads) carries everything short that waits on the network; `heavy` (one process) carries long
computation, so that a big parse never delays a dispatch.
"""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "accelhub.settings")

app = Celery("accelhub")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

HEAVY = "heavy"
app.conf.task_routes = {
    "apps.audit.tasks.verify_chain": {"queue": HEAVY},
}

# What runs by itself, how often (seconds), and why.
BEAT = [
    ("apps.core.tasks.drain_wakeups", 2, "wake-ups whose enqueue was lost"),
    ("apps.relay.tasks.sweep_dispatches", 30, "dispatches whose task was lost"),
    ("apps.audit.tasks.verify_chain", 300, "the log's chain is proved, and the page says up to where"),
]
app.conf.beat_schedule = {
    task.rsplit(".", 1)[1]: {"task": task, "schedule": seconds, "options": {"expires": seconds}}
    for task, seconds, _why in BEAT
}
