"""Which Buildkite pipeline speaks for which repository: verbs and reads."""

import datetime
import uuid
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http import Http404

from apps.audit.enums import Action
from apps.audit.services import Actor, Subject, record
from apps.core.errors import Problem
from apps.platforms.models import Pipeline, Repository
from apps.platforms.policy import PIPELINE_CLAIMS
from apps.platforms.selectors import Standing

VALUES_MAX, VALUE_MAX = 20, 200


@transaction.atomic
def map_pipeline(
    *,
    repository: Repository,
    organization_id: uuid.UUID,
    pipeline_id: uuid.UUID,
    required_claims: dict[str, list[str]],
    actor: Actor,
    now: datetime.datetime,
) -> Pipeline:
    """Let a pipeline speak for a repository. Raises Problem `malformed` when it speaks for one already, or a required
    claim is unknown or without values."""
    for name, values in required_claims.items():
        if name not in PIPELINE_CLAIMS:
            raise Problem("malformed", f"{name}: no such claim, use {', '.join(PIPELINE_CLAIMS)}.", name)
        if not 0 < len(values) <= VALUES_MAX or not all(0 < len(v) <= VALUE_MAX and v.isprintable() for v in values):
            words = f"1 to {VALUES_MAX} values of 1 to {VALUE_MAX} printable characters"
            raise Problem("malformed", f"{name}: needs {words}.", name)
    try:
        with transaction.atomic():
            pipeline = Pipeline.objects.create(
                repository=repository,
                organization_id=organization_id,
                pipeline_id=pipeline_id,
                required_claims=required_claims,
                created_at=now,
            )
    except IntegrityError:
        known = Pipeline.objects.get(organization_id=organization_id, pipeline_id=pipeline_id)
        detail = f"pipeline_id: {pipeline_id} speaks for {known.repository} already, take that mapping away first."
        raise Problem("malformed", detail, "pipeline_id") from None
    record(
        action=Action.PIPELINE_MAPPED,
        actor=actor,
        subject=_subject(pipeline),
        summary=f"Buildkite pipeline {pipeline_id} speaks for {repository.full_name}",
        after=_spelled(pipeline),
        now=now,
    )
    return pipeline


@transaction.atomic
def unmap_pipeline(*, pipeline: Pipeline, actor: Actor, now: datetime.datetime) -> bool:
    """Let a pipeline speak for nobody. What it has reported stays. Returns False, and writes nothing, when it is gone
    already."""
    gone, _ = Pipeline.objects.filter(pk=pipeline.pk).delete()
    if not gone:
        return False
    record(
        action=Action.PIPELINE_UNMAPPED,
        actor=actor,
        subject=_subject(pipeline),
        summary=f"Buildkite pipeline {pipeline.pipeline_id} no longer speaks for {pipeline.repository.full_name}",
        before=_spelled(pipeline),
        now=now,
    )
    return True


def _subject(pipeline: Pipeline) -> Subject:
    return Subject("pipeline", str(pipeline.public_id), str(pipeline.pipeline_id))


def _spelled(pipeline: Pipeline) -> dict[str, Any]:
    return {
        "repository": pipeline.repository.full_name,
        "organization_id": str(pipeline.organization_id),
        "pipeline_id": str(pipeline.pipeline_id),
        "required_claims": pipeline.required_claims,
    }


def pipelines() -> QuerySet[Pipeline]:
    """Every mapping, by repository."""
    return Pipeline.objects.select_related("repository__platform").order_by("repository__full_name", "pk")


def pipeline_or_404(public_id: str) -> Pipeline:
    """A mapping by its public id."""
    try:
        return pipelines().get(public_id=uuid.UUID(public_id))
    except (Pipeline.DoesNotExist, ValueError):
        raise Http404 from None


def standing_of_pipeline(
    organization_id: uuid.UUID, pipeline_id: uuid.UUID
) -> tuple[Standing, dict[str, list[str]]] | None:
    """The repository that a pipeline speaks for, and what its mapping requires of a token; None where it speaks for
    none."""
    found = (
        Pipeline.objects.filter(organization_id=organization_id, pipeline_id=pipeline_id)
        .select_related("repository")
        .first()
    )
    if found is None:
        return None
    it = found.repository
    return Standing(it.pk, it.full_name, it.level, it.github_id, it.github_owner_id), found.required_claims
