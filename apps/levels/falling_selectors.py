"""Reads of notices and downgrades, and the access functions through which every edge gets one. All are public: nothing
below L2 has any, and a decision about a level is public always."""

import uuid
from collections.abc import Iterable

from django.db.models import QuerySet
from django.http import Http404

from apps.levels.falling_enums import DowngradeState, FallState
from apps.levels.models_falling import Downgrade, FallNotice
from apps.platforms.models import Repository

_WITH = "repository__platform"


def notices(*, state: str = "", platform: str = "") -> QuerySet[FallNotice]:
    """Notices, newest first."""
    found = FallNotice.objects.select_related(_WITH).order_by("-opened_at", "-pk")
    if state:
        found = found.filter(state=state)
    return found.filter(repository__platform__slug=platform) if platform else found


def downgrades(*, state: str = "", platform: str = "") -> QuerySet[Downgrade]:
    """Temporary downgrades, newest first."""
    found = Downgrade.objects.select_related(_WITH).order_by("-at", "-pk")
    if state:
        found = found.filter(state=state)
    return found.filter(repository__platform__slug=platform) if platform else found


def open_notices(repositories: Iterable[Repository]) -> QuerySet[FallNotice]:
    """The open notices to these repositories."""
    return notices(state=FallState.OPEN).filter(repository__in=list(repositories))


def open_downgrades(repositories: Iterable[Repository]) -> QuerySet[Downgrade]:
    """The open temporary downgrades of these repositories."""
    return downgrades(state=DowngradeState.OPEN).filter(repository__in=list(repositories))


def notice_or_404(public_id: uuid.UUID) -> FallNotice:
    """A notice by its public id."""
    found = notices().filter(public_id=public_id).first()
    if found is None:
        raise Http404
    return found


def downgrade_or_404(public_id: uuid.UUID) -> Downgrade:
    """A temporary downgrade by its public id."""
    found = downgrades().filter(public_id=public_id).first()
    if found is None:
        raise Http404
    return found
