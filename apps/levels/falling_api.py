"""The API of notices and temporary downgrades."""

import uuid
from collections.abc import Callable
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api import choice, text
from apps.core.clock import now
from apps.core.cursors import listed, read_filters
from apps.core.errors import Problem
from apps.core.permissions import Open, Permission
from apps.core.sheets import SheetView
from apps.levels import downgrades, falling, falling_selectors
from apps.levels.falling_forms import DowngradeFilterForm, NoticeFilterForm
from apps.levels.models_falling import ANSWER_MAX, REASON_MAX, Downgrade
from apps.platforms.policy import BY_CODE
from apps.platforms.selectors import may_on_platform, repository_or_404

DEVICE_MAX = 38


class NoticeOut(serializers.Serializer[Any]):
    """A notice. `ended_*` are null or empty while it is open; `deadline_at` was counted in working days of
    `calendar`."""

    id = serializers.UUIDField(source="public_id")
    repository = serializers.CharField(source="repository.full_name")
    platform = serializers.CharField(source="repository.platform.slug")
    level = serializers.CharField(source="level_code")
    state = serializers.CharField()
    criteria = serializers.ListField(child=serializers.CharField())
    way_back = serializers.CharField()
    policy = serializers.IntegerField(source="policy_number")
    calendar = serializers.CharField()
    opened_at = serializers.DateTimeField()
    deadline_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField()
    ended_by = serializers.CharField()
    ended_why = serializers.CharField()


class AnswerOut(serializers.Serializer[Any]):
    """What a member of the platform said to a notice."""

    by = serializers.CharField(source="by_label")
    at = serializers.DateTimeField()
    text = serializers.CharField()


class NoticeWhole(NoticeOut):
    """A notice with its frozen nights, `{day, policy, results}`, and what was answered. `newest_night`: null without
    one; what a demotion has to say that it saw."""

    figures = serializers.JSONField()
    answers = AnswerOut(many=True)
    newest_night = serializers.SerializerMethodField()

    def get_newest_night(self, notice: Any) -> str | None:
        found = falling.newest_nights(notice)
        return found[0].day.isoformat() if found else None


class NoticeList(SheetView):
    """`GET /api/v1/notices/?state=&platform=&cursor=&limit=&format=`: notices, newest first.

    200 `{"next", "previous", "results": [...]}`, or the rows as CSV; 400 `malformed`.
    """

    access = Open.PUBLIC
    columns = tuple(NoticeOut().fields)

    def get(self, request: Request) -> Response:
        form = NoticeFilterForm(request.query_params)
        read_filters(form)
        return listed(request, falling_selectors.notices(**form.given()), NoticeOut)


class NoticeView(APIView):
    """`GET /api/v1/notices/{id}/`: one, with its figures and answers. 404."""

    access = Open.PUBLIC

    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        return Response(NoticeWhole(falling_selectors.notice_or_404(public_id)).data)


class ReasonIn(serializers.Serializer[Any]):
    """Why."""

    reason = text(REASON_MAX)


class AnswerIn(serializers.Serializer[Any]):
    """What the platform says."""

    text = text(ANSWER_MAX)


class DemoteIn(ReasonIn):
    """Why, and what was seen: the level and the newest night."""

    expected_level = choice(list(BY_CODE), "level")
    seen_night = serializers.DateField()
    device = text(DEVICE_MAX, required=False, allow_blank=True, default="")

    def validate_expected_level(self, code: str) -> int:
        return BY_CODE[code].number


class NoticeVerb(APIView):
    """`POST /api/v1/notices/{id}/{verb}/`: `answer` `{text}` for the platform's members; `lift` `{reason}` and `demote`
    `{reason, expected_level, seen_night, device?}` for maintainers.

    200 with the notice. 400 `malformed`; 401 `not_signed_in`; 403 `not_permitted`, `recusal`; 404; 409 `notice_stale`,
    `notice_early`, `evidence_stale`, `level_stale`, `level_transition`.
    """

    access = Open.SIGNED_IN
    verbs: dict[str, tuple[Permission, type[serializers.Serializer[Any]], Callable[..., object]]] = {
        "answer": (Permission.NOTICE_ANSWER, AnswerIn, falling.answer_notice),
        "lift": (Permission.LEVEL_CHANGE, ReasonIn, falling.lift_notice),
        "demote": (Permission.LEVEL_CHANGE, DemoteIn, falling.demote),
    }

    def post(self, request: Request, public_id: uuid.UUID, verb: str) -> Response:
        found = falling_selectors.notice_or_404(public_id)
        if verb not in self.verbs:
            raise Problem("not_found", f"{verb[:20]!r} is no verb: {', '.join(self.verbs)}.")
        permission, kind, do = self.verbs[verb]
        if not may_on_platform(request.user, permission, found.repository.platform):
            raise Problem("not_permitted", "Members of the platform answer a notice, maintainers decide about it.")
        form = kind(data=request.data)
        form.is_valid(raise_exception=True)
        do(notice=found, by=request.user, now=now(), **form.validated_data)
        return Response(NoticeWhole(falling_selectors.notice_or_404(public_id)).data)


class DowngradeOut(serializers.Serializer[Any]):
    """A temporary downgrade. `ended_*` are null or empty while it is open; `is_overdue`: open, and past its
    deadline."""

    id = serializers.UUIDField(source="public_id")
    repository = serializers.CharField(source="repository.full_name")
    platform = serializers.CharField(source="repository.platform.slug")
    level_from = serializers.CharField(source="from_code")
    level_to = serializers.CharField(source="to_code")
    reason = serializers.CharField()
    by = serializers.CharField(source="by_label")
    at = serializers.DateTimeField()
    calendar = serializers.CharField()
    deadline_at = serializers.DateTimeField()
    is_overdue = serializers.SerializerMethodField()
    state = serializers.CharField()
    ended_at = serializers.DateTimeField()
    ended_by = serializers.CharField()
    ended_why = serializers.CharField()

    def get_is_overdue(self, downgrade: Downgrade) -> bool:
        return downgrade.ended_at is None and downgrade.deadline_at <= now()


class DowngradeList(SheetView):
    """`GET /api/v1/downgrades/?state=&platform=&cursor=&limit=&format=`: temporary downgrades, newest first.

    200 `{"next", "previous", "results": [...]}`, or the rows as CSV; 400 `malformed`.
    """

    access = Open.PUBLIC
    columns = tuple(DowngradeOut().fields)

    def get(self, request: Request) -> Response:
        form = DowngradeFilterForm(request.query_params)
        read_filters(form)
        return listed(request, falling_selectors.downgrades(**form.given()), DowngradeOut)


class DowngradeView(APIView):
    """`GET /api/v1/downgrades/{id}/`: one. 404."""

    access = Open.PUBLIC

    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        return Response(DowngradeOut(falling_selectors.downgrade_or_404(public_id)).data)


class DowngradeIn(ReasonIn):
    """To which level, why, and from which one it was seen to go."""

    level = choice(list(BY_CODE), "level")
    expected_level = choice(list(BY_CODE), "level", required=False)
    device = text(DEVICE_MAX, required=False, allow_blank=True, default="")

    def validate_level(self, code: str) -> int:
        return BY_CODE[code].number

    def validate_expected_level(self, code: str) -> int:
        return BY_CODE[code].number


class MakeDowngrade(APIView):
    """`POST /api/v1/repositories/{owner}/{name}/downgrade/`: take a repository at L3 or L4 down at once.

    Body `{level, reason, expected_level?, device?}`. 200 with the downgrade. 400 `malformed`; 401 `not_signed_in`; 403
    `not_permitted`, `recusal`; 404; 409 `already_downgraded`, `level_stale`, `level_transition`, `allowlist_elsewhere`.
    """

    access = Permission.LEVEL_CHANGE

    def post(self, request: Request, owner: str, name: str) -> Response:
        form = DowngradeIn(data=request.data)
        form.is_valid(raise_exception=True)
        repository, user = repository_or_404(owner, name), request.user
        assert user.is_authenticated, "no visitor may"
        made = downgrades.downgrade(repository=repository, by=user, now=now(), **form.validated_data)
        return Response(DowngradeOut(made).data)


class DowngradeVerb(APIView):
    """`POST /api/v1/downgrades/{id}/{verb}/`: `undo` or `confirm`, `{reason}`, for maintainers.

    200 with the downgrade. 400 `malformed`; 401 `not_signed_in`; 403 `not_permitted`, `recusal`; 404; 409
    `downgrade_stale`, `level_stale`.
    """

    access = Permission.LEVEL_CHANGE
    verbs: dict[str, Callable[..., object]] = {
        "undo": downgrades.undo_downgrade,
        "confirm": downgrades.confirm_downgrade,
    }

    def post(self, request: Request, public_id: uuid.UUID, verb: str) -> Response:
        found = falling_selectors.downgrade_or_404(public_id)
        if verb not in self.verbs:
            raise Problem("not_found", f"{verb[:20]!r} is no verb: {', '.join(self.verbs)}.")
        form = ReasonIn(data=request.data)
        form.is_valid(raise_exception=True)
        self.verbs[verb](downgrade=found, by=request.user, now=now(), **form.validated_data)
        return Response(DowngradeOut(falling_selectors.downgrade_or_404(public_id)).data)
