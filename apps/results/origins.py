"""Where a report comes from: a listed repository, as its callbacks do, or upstream's jobs for an in-tree platform."""

import datetime
import fnmatch
import re
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet

from apps.audit.enums import Action
from apps.audit.services import Actor, Subject, record
from apps.core.errors import Problem
from apps.core.github import RepositoryIdentity
from apps.platforms.models import Platform
from apps.platforms.policy import MATURE, UNLISTED
from apps.platforms.selectors import Standing
from apps.relay import holds
from apps.relay.claims import Identity, unknown
from apps.results.models import InTreeSource, Report

_WORKFLOW = re.compile(r"\.github/workflows/[A-Za-z0-9._-]{1,200}\.ya?ml")
_DEVICE = re.compile(r"[a-z][a-z0-9]{0,59}")
_REF = re.compile(r"refs/[A-Za-z0-9._*?/-]{1,190}")


@dataclass(frozen=True)
class Origin:
    """Whose report it is: one of `repository_id` and `source` is there. `held_owner_id`: the new owner that nobody has
    accepted yet. `proved_sha`: the commit that the token itself names as upstream's."""

    level: int
    repository_id: int | None = None
    source: InTreeSource | None = None
    held_owner_id: int | None = None
    proved_sha: str = ""

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of a report that say whose it is."""
        return {"repository_id": self.repository_id, "source": self.source}

    def reports(self) -> QuerySet[Report]:
        """Its reports."""
        return Report.objects.filter(**self.columns)

    def lock(self) -> None:
        """Let nobody else write an upload of this origin until the transaction ends: the day's sum stays true."""
        name = f"results: uploads of {self.repository_id}, {self.source and self.source.pk}"
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


def origin_of_repository(identity: Identity, standing: Standing | None, now: datetime.datetime) -> Origin | None:
    """The listed repository that speaks; None: an unlisted one, of which nothing is kept.

    Under a new owner that nobody has accepted the report is held. Raises Problem `identity_replaced`, as for callbacks.
    """
    if standing is None or standing.level == UNLISTED:
        return None
    is_held = holds.is_held(identity, standing, now)
    return Origin(standing.level, standing.repository_id, held_owner_id=identity.owner_id if is_held else None)


# --- in-tree platforms ------------------------------------------------------------------------------------------


def sources_of(identity: Identity) -> list[InTreeSource]:
    """The in-tree platforms that a job of the upstream repository may report for; empty for all other callers.

    Raises Refused `identity_unknown` when it is upstream's, and neither its workflow nor its ref is one of theirs.
    """
    if identity.repository_id is None or identity.owner_id is None:
        return []
    of_upstream = InTreeSource.objects.filter(
        removed_at=None, github_id=identity.repository_id, github_owner_id=identity.owner_id
    )
    pinned = list(of_upstream.select_related("platform").order_by("platform__slug"))
    fitting = [source for source in pinned if _fits(source, identity)]
    if pinned and not fitting:
        raise unknown(identity.issuer, "job_workflow_ref", "is of no workflow and ref that an in-tree platform has")
    return fitting


def _fits(source: InTreeSource, identity: Identity) -> bool:
    """The file that ran, at its ref, and the ref that was tested: a pull request may call main's workflow."""
    file, _, ref = identity.claims.get("job_workflow_ref", "").partition("@")
    owner_and_name, _, workflow = file.partition("/.github/")
    return (
        owner_and_name.lower() == identity.repository.lower()
        and f".github/{workflow}" == source.workflow
        and fnmatch.fnmatchcase(ref, source.ref)
        and fnmatch.fnmatchcase(identity.claims.get("ref", ""), source.ref)
    )


def origin_in_tree(identity: Identity, sources: list[InTreeSource], platform: str) -> Origin:
    """The one of the fitting sources that the upload means. Raises Problem `malformed` where it names none of them."""
    meant = [source for source in sources if platform in ("", source.platform.slug)]
    if len(meant) != 1:
        slugs = ", ".join(source.platform.slug for source in sources)
        raise Problem("malformed", f"platform: this workflow tests {slugs}; send one of them.", "platform")
    return Origin(MATURE, source=meant[0], proved_sha=identity.claims.get("sha", ""))


@transaction.atomic
def add_source(
    *,
    platform: Platform,
    workflow: str,
    ref: str,
    device: str,
    upstream: RepositoryIdentity,
    actor: Actor,
    now: datetime.datetime,
) -> InTreeSource:
    """Let jobs of one of upstream's workflows, on refs of this form, report for an in-tree platform, whose tests carry
    this device's word.

    Raises Problem `malformed`: an out-of-tree platform, a workflow, ref or device that is none, or there already.
    """
    if platform.kind != Platform.Kind.IN_TREE:
        raise Problem("malformed", f"platform: {platform} is out of tree, its repositories report for it.", "platform")
    if not _WORKFLOW.fullmatch(workflow):
        raise Problem("malformed", f"workflow: saw {workflow[:60]!r}, send .github/workflows/<file>.yml.", "workflow")
    if not _REF.fullmatch(ref):
        raise Problem("malformed", f"ref: saw {ref[:60]!r}, send a whole one such as refs/heads/main.", "ref")
    if not _DEVICE.fullmatch(device):
        raise Problem("malformed", f"device: saw {device[:60]!r}, send the word in its tests, such as cuda.", "device")
    try:
        with transaction.atomic():
            source = InTreeSource.objects.create(
                platform=platform,
                workflow=workflow,
                ref=ref,
                device=device,
                github_id=upstream.github_id,
                github_owner_id=upstream.github_owner_id,
                added_at=now,
            )
    except IntegrityError:
        raise Problem("malformed", f"workflow: {platform} has {workflow} already.", "workflow") from None
    _record(Action.SOURCE_ADDED, source, f"{workflow} of upstream, on {ref}, reports for {platform}", actor, now)
    return source


@transaction.atomic
def remove_source(*, platform: Platform, workflow: str, actor: Actor, now: datetime.datetime) -> None:
    """Take reports of this workflow for this platform no longer; those that came stay. Raises Problem `malformed`."""
    source = InTreeSource.objects.filter(platform=platform, workflow=workflow, removed_at=None).first()
    if source is None or InTreeSource.objects.filter(pk=source.pk, removed_at=None).update(removed_at=now) != 1:
        raise Problem("malformed", f"workflow: {workflow[:60]!r} does not report for {platform}.", "workflow")
    _record(Action.SOURCE_REMOVED, source, f"{workflow} of upstream no longer reports for {platform}", actor, now)


def _record(action: Action, source: InTreeSource, summary: str, actor: Actor, now: datetime.datetime) -> None:
    said = {"workflow": source.workflow, "ref": source.ref, "device": source.device}
    record(
        action=action,
        actor=actor,
        subject=Subject("platform", source.platform.slug, source.platform.name),
        summary=summary,
        after=said if action == Action.SOURCE_ADDED else {},
        before=said if action == Action.SOURCE_REMOVED else {},
        evidence={"upstream": settings.UPSTREAM_REPO, "id": source.github_id, "owner_id": source.github_owner_id},
        now=now,
    )
