"""Promotions, for programs."""

import uuid
from typing import Any

from django.conf import settings
from django.urls import reverse
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
from apps.levels import selectors
from apps.levels.forms import PromotionFilterForm
from apps.levels.freezing import Item
from apps.levels.models import Promotion
from apps.levels.promoting import REASON_MAX, TEXT_MAX, TITLE_MAX, URL_MAX, open_promotion, standing_of
from apps.levels.promotion_verbs import OFFERS, offered, perform
from apps.platforms.selectors import judged_or_404, may_on_platform
from apps.policies.policy import MEASURES


class PromotionOut(serializers.Serializer[Any]):
    """A promotion, as lists tell it."""

    id = serializers.UUIDField(source="public_id")
    repository = serializers.CharField(source="repository.full_name")
    platform = serializers.SlugField(source="repository.platform.slug")
    target = serializers.CharField(source="target_code")
    state = serializers.CharField()
    form = serializers.CharField()
    revision = serializers.IntegerField()
    reason = serializers.CharField()
    opened_by = serializers.CharField(source="opened_by.username")
    opened_at = serializers.DateTimeField()
    objections_until = serializers.DateTimeField()
    ended_at = serializers.DateTimeField()
    end_words = serializers.CharField()
    decision = serializers.IntegerField(source="event_seq")


class EvidenceIn(serializers.Serializer[Any]):
    """One item of evidence."""

    measure = choice([name for name, of in MEASURES.items() if of.is_evidence], "measure")
    title = text(TITLE_MAX)
    url = text(URL_MAX, required=False, default="", allow_blank=True)
    text = text(TEXT_MAX, required=False, default="", allow_blank=True)


class OpenIn(serializers.Serializer[Any]):
    """What opening is told."""

    reason = text(REASON_MAX)
    device = text(38, required=False, default="", allow_blank=True)
    evidence = serializers.ListField(child=EvidenceIn(), required=False, default=list, max_length=10)


class PromotionList(SheetView):
    """`GET /api/v1/promotions/?state=&target=&repository=&cursor=&limit=&format=`: the newest first.

    200 `{"next", "previous", "results": [...]}`, each as PromotionOut says. 400 `malformed` names the filter.
    """

    access = Open.PUBLIC
    columns = tuple(PromotionOut().fields)

    def get(self, request: Request) -> Response:
        form = PromotionFilterForm(request.query_params)
        read_filters(form)
        return listed(request, selectors.promotions_found(form.given()), PromotionOut)


class OpenPromotion(APIView):
    """`POST /api/v1/repositories/{owner}/{name}/promote/`: open one, for the platform's members and maintainers.

    Body `{reason, device?, evidence? [{measure, title, text | url}]}`. 200 with the promotion. 400 `malformed`; 401
    `not_signed_in`; 403 `not_permitted`; 404; 409 `level_transition`, `not_eligible`, `already_open`.
    """

    access = Open.SIGNED_IN

    def post(self, request: Request, owner: str, name: str) -> Response:
        user: Any = request.user
        repository = judged_or_404(owner, name, user)
        if not may_on_platform(user, Permission.PROMOTION_OPEN, repository.platform):
            raise Problem("not_permitted", "Only members of the platform and maintainers open a promotion.")
        form = OpenIn(data=request.data)
        form.is_valid(raise_exception=True)
        said = form.validated_data
        made = open_promotion(
            repository=repository,
            reason=said["reason"],
            items=tuple(Item(**item) for item in said["evidence"]),
            device=said["device"],
            by=user,
            now=now(),
        )
        return Response(_told(selectors.promotion_or_404(made.public_id), user))


class PromotionView(APIView):
    """`GET /api/v1/promotions/{id}/`: one, with `approvals`, `objections`, `evidence` ({number, sha256, frozen_at,
    policy, url}), `standing` ({counted, needed}, null once it has ended) and `verbs`, what the caller may do. 200, 404.
    """

    access = Open.PUBLIC

    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        return Response(_told(selectors.promotion_or_404(public_id), request.user))


class VerbIn(serializers.Serializer[Any]):
    """What a verb is told: the revision that was looked at, and what the verb asks for."""

    revision = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    reason = text(REASON_MAX, required=False)
    note = text(REASON_MAX, required=False)
    criterion = text(60, required=False)
    words = text(REASON_MAX, required=False)


class PromotionVerb(APIView):
    """`POST /api/v1/promotions/{id}/{verb}/`: approve, object, decline, freeze, withdraw.

    Body `{revision, reason?, note?, criterion?, words?}`, as the verb asks. 200 with the promotion. 400 `malformed`;
    401 `not_signed_in`; 403 `not_permitted`, `recusal`; 404; 409 `promotion_stale`, `evidence_stale`, `not_eligible`.
    """

    access = Open.SIGNED_IN

    def post(self, request: Request, public_id: uuid.UUID, verb: str) -> Response:
        found = selectors.promotion_or_404(public_id)
        if verb not in OFFERS:
            raise Problem("not_found", f"verb: there is no {verb[:40]!r}, send one of {', '.join(OFFERS)}.")
        form = VerbIn(data=request.data)
        form.is_valid(raise_exception=True)
        said = dict(form.validated_data)
        perform(verb, promotion=found, revision=said.pop("revision"), said=said, user=request.user, now=now())
        return Response(_told(selectors.promotion_or_404(public_id), request.user))


def _told(promotion: Promotion, user: Any) -> dict[str, Any]:
    standing = standing_of(promotion, now=now()) if promotion.is_open else None
    return {
        **PromotionOut(promotion).data,
        "approvals": [
            {
                "by": one.by.get_username(),
                "organisation": str(one.organisation or ""),
                "evidence": one.bundle.number,
                "reason": one.reason,
                "note": one.note,
                "at": one.at,
                "counts": one.revision == promotion.revision,
                "decision": one.event_seq,
            }
            for one in promotion.approvals.select_related("by", "organisation", "bundle")
        ],
        "objections": [
            {
                "by": one.by.get_username(),
                "criterion": one.criterion,
                "words": one.words,
                "at": one.at,
                "decision": one.event_seq,
            }
            for one in promotion.objections.select_related("by")
        ],
        "evidence": [
            {
                "number": one.number,
                "sha256": one.sha256,
                "frozen_at": one.frozen_at,
                "policy": one.policy_number,
                "url": f"{settings.BASE_URL}{reverse('levels:evidence', args=[promotion.public_id, one.number])}",
            }
            for one in promotion.bundles.defer("content")
        ],
        "standing": {"counted": standing.counted, "needed": standing.needed} if standing else None,
        "verbs": offered(promotion, user),
    }
