"""The protocol's two doors: GitHub's webhooks in, downstream callbacks in. Plain views: this is the hot path."""

import hashlib
import hmac
import json
import logging
import re
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt

from apps.core.access import signed
from apps.core.clock import now
from apps.core.errors import Problem, problem_response
from apps.relay import callbacks, fields, identity, limits, modes, policy, services
from apps.relay.enums import Answer

log = logging.getLogger(__name__)

_DELIVERY_ID = re.compile(r"[0-9A-Za-z-]{1,100}", re.ASCII)


@csrf_exempt
@signed
def webhook(request: HttpRequest) -> HttpResponse:
    """`POST /github/webhook`: store a delivery once and answer at once; dispatching happens after.

    Headers X-GitHub-Event, X-GitHub-Delivery, X-Hub-Signature-256 (HMAC-SHA256 of the raw body). Answers 202
    `{"ok", "delivery_id", "status": "accepted"}`, or 200 with `duplicate` or `ignored`. Source: docs/protocol.md,
    "Webhook". Raises Problem: `signature_missing`, `signature_wrong`, `malformed`.
    """
    if refused := _only_post(request):
        return refused
    event = request.headers.get("X-GitHub-Event", "")
    delivery_id = request.headers.get("X-GitHub-Delivery", "")
    if event not in policy.SUPPORTED_EVENTS or not modes.current().takes_webhooks:
        return _webhook_answer(delivery_id, "ignored")
    raw = request.body
    _verify_hmac(raw, request.headers.get("X-Hub-Signature-256", ""))
    if not _DELIVERY_ID.fullmatch(delivery_id):
        raise Problem("malformed", "X-GitHub-Delivery: send the delivery's id.", "X-GitHub-Delivery")
    body, text = _webhook_body(raw)
    repository = body.get("repository")
    full_name = repository.get("full_name") if isinstance(repository, dict) else None
    if not isinstance(full_name, str) or full_name.lower() != settings.UPSTREAM_REPO.lower():
        return _webhook_answer(delivery_id, "ignored")
    return _webhook_answer(
        delivery_id, services.receive_delivery(delivery_id=delivery_id, event=event, body=body, raw=text, now=now())
    )


def _verify_hmac(raw: bytes, header: str) -> None:
    if not header:
        raise Problem("signature_missing", "X-Hub-Signature-256: is missing.", "X-Hub-Signature-256")
    expected = "sha256=" + hmac.new(settings.GITHUB_WEBHOOK_SECRET.encode(), raw, hashlib.sha256).hexdigest()
    # An empty secret would make every signature forgeable.
    if not settings.GITHUB_WEBHOOK_SECRET or not hmac.compare_digest(expected.encode(), header.encode()):
        raise Problem("signature_wrong", "X-Hub-Signature-256: does not fit the body.", "X-Hub-Signature-256")


def _webhook_body(raw: bytes) -> tuple[dict[str, Any], str]:
    try:
        text = raw.decode()
        body = json.loads(text)
    except (ValueError, RecursionError):
        raise Problem("malformed", "The body is not JSON.") from None
    if not isinstance(body, dict):
        raise Problem("malformed", "The body is not a JSON object.")
    return body, text


def _webhook_answer(delivery_id: str, status: str) -> HttpResponse:
    body = {"ok": True, "delivery_id": delivery_id, "status": status}
    return JsonResponse(body, status=202 if status == "accepted" else 200)


@csrf_exempt
@signed
def callback(request: HttpRequest) -> HttpResponse:
    """`POST /github/callback`: a downstream's CI job says that it began or ended.

    `Authorization: Bearer <OIDC token>`, body as docs/protocol.md, "Callback" (the official reporter's). Answers 200
    `{"ok", "status": "applied"|"duplicate"|"late"|"held"|"ignored", "job"?: <url>}`. Every refusal of status 401, 403,
    409 and 429 is counted. Raises Problem: `too_large`, `malformed`, `token_*`, `identity_*`, `claims_contradict`,
    `token_reused`, `never_dispatched`, `dispatch_token_wrong`, `completion_conflict`, `other_mode`, `rate_limited`,
    `unavailable`.
    """
    if refused := _only_post(request):
        return refused
    moment, caller, standing = now(), None, None
    try:
        length = request.headers.get("Content-Length", "0")
        if length.isdigit() and int(length) > fields.BODY_MAX_BYTES:
            raise Problem("too_large", f"The body has {length} bytes, at most {fields.BODY_MAX_BYTES} are read.")
        caller = identity.verify(identity.bearer_token(request.headers.get("Authorization", "")))
        modes.require(modes.current().takes_callbacks, "send callbacks to the relay")
        limits.check(caller.numbers[0])
        standing = callbacks.resolve(identity=caller, now=moment)
        outcome = callbacks.accept(identity=caller, standing=standing, raw=request.body, now=moment)
    except Problem as problem:
        if problem.row.status in callbacks.COUNTED_STATUSES:
            callbacks.count_rejection(problem=problem, identity=caller, standing=standing, now=moment)
        raise
    if outcome.answer is Answer.IGNORED:
        return JsonResponse({"ok": True, "status": "ignored"})
    url = settings.BASE_URL + reverse("public:job", args=[outcome.job])
    return JsonResponse({"ok": True, "status": outcome.answer.value, "job": url})


def _only_post(request: HttpRequest) -> HttpResponse | None:
    if request.method == "POST":
        return None
    return problem_response(Problem("method", "Send a POST.", headers={"Allow": "POST"}))
