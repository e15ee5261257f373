"""The dashboard's door: today's relay posts what its downstreams called back, and the hub keeps it and passes it on.

Source: docs/protocol.md, "Results of a relay". The relay has verified who the downstream is; the callback inside is the
downstream's own word, read by the same table of fields and applied by the same matrix as one that came here.
"""

import contextlib
import dataclasses
import datetime
import hashlib
import hmac
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from apps.core.access import signed
from apps.core.clock import now as clock_now
from apps.core.errors import Problem, problem_response
from apps.core.text import storable
from apps.core.wakeups import wake
from apps.platforms.models import Repository
from apps.platforms.policy import CHECKS_FROM, PUBLIC_FROM, UNLISTED
from apps.relay import callbacks, fields, forwarding, modes, policy, store
from apps.relay.enums import Answer, Flag
from apps.relay.models import Job
from apps.relay.topics import JOB_CHANGED

BODY_MAX_BYTES = 2_097_152
REFUSED = "refused"
_RACES = 10
_INT32 = 2_147_483_647
PAYLOAD = "untrusted.callback_payload"


@dataclass(frozen=True)
class Post:
    """A body, read as far as the route itself asks for. Seconds are None where the relay did not measure."""

    repository: str
    level: str
    queue_seconds: int | None
    execution_seconds: int | None
    payload: dict[str, Any]

    @property
    def claims(self) -> dict[str, str]:
        """What the relay vouches for, as a kept callback says who proved it."""
        return {"source": "relay", "repository": self.repository, "downstream_repo_level": self.level}


@csrf_exempt
@signed
def results(request: HttpRequest) -> HttpResponse:
    """`POST /api/crcr/results`: one callback that the relay took. Header `x-hud-internal-bot`: the shared key.

    Answers 200 `{"ok", "status": "applied"|"duplicate"|"late"|"conflict"|"ignored"}`. Raises Problem: `bot_key_wrong`,
    `other_mode`, `too_large`, `malformed`.
    """
    if request.method != "POST":
        return problem_response(Problem("method", "Send a POST.", headers={"Allow": "POST"}))
    moment = clock_now()
    try:
        _verify_key(request.headers.get("x-hud-internal-bot", ""))
    except Problem as problem:
        callbacks.count_rejection(problem=problem, identity=None, standing=None, now=moment)
        raise
    modes.require(modes.current().takes_results, "it takes no relay's results")
    length = request.headers.get("Content-Length", "0")
    if length.isdigit() and int(length) > BODY_MAX_BYTES:
        raise Problem("too_large", f"The body has {length} bytes, at most {BODY_MAX_BYTES} are read.")
    return JsonResponse({"ok": True, "status": accept(raw=request.body, now=moment)})


def _verify_key(sent: str) -> None:
    # An empty key would let everyone in.
    if not settings.HUD_BOT_KEY or not hmac.compare_digest(sent.encode(), settings.HUD_BOT_KEY.encode()):
        raise Problem("bot_key_wrong", "x-hud-internal-bot: is not the key of this hub.", "x-hud-internal-bot")


def accept(*, raw: bytes, now: datetime.datetime) -> str:
    """Keep one post for the dashboard and apply its callback, in one transaction. Returns what became of it.

    What only the hub refuses still goes on to the dashboard: it stood there before, and may take it.
    Raises Problem `malformed`, `other_mode`, `unavailable`.
    """
    post = read(raw)
    refusal: Problem | None = None
    answer = REFUSED
    with transaction.atomic():
        workflow = post.payload["workflow"]
        delivery_id = str(post.payload.get("delivery_id", ""))
        job = [post.repository.lower(), delivery_id, *(str(workflow.get(name)) for name in _ORDERED_BY)]
        forward = forwarding.keep(
            repository_name=post.repository,
            delivery_id=storable(delivery_id, 200),
            order_key=hashlib.sha256(repr(job).encode("utf-8", "backslashreplace")).hexdigest(),
            raw=raw,
            now=now,
        )
        try:
            answer = _apply(post, body_digest=hashlib.sha256(raw).hexdigest(), now=now)
        except Problem as problem:
            refusal = problem
        forward.answer, forward.detail = answer, refusal.detail[:500] if refusal else ""
        forward.save(update_fields=["answer", "detail"])
    if refusal is not None:
        raise refusal
    return answer


_ORDERED_BY = ("run_id", "run_attempt", "name", "job_name", "check_run_id")


def read(raw: bytes) -> Post:
    """Read what the route asks for. Raises Problem `malformed` that names the field."""
    body = fields.json_object(raw)
    trusted, payload = _object(body, "trusted"), _object(_object(body, "untrusted"), "callback_payload", PAYLOAD)
    metrics = trusted.get("ci_metrics")
    metrics = metrics if isinstance(metrics, dict) else {}
    workflow = _object(payload, "workflow", f"{PAYLOAD}.workflow")
    for name in ("job_name", "check_run_id"):
        if workflow.get(name) in (None, ""):
            path = f"{PAYLOAD}.workflow.{name}"
            raise Problem("malformed", f"{path}: is missing, send text that names the job.", path)
    return Post(
        repository=_text(trusted, "verified_repo", 140, is_required=True),
        level=_text(trusted, "downstream_repo_level", 10),
        queue_seconds=_seconds(metrics, "queue_time"),
        execution_seconds=_seconds(metrics, "execution_time"),
        payload=payload,
    )


def _object(parent: dict[str, Any], name: str, path: str = "") -> dict[str, Any]:
    value = parent.get(name)
    if not isinstance(value, dict):
        raise Problem("malformed", f"{path or name}: is no object, send one.", path or name)
    return value


def _text(trusted: dict[str, Any], name: str, cap: int, *, is_required: bool = False) -> str:
    value, path = trusted.get(name), f"trusted.{name}"
    if value in (None, "") and not is_required:
        return ""
    if not isinstance(value, str) or not 0 < len(value) <= cap or storable(value) != value:
        raise Problem("malformed", f"{path}: send text of 1 to {cap} characters.", path)
    return value


def _seconds(metrics: dict[str, Any], name: str) -> int | None:
    """A measure in seconds. One that cannot be (the relay's clocks may disagree) is none."""
    value, path = metrics.get(name), f"trusted.ci_metrics.{name}"
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Problem("malformed", f"{path}: is no number, send seconds or null.", path)
    return round(value) if 0 <= value <= _INT32 else None


def _apply(post: Post, *, body_digest: str, now: datetime.datetime) -> str:
    """Apply the callback inside a post. Raises Problem `malformed`, `other_mode`, `unavailable`."""
    try:
        callback = fields.read_object(post.payload, body_digest=body_digest)
        if not callback.event_type:
            raise Problem("malformed", "event_type: is missing, send the event's name.", "event_type")
    except Problem as problem:
        path = f"{PAYLOAD}.{problem.field}" if problem.field else None
        raise Problem(problem.code, f"{PAYLOAD}.{problem.detail}", path) from None
    # The relay vouches for a name, not for ids: GitHub's spelling of it is what the listing has.
    found = Repository.objects.filter(full_name__iexact=post.repository).first()
    if found is None:
        return Answer.IGNORED.value
    for _ in range(_RACES):
        with contextlib.suppress(store.Raced):  # then all of it again
            return _write(found, callback, post, now)
    raise Problem("unavailable", "Too many posts for this job at once.", headers={"Retry-After": "1"})


def _write(repository: Repository, callback: fields.Callback, post: Post, now: datetime.datetime) -> str:
    """Read, decide, write. Raises store.Raced when another post of the job was faster.

    The relay's word shows nothing about a dispatch of the hub: the provenance stays as it is known.
    """
    word = store.Word(post.claims)
    known = store.read(repository.pk, callback, word)
    if repository.level < PUBLIC_FROM and known.job_id is None:
        if repository.level > UNLISTED:
            store.keep_private(repository.pk, callback, identity=word, now=now)
        return Answer.IGNORED.value
    # Two relays at once: of what the hub dispatches, it hears from the downstream itself.
    modes.require(known.dispatch_id is None or not modes.current().dispatches, "it dispatched this delivery itself")
    is_dispatched = callback.event_type not in policy.UNDISPATCHED_EVENTS
    if is_dispatched and known.event is not None:
        callback = dataclasses.replace(callback, head_sha=known.head_sha, pr_number=known.pr_number)
    elif is_dispatched:
        sha, number = echoed_sha(post.payload), echoed_number(post.payload)
        callback = dataclasses.replace(callback, head_sha=sha, pr_number=number)
    else:
        known = dataclasses.replace(known, event=None, dispatch_id=None)
    found = callbacks.found_flags(known, callback.report, callback.leg, now)
    row = policy.decide(known.state, callback.report, expects_start=is_dispatched, found=found)
    if known.dispatch_id is None:
        row = dataclasses.replace(row, add=(*row.add, Flag.RELAYED))
    job = known.job_public_id
    if row.answer is not Answer.DUPLICATE:
        job = store.write(
            repository.pk,
            callback,
            known,
            row,
            bucket=policy.bucket_after(known.state, callback.report),
            provenance=known.provenance,
            identity=word,
            # A check run tells of what the hub itself dispatched.
            has_checks=known.dispatch_id is not None and repository.level >= CHECKS_FROM,
            now=now,
        )
    assert job is not None
    if row.answer is not Answer.CONFLICT:  # what the relay measured is of the end that does not stand
        keep_measures(job, queue_seconds=post.queue_seconds, execution_seconds=post.execution_seconds, now=now)
    return row.answer.value


def keep_measures(
    job: UUID, *, queue_seconds: int | None, execution_seconds: int | None, now: datetime.datetime
) -> None:
    """Keep what the relay measured of a job. None never overwrites a value."""
    said = {"relay_queue_seconds": queue_seconds, "relay_execution_seconds": execution_seconds}
    new = {name: Coalesce(Value(value), F(name)) for name, value in said.items() if value is not None}
    if not new:
        return
    Job.objects.filter(public_id=job).update(**new)
    found = Job.objects.get(public_id=job)
    wake(JOB_CHANGED, [f"{found.repository_id}:{found.first_seen_at.astimezone(datetime.UTC).date()}"], now=now)


def echoed_sha(payload: dict[str, Any]) -> str:
    """The commit that an echoed webhook is about; '' where it names none. Not proven: the downstream sent it."""
    event = payload.get("payload")
    event = event if isinstance(event, dict) else {}
    request = event.get("pull_request")
    head = request.get("head") if isinstance(request, dict) else None
    return fields.sha(head.get("sha") if isinstance(head, dict) else event.get("after"))


def echoed_number(payload: dict[str, Any]) -> int | None:
    """The pull request that an echoed webhook is about; None where it names none. Not proven either."""
    event = payload.get("payload")
    request = event.get("pull_request") if isinstance(event, dict) else None
    number = request.get("number") if isinstance(request, dict) else None
    is_number = isinstance(number, int) and not isinstance(number, bool) and 0 < number < 2**63
    return number if is_number else None
