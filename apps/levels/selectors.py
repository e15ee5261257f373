"""Reads of promotions: all are public, as their repositories are at L2 and above."""

import uuid
from typing import Any

from django.db.models import QuerySet
from django.http import Http404

from apps.levels.models import EvidenceBundle, Promotion


def promotions() -> QuerySet[Promotion]:
    """Every promotion, the newest first."""
    found = Promotion.objects.select_related("repository__platform", "opened_by__organisation")
    return found.order_by("-opened_at", "-pk")


def promotions_found(given: dict[str, Any]) -> QuerySet[Promotion]:
    """Of all those in a state, to a level, or of repositories with these words in their name."""
    found = promotions()
    if state := given.get("state"):
        found = found.filter(state=state)
    if target := given.get("target"):
        found = found.filter(target=target)
    if words := given.get("repository"):
        found = found.filter(repository__full_name__icontains=words)
    return found


def promotion_or_404(public_id: uuid.UUID) -> Promotion:
    """A promotion by its public id."""
    found = promotions().filter(public_id=public_id).first()
    if found is None:
        raise Http404
    return found


def bundle_or_404(public_id: uuid.UUID, number: int) -> EvidenceBundle:
    """A promotion's evidence by its number."""
    bundle = EvidenceBundle.objects.select_related("promotion__repository")
    found = bundle.filter(promotion__public_id=public_id, number=number).first()
    if found is None:
        raise Http404
    return found


def open_promotion_of(repository_id: int) -> Promotion | None:
    """The one that is open for a repository, if any."""
    return promotions().filter(repository=repository_id, state="open").first()


def open_promotions() -> QuerySet[Promotion]:
    """Those that wait for a decision, the longest open first."""
    return promotions().filter(state="open").order_by("opened_at", "pk")
