"""Reads of proposals, and the access functions through which every edge gets one."""

import uuid
from typing import Any

from django.db.models import QuerySet
from django.http import Http404

from apps.accounts.models import User
from apps.core.permissions import Permission
from apps.governance.enums import State
from apps.governance.models import Evidence, Proposal, Transition
from apps.platforms.models import Repository
from apps.platforms.selectors import member_platforms

_WHOLE = ("proposer", "platform", "repository")


def proposal_or_404(user: Any, public_id: uuid.UUID) -> Proposal:
    """A proposal that this user may see: the proposer's own, for who decides all, once accepted its platform's
    members'. For everyone else it does not exist."""
    if user.is_anonymous or not user.is_active:
        raise Http404
    proposal = Proposal.objects.select_related(*_WHOLE).filter(public_id=public_id).first()
    if proposal is None or not _is_visible(proposal, user):
        raise Http404
    return proposal


def _is_visible(proposal: Proposal, user: User) -> bool:
    if proposal.proposer_id == user.pk or user.may(Permission.PROPOSAL_DECIDE):
        return True
    return proposal.platform_id is not None and member_platforms(user).filter(pk=proposal.platform_id).exists()


def own_proposal_or_404(user: Any, public_id: uuid.UUID) -> Proposal:
    """A proposal that this user made."""
    proposal = proposal_or_404(user, public_id)
    if proposal.proposer_id != user.pk:
        raise Http404
    return proposal


def sees_private(user: Any, proposal: Proposal) -> bool:
    """Whether the user may see the proposal's e-mail address, and the salts of its evidence."""
    return proposal.proposer_id == user.pk or user.may(Permission.PROPOSAL_DECIDE)


def is_colleague(proposal: Proposal, user: User) -> bool:
    """Whether the user's organisation is the proposer's. No query where the proposer came with the proposal."""
    return user.organisation_id is not None and user.organisation_id == proposal.proposer.organisation_id


def evidence_of(proposal: Proposal) -> QuerySet[Evidence]:
    """What the newest submission brought, in its order."""
    return proposal.evidence.filter(revision=proposal.revision)


def transitions_of(proposal: Proposal) -> QuerySet[Transition]:
    """What happened, newest first."""
    return proposal.transitions.order_by("-id")


def known_repository(full_name: str) -> Repository | None:
    """The repository of this name, if the hub knows it."""
    return Repository.objects.select_related("platform").filter(full_name__iexact=full_name).first()


def waiting_for_decision() -> QuerySet[Proposal]:
    """What the maintainers have to decide on: the longest waiting first."""
    return Proposal.objects.select_related("proposer").filter(state=State.WAITING).order_by("changed_at", "pk")


def waiting_for_vendor() -> QuerySet[Proposal]:
    """What was returned and did not come back yet: the longest waiting first."""
    return Proposal.objects.select_related("proposer").filter(state=State.RETURNED).order_by("changed_at", "pk")


def proposals_of(user: Any) -> QuerySet[Proposal]:
    """What a user proposed, newest first."""
    return Proposal.objects.select_related("platform").filter(proposer=user)
