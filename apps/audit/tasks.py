"""Background tasks of the log."""

import logging

from celery import shared_task

from apps.audit import publishing, services
from apps.audit.checkpoints import CheckpointError
from apps.core import rounds
from apps.core.clock import now

log = logging.getLogger(__name__)


@shared_task
def verify_chain() -> str:
    """Prove the chain; a broken one is an error in the log of the worker and on the decisions page."""
    proof = services.verify(now=now())
    if not proof.is_sound:
        log.error("audit log broken: %s", proof.finding)
        rounds.undone(proof.finding)
    return proof.finding or f"verified to #{proof.verified_to}"


@shared_task
def make_checkpoint() -> str:
    """The checkpoint of today (UTC), once: later runs of the day change nothing. One that cannot be made is an error in
    the log of the worker, and health says how old the last one is."""
    try:
        made = publishing.make_daily(now=now())
    except CheckpointError as error:
        log.error("no checkpoint of the audit log: %s", error)
        rounds.undone(str(error))
        return str(error)
    return str(made) if made else "no checkpoint"


@shared_task
def push_checkpoints() -> str:
    """Bring to the outside repository what it lacks, if it is due. Its failures stand on the row and in health."""
    pushed = publishing.push(now=now())
    return str(pushed) if pushed else "nothing to push"
