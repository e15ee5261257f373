"""Making checkpoints of the log, and bringing them to a git repository that the hub's operators do not hold alone."""

import datetime
import logging

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.db import connection, transaction

from apps.audit import checkpoints, export, outside, selectors, services
from apps.audit.chain import GENESIS, stamp
from apps.audit.checkpoints import CheckpointError
from apps.audit.export import Digest
from apps.audit.models import Checkpoint, CheckpointPush
from apps.audit.outside import GitError
from apps.core import clock, outbox, rounds
from apps.core.backoff import ATTEMPTS_MAX

log = logging.getLogger(__name__)

# One at a time makes checkpoints: a number of our own among PostgreSQL's advisory locks.
_LOCK = 0x0A0D17
# An attempt is bounded by the time limits of its git commands (outside.py); what is older has lost its worker.
PUSH_LOST_SECONDS = 600


def signing_key() -> Ed25519PrivateKey | None:
    """The configured key; None where there is none. Raises CheckpointError."""
    return checkpoints.read_private_key(settings.CHECKPOINT_KEY) if settings.CHECKPOINT_KEY else None


def make_daily(*, now: datetime.datetime) -> Checkpoint | None:
    """Today's checkpoint (UTC), made unless it is there. None without a key, or while the log is empty.

    Raises CheckpointError where the log is broken: a checkpoint would give it its blessing.
    """
    if not settings.CHECKPOINT_KEY:
        rounds.off()
        return None
    if selectors.head().seq == 0:
        return None
    last = selectors.newest_checkpoint()
    return last if last and _is_of_day(last, now) else make(now=now, once_a_day=True)


def make(*, now: datetime.datetime, once_a_day: bool = False) -> Checkpoint:
    """A checkpoint of the log as it stands. The last one again where nothing was appended since, or where
    `once_a_day` and there is one of today.

    Raises CheckpointError: without a key, for an empty log, for a broken one.
    """
    key = signing_key()
    if key is None:
        raise CheckpointError("ACCELHUB_CHECKPOINT_KEY is not set: set it, or ACCELHUB_CHECKPOINT_KEY_FILE")
    proof = services.verify(now=now)
    if not proof.is_sound:
        raise CheckpointError(f"the log is broken after event {proof.verified_to}: {proof.finding}")
    if proof.verified_to == 0:
        raise CheckpointError("the log holds no event yet")
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        last = selectors.newest_checkpoint()
        if last and _says_enough(last, proof.verified_to, now, once_a_day=once_a_day):
            return last
        signed = checkpoints.sign(
            key,
            number=last.number + 1 if last else 1,
            at=stamp(now),
            hub=settings.BASE_URL,
            upstream=settings.UPSTREAM_REPO,
            seq=proof.verified_to,
            hash=proof.head_hash,
            export_digest=_digest_up_to(proof.verified_to),
            previous=checkpoints.read(last.text, last.signature).digest if last else GENESIS,
        )
        return Checkpoint.objects.create(
            number=signed.number,
            at=now,
            seq=signed.seq,
            hash=signed.hash,
            previous=signed.previous,
            public_key=signed.public_key,
            text=signed.text,
            signature=signed.signature,
        )


def _says_enough(last: Checkpoint, seq: int, now: datetime.datetime, *, once_a_day: bool) -> bool:
    if once_a_day:
        return _is_of_day(last, now)
    return last.seq >= seq


def _is_of_day(checkpoint: Checkpoint, now: datetime.datetime) -> bool:
    return checkpoint.at.astimezone(datetime.UTC).date() == now.astimezone(datetime.UTC).date()


def _digest_up_to(seq: int) -> str:
    lines = Digest()
    for batch in selectors.events_up_to(seq):
        for link, is_decision in batch:
            lines.add(export.event_line(link if is_decision else export.without_body(link)))
    return lines.hex


# --- the outside repository -------------------------------------------------------------------------------------


def push(*, now: datetime.datetime) -> CheckpointPush | None:
    """Bring what the outside repository lacks to it. None where there is nothing to do, or not yet.

    A failure is kept on the row and tried again by the table of waits (core/backoff.py), then every hour for as long as
    it lasts: no checkpoint is ever given up.
    """
    newest = selectors.newest_checkpoint()
    if not settings.CHECKPOINT_GIT:
        rounds.off()
        return None
    if newest is None:
        return None
    made, _ = CheckpointPush.objects.get_or_create(
        address=settings.CHECKPOINT_GIT, defaults={"changed_at": now, "next_attempt_at": now}
    )
    row = CheckpointPush.objects.filter(pk=made.pk)
    outbox.abandoned(row, now=now, after_seconds=PUSH_LOST_SECONDS).update(state=outbox.PENDING, error=outbox.LOST)
    if not outbox.begin(row.filter(number__lt=newest.number, next_attempt_at__lte=now), now=now):
        if (stands := row.get()).number < newest.number:
            rounds.undone(stands.error or "another worker is at it")
        return None
    attempt = row.get().attempts
    files = {each.file_name: each.file for each in Checkpoint.objects.order_by("number").iterator()}
    try:
        outside.publish(settings.CHECKPOINT_GIT, files, token=settings.CHECKPOINT_GIT_TOKEN, message=str(newest))
    except GitError as error:
        log.error("checkpoints are not at %s: %s", settings.CHECKPOINT_GIT, error)
        rounds.undone(str(error))
        due = outbox.next_attempt_at(min(attempt, ATTEMPTS_MAX - 1), now=now)
        outbox.finish(row, attempt=attempt, error=str(error), now=now, state=outbox.PENDING, next_attempt_at=due)
    else:
        pushed = {"number": newest.number, "pushed_at": clock.real(now), "attempts": 0}
        outbox.finish(row, attempt=attempt, error="", now=now, state=outbox.PENDING, **pushed)
    return row.get()
