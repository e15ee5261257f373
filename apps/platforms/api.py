"""The API of platforms."""

from typing import Any

from django.conf import settings
from django.urls import reverse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.services import actor_of
from apps.audit.api import EventOut
from apps.core.api import choice, text
from apps.core.clock import now
from apps.core.cursors import listed, read_filters
from apps.core.permissions import Open, Permission
from apps.platforms.forms import RepositoryForm
from apps.platforms.models import Repository
from apps.platforms.policy import BY_CODE
from apps.platforms.selectors import repositories_found, repository_or_404
from apps.platforms.services import REASON_MAX, change_level


class RepositoryOut(serializers.Serializer[Any]):
    """A repository as the allowlist has it. `level` is a code; `device` is empty but at L3."""

    full_name = serializers.CharField()
    platform = serializers.CharField(source="platform.slug")
    level = serializers.CharField(source="level_code")
    device = serializers.CharField()
    oncalls = serializers.ListField(child=serializers.CharField())
    events = serializers.ListField(child=serializers.CharField())
    url = serializers.SerializerMethodField()

    def get_url(self, repository: Repository) -> str:
        return settings.BASE_URL + reverse("public:platform", args=[repository.platform.slug])


class RepositoryList(APIView):
    """`GET /api/v1/repositories/?q=&level=&kind=&cursor=&limit=`: the listed repositories, by name.

    200 `{"next", "previous", "results": [{full_name, platform, level, device, oncalls, events, url}]}`; 400 `malformed`
    names the filter that cannot be read.
    """

    access = Open.PUBLIC

    def get(self, request: Request) -> Response:
        form = RepositoryForm(request.query_params)
        read_filters(form)
        return listed(request, repositories_found(form.filters()), RepositoryOut)


class RepositoryDetail(APIView):
    """`GET /api/v1/repositories/{owner}/{name}/`: one repository, listed or not (`L0`). 404 for one unknown here."""

    access = Open.PUBLIC

    def get(self, request: Request, owner: str, name: str) -> Response:
        return Response(RepositoryOut(repository_or_404(owner, name)).data)


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
