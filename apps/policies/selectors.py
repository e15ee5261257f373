"""Which policy holds at a moment, and the drafts of the next."""

import datetime
import uuid
from typing import Any

from django.db.models import QuerySet
from django.http import Http404

from apps.policies.models import DraftState, PolicyDraft, PolicyVersion
from apps.policies.policy import SHIPPED, Policy, read


def policy_at(at: datetime.datetime) -> Policy:
    """The policy that holds at a moment. One query."""
    version = version_at(at)
    return SHIPPED if version is None else policy_of(version)


def version_at(at: datetime.datetime) -> PolicyVersion | None:
    """The version that holds at a moment; None: what ships."""
    return PolicyVersion.objects.filter(from_at__lte=at).order_by("-from_at").first()


def policy_of(version: PolicyVersion) -> Policy:
    """What a version says."""
    return read(version.values, number=version.number)


def numbered(number: int) -> Policy:
    """The policy of this number, 0 for what ships. Http404 where there is none."""
    if number == 0:
        return SHIPPED
    version = PolicyVersion.objects.filter(number=number).first()
    if version is None:
        raise Http404
    return policy_of(version)


def versions() -> list[PolicyVersion]:
    """Every version, the latest first; without what ships, which has no row."""
    return list(PolicyVersion.objects.order_by("-number"))


def drafts() -> QuerySet[PolicyDraft]:
    """The open drafts, the last changed first."""
    return PolicyDraft.objects.filter(state=DraftState.OPEN).select_related("author").order_by("-changed_at", "-pk")


def draft_or_404(public_id: uuid.UUID) -> PolicyDraft:
    """A draft. Anyone may read it: the rules are made in the open."""
    draft = PolicyDraft.objects.filter(public_id=public_id).select_related("author", "version").first()
    if draft is None:
        raise Http404
    return draft


def rows_of(draft: PolicyDraft) -> Policy:
    """What a draft says, as a policy without a number of its own."""
    values: Any = draft.values
    return read(values, number=draft.base_number)
