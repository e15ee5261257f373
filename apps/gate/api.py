"""The API of the gate."""

import datetime
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Open
from apps.gate import services
from apps.gate.models import StoredVerdict
from apps.gate.selectors import absolute, question_of, stored_at, told_of

_INT64 = 2**63


class GateView(APIView):
    """`GET /api/v1/gate/?pr=|sha=&when=`: whether the blocking repositories let a commit pass, with the reasons.

    Of a pull request's newest head, or of a commit (seven characters or more); with `when`, an ISO time with its zone,
    as it stood then. 200 `{verdict, sha, pr, at, policy, inputs_hash, requirements [{type, effect, repository, level,
    outcome, sentence, rows [{kind, label, url}], rows_total}], stored {at, verdict, inputs_hash} or null}`; 400
    `malformed`; 404 `not_found`.
    """

    access = Open.PUBLIC

    def get(self, request: Request) -> Response:
        given = request.query_params
        moment = now()
        when = _when(given.get("when", ""), moment)
        asked = question_of(sha=given.get("sha", "").lower(), pr_number=_number(given.get("pr", "")), at=when)
        told = told_of(asked)
        if told is None:
            raise Problem("not_found", f"The hub had not been told of {asked.sha} by then.")
        stored = services.keep(told) if when == moment else stored_at(asked)
        return Response(
            {
                "verdict": told.answer.verdict.value,
                "sha": told.sha,
                "pr": told.pr_number,
                "at": told.at,
                "policy": told.policy.number,
                "inputs_hash": told.inputs_hash,
                "requirements": [absolute(one) for one in told.requirements],
                "stored": _stored_out(stored),
            }
        )


def _stored_out(stored: StoredVerdict | None) -> dict[str, Any] | None:
    if stored is None:
        return None
    return {"at": stored.at, "verdict": stored.verdict, "inputs_hash": stored.inputs_hash}


def _when(text: str, moment: datetime.datetime) -> datetime.datetime:
    if not text:
        return moment
    try:
        # A plus in an address that was not escaped is a space.
        read = datetime.datetime.fromisoformat(text.replace(" ", "+"))
        when = read.astimezone(datetime.UTC) if read.tzinfo else None
    except (ValueError, OverflowError):
        when = None
    if when is None:
        raise Problem("malformed", f"when: saw {text[:40]!r}, send a time like 2026-11-30T14:00:00Z.", "when")
    if when > moment:
        raise Problem("malformed", "when: lies ahead, send a time that has passed, or none.", "when")
    return when


def _number(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19 and 0 < int(text) < _INT64):
        raise Problem("malformed", f"pr: saw {text[:20]!r}, send the number of a pull request.", "pr")
    return int(text)
