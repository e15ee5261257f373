"""Background tasks of the log."""

import logging

from celery import shared_task

from apps.audit import services
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
