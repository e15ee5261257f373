"""The API of platforms."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.services import actor_of
from apps.audit.api import EventOut
from apps.core.api import choice, text
from apps.core.clock import now
from apps.core.permissions import Permission
from apps.platforms.policy import BY_CODE
from apps.platforms.selectors import repository_or_404
from apps.platforms.services import REASON_MAX, change_level


class LevelIn(serializers.Serializer[Any]):
    """`level` and `expected_level` are codes, `L0` to `L4`."""

    level = choice(list(BY_CODE), "level")
    reason = text(REASON_MAX)
    evidence = text(REASON_MAX, required=False, default="")
    device = text(60, allow_blank=True, required=False, default="")
    expected_level = choice(list(BY_CODE), "level", required=False, default=None)


class LevelView(APIView):
    """`POST /api/v1/repositories/{owner}/{name}/level/`: change a repository's level directly.

    Body `{level, reason, evidence?, device?, expected_level?}`. 200 with the decision: its record, hashes and page.
    Where upstream's file is the authority its `action` is `repository.level_decided`: in force when that says so.
    400 `malformed`; 401 `not_signed_in`; 403 `not_permitted`; 404; 409 `level_transition` (L3 and L4 are not reached
    directly), `level_stale` (`expected_level` is no longer the level) or `decision_waits` (an earlier one still waits
    for the file).
    """

    access = Permission.LEVEL_CHANGE

    def post(self, request: Request, owner: str, name: str) -> Response:
        form = LevelIn(data=request.data)
        form.is_valid(raise_exception=True)
        values = form.validated_data
        expected = values["expected_level"]
        event = change_level(
            repository=repository_or_404(owner, name),
            level=BY_CODE[values["level"]].number,
            reason=values["reason"],
            evidence=values["evidence"],
            device=values["device"],
            expected_level=BY_CODE[expected].number if expected else None,
            actor=actor_of(request.user),
            now=now(),
        )
        return Response(EventOut(event).data)
