"""The API of appeals."""

import uuid
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.appeals import policy, selectors, services
from apps.appeals.enums import Claim, Outcome
from apps.appeals.forms import AppealFilterForm
from apps.appeals.models import Appeal
from apps.audit.models import Event
from apps.core.api import choice, text
from apps.core.clock import now
from apps.core.cursors import listed, read_filters
from apps.core.errors import Problem
from apps.core.permissions import Open
from apps.core.sheets import SheetView
from apps.platforms.selectors import repository_or_404

_INT32, _INT64 = 2**31 - 2, 2**63 - 1


class AppealOut(serializers.Serializer[Any]):
    """An appeal. `decision`: the contested one's number in the log, else `figure` of `repository` from `first_day` to
    `last_day`; `stood`: what it said then. `compensation`: the decision that undid it."""

    id = serializers.UUIDField(source="public_id")
    platform = serializers.SlugField(source="platform.slug")
    repository = serializers.CharField(source="repository.full_name", default=None)
    decision = serializers.IntegerField(source="decision_seq")
    figure = serializers.CharField()
    first_day = serializers.DateField()
    last_day = serializers.DateField()
    stood = serializers.CharField()
    claim = serializers.CharField()
    words = serializers.CharField()
    links = serializers.ListField(child=serializers.CharField())
    state = serializers.SerializerMethodField()
    overdue = serializers.SerializerMethodField()
    opened_at = serializers.DateTimeField()
    deadline_at = serializers.DateTimeField()
    paused_until = serializers.DateTimeField()
    decided_at = serializers.DateTimeField()
    decided_by = serializers.CharField()
    reason = serializers.CharField()
    compensation = serializers.IntegerField(source="compensation_seq")
    rows = serializers.IntegerField(source="row_count")
    revision = serializers.IntegerField()

    def get_state(self, appeal: Appeal) -> str:
        return policy.state_at(appeal.state, appeal.paused_until, now()).value

    def get_overdue(self, appeal: Appeal) -> bool:
        return policy.is_overdue(appeal.state, appeal.deadline_at, now())


class AppealList(SheetView):
    """`GET /api/v1/appeals/?platform=&state=&overdue=&cursor=&limit=&format=`: every appeal, the newest first. The
    filters are the page's.

    200 `{"next", "previous", "results": [...]}`, each as AppealOut says. 400 `malformed` names the filter.
    """

    access = Open.PUBLIC
    columns = tuple(AppealOut().fields)

    def get(self, request: Request) -> Response:
        form = AppealFilterForm(request.query_params)
        read_filters(form)
        return listed(request, selectors.appeals_found(form.given(), now=now()), AppealOut)


class AppealView(APIView):
    """`GET /api/v1/appeals/{id}/`: one, with `jobs` ({job, accepted}). 200, 404."""

    access = Open.PUBLIC

    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        return Response(_told(public_id))


def _told(public_id: uuid.UUID) -> dict[str, Any]:
    appeal = selectors.appeal_or_404(public_id)
    rows = selectors.rows_of(appeal)
    told = [{"job": row.job.public_id, "accepted": row.is_accepted} for row in rows]
    return {**AppealOut(appeal).data, "jobs": told}


def _jobs(**options: Any) -> serializers.ListField:
    return serializers.ListField(
        child=serializers.UUIDField(), max_length=policy.ROWS_MAX, required=False, default=list, **options
    )


class OpenIn(serializers.Serializer[Any]):
    """What is contested: `decision`, or `repository`, `figure` and `days`; and what is brought."""

    decision = serializers.IntegerField(min_value=1, max_value=_INT64, required=False)
    repository = text(140, required=False, default="")
    figure = text(40, required=False, default="")
    days = serializers.IntegerField(min_value=1, max_value=_INT32, required=False, default=max(policy.WINDOWS))
    claim = choice(Claim.values, "claim")
    words = text(policy.WORDS_MAX)
    links = serializers.ListField(
        child=text(policy.LINK_MAX), max_length=policy.LINKS_MAX, required=False, default=list
    )
    jobs = _jobs()


class OpenView(APIView):
    """`POST /api/v1/appeals/open/`: appeal, for the platform's members.

    Body `{decision | repository, figure, days?; claim, words, links?, jobs}`. 200 with the appeal. 400 `malformed`; 401
    `not_signed_in`; 403 `not_permitted`; 404; 409 `already_appealed`, `appeal_late`.
    """

    access = Open.SIGNED_IN

    def post(self, request: Request) -> Response:
        form = OpenIn(data=request.data)
        form.is_valid(raise_exception=True)
        given = form.validated_data
        user: Any = request.user
        said = services.Said(given["claim"], given["words"], given["links"], given["jobs"])
        if "decision" in given:
            decision = Event.objects.filter(seq=given["decision"], is_decision=True).first()
            if decision is None:
                raise Problem("malformed", f"decision: the log has no #{given['decision']}.", "decision")
            made = services.appeal_decision(decision=decision, said=said, by=user, now=now())
        else:
            owner, _, name = given["repository"].partition("/")
            figure = services.Figure(repository_or_404(owner, name), given["figure"], given["days"])
            made = services.appeal_figure(figure=figure, said=said, by=user, now=now())
        return Response(_told(made.public_id))


class VerbIn(serializers.Serializer[Any]):
    """What a verb is told: the revision that was looked at, and why."""

    revision = serializers.IntegerField(min_value=1, max_value=_INT32)
    reason = text(policy.REASON_MAX)


class PauseIn(VerbIn):
    days = serializers.IntegerField(min_value=1, max_value=_INT32)


class DecideIn(VerbIn):
    outcome = choice(Outcome.values, "outcome")
    accepted = _jobs()


VERBS: dict[str, tuple[type[VerbIn], Any]] = {
    "pause": (PauseIn, services.pause_appeal),
    "withdraw": (VerbIn, services.withdraw_appeal),
    "decide": (DecideIn, services.decide_appeal),
}


class AppealVerbView(APIView):
    """`POST /api/v1/appeals/{id}/{verb}/`: `pause` (`days`), `withdraw`, `decide` (`outcome`, `accepted`?), each with
    `revision` and `reason`. 200 with the appeal. 400 `malformed`; 401; 403 `not_permitted`, `recusal`; 404; 409
    `appeal_stale`, `appeal_paused`, and what a compensating decision refuses.
    """

    access = Open.SIGNED_IN

    def post(self, request: Request, public_id: uuid.UUID, verb: str) -> Response:
        if verb not in VERBS:
            raise Problem("not_found", f"verb: saw {verb[:40]!r}, send one of {', '.join(VERBS)}.")
        taken, act = VERBS[verb]
        appeal, form = selectors.appeal_or_404(public_id), taken(data=request.data)
        form.is_valid(raise_exception=True)
        given = dict(form.validated_data)
        if verb == "decide":
            given["outcome"] = Outcome(given["outcome"])
        act(appeal=appeal, by=request.user, now=now(), **given)
        return Response(_told(public_id))
