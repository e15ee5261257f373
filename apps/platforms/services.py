"""Verbs on platforms: list, import, change a level, rename."""

import contextlib
import dataclasses
import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.text import slugify

from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.audit.services import Actor, Subject, record
from apps.core.errors import Problem, written
from apps.core.wakeups import wake
from apps.platforms import authority, edits
from apps.platforms.allowlist import DEVICE, EVERY_EVENT, Allowlist, Entry
from apps.platforms.allowlist_diff import compare
from apps.platforms.edits import subject_of
from apps.platforms.models import LevelInterval, Membership, Platform, Repository
from apps.platforms.policy import (
    BY_CODE,
    CHECKS_FROM,
    DIRECT_UP_TO,
    LEVELS,
    MATURE,
    ONBOARDING,
    STABLE,
    UNLISTED,
    default_platform_slug,
    refuse_direct_change,
)
from apps.platforms.selectors import entry_of, former_names
from apps.platforms.topics import BLOCKING_CHANGED, LISTING_FOR_CHECKS, REPOSITORY_UNPINNED

REASON_MAX = 2_000
SLUG_MAX, NAME_MAX = 80, 100


@transaction.atomic
def create_platform(*, slug: str, name: str, kind: Platform.Kind, actor: Actor, now: datetime.datetime) -> Platform:
    """Make a platform that no allowlist brings: an in-tree one.

    Raises Problem `malformed` when the slug is taken or cannot stand in an address, or the name is empty or too long.
    """
    name = name.strip()
    if not slug or slug != slugify(slug) or len(slug) > SLUG_MAX:
        words = f"lower-case letters, digits, - and _, at most {SLUG_MAX}"
        raise Problem("malformed", f"slug: {slug!r} cannot stand in an address, use {words}.", "slug")
    if not 0 < len(name) <= NAME_MAX:
        raise Problem("malformed", f"name: needs 1 to {NAME_MAX} characters.", "name")
    with _slug_once(slug):
        platform = Platform.objects.create(slug=slug, name=name, kind=kind, created_at=now)
    record(
        action=Action.PLATFORM_CREATED,
        actor=actor,
        subject=Subject("platform", slug, name),
        summary=f"{name} became a platform ({kind.label})",
        after={"slug": slug, "name": name, "kind": kind.value},
        now=now,
    )
    return platform


@contextlib.contextmanager
def _slug_once(slug: str) -> Iterator[None]:
    """PostgreSQL says whether a slug is taken; this says it to people."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError:
        raise Problem("malformed", f"slug: {slug!r} is taken, choose another.", "slug") from None


@transaction.atomic
def rename_platform(*, platform: Platform, name: str, slug: str, actor: Actor, now: datetime.datetime) -> None:
    """Give a platform another name and slug. Raises Problem `malformed` when the slug is taken or empty."""
    slug, name = slugify(slug), name.strip()
    if not slug or not name:
        raise Problem("malformed", "name and slug: both need at least one letter or digit.", "name")
    locked = Platform.objects.select_for_update().get(pk=platform.pk)
    before = {"name": locked.name, "slug": locked.slug}
    after = {"name": name, "slug": slug}
    if before == after:
        return
    with _slug_once(slug):
        Platform.objects.filter(pk=platform.pk).update(name=name, slug=slug)
    platform.name, platform.slug = name, slug
    record(
        action=Action.PLATFORM_RENAMED,
        actor=actor,
        subject=Subject("platform", slug, name),
        summary=f"{before['name']} is now called {name}",
        before=before,
        after=after,
        now=now,
    )


@transaction.atomic
def add_member(
    *,
    platform: Platform,
    user: Any,
    actor: Actor,
    now: datetime.datetime,
    reason: str = "",
    evidence: dict[str, Any] | None = None,
) -> bool:
    """Let a user speak for a platform. Returns False, and writes nothing, when they already do."""
    _, is_new = Membership.objects.get_or_create(platform=platform, user=user, defaults={"joined_at": now})
    if is_new:
        record(
            action=Action.MEMBER_ADDED,
            actor=actor,
            subject=Subject("platform", platform.slug, platform.name),
            summary=f"{user.get_username()} speaks for {platform.name}",
            after={"user": user.get_username()},
            reason=reason,
            evidence=evidence,
            now=now,
            is_decision=False,
        )
    return is_new


@transaction.atomic
def change_level(
    *,
    repository: Repository,
    level: int,
    reason: str,
    actor: Actor,
    now: datetime.datetime,
    evidence: str = "",
    device: str = "",
    expected_level: int | None = None,
) -> Event:
    """Set a repository's level directly: up to L2, or any lowering. Takes effect with the transaction; where a file
    of upstream's is the authority, when that says so (`LEVEL_DECIDED`).

    `expected_level` is the level the decider saw; left out, the one that `repository` was read with.
    Returns the decision. Raises Problem: `malformed` (no reason), `level_transition` (the rule that refuses it),
    `level_stale` (someone changed it meanwhile), `decision_waits` (an earlier one still waits for the file).
    """
    reason = reason.strip()
    if not reason:
        raise Problem("malformed", "reason: say why, it becomes part of the public log.", "reason")
    if len(reason) > REASON_MAX:
        raise Problem("malformed", f"reason: {len(reason)} characters, at most {REASON_MAX}.", "reason")
    expected = repository.level if expected_level is None else expected_level
    if device and not DEVICE.fullmatch(device):
        raise Problem(
            "malformed", f"device: {device[:60]!r} fits no label, send up to 38 printable characters.", "device"
        )
    locked = Repository.objects.select_for_update().get(pk=repository.pk)
    if locked.level != expected:
        raise Problem(
            "level_stale",
            f"{locked.full_name} is at {locked.level_code}, you decided on {LEVELS[expected].code}.",
            "expected_level",
        )
    if refusal := refuse_direct_change(locked.level, level, device=device or locked.device):
        raise Problem("level_transition", refusal, "level")
    verb = "raised" if level > locked.level else "lowered"
    return _decide(
        locked,
        _Listing(level, device or locked.device, locked.oncalls, locked.events or sorted(EVERY_EVENT)),
        actor=actor,
        now=now,
        summary=f"{locked.full_name} {verb} from {locked.level_code} to {LEVELS[level].code}",
        reason=reason,
        evidence={"text": evidence.strip()} if evidence.strip() else {},
    )


@transaction.atomic
def promote(
    *,
    repository: Repository,
    level: int,
    device: str,
    reason: str,
    promotion: str,
    bundle_sha256: str,
    approvals: list[str],
    actor: Actor,
    now: datetime.datetime,
) -> Event:
    """Raise a repository by one level to L3 or L4, on frozen evidence and approvals. For promotions alone: they have
    checked both (apps/levels/promoting.py), and a test holds that nobody else calls this.

    `promotion`: its public id; `bundle_sha256`: what it was decided on; `approvals`: decisions of the log. Returns the
    decision. Raises Problem: `level_stale`, `level_transition` (no device for L3), `decision_waits`.
    """
    locked = Repository.objects.select_for_update().get(pk=repository.pk)
    if locked.level != level - 1 or level <= DIRECT_UP_TO:
        raise Problem(
            "level_stale",
            f"{locked.full_name} is at {locked.level_code}, no promotion leads from there to {LEVELS[level].code}.",
        )
    if level == STABLE and not (device or locked.device):
        raise Problem("level_transition", "L3 needs a device, the word in the label ciflow/crcr/<device>.", "device")
    return _decide(
        locked,
        _Listing(level, device or locked.device, locked.oncalls, locked.events or sorted(EVERY_EVENT)),
        actor=actor,
        now=now,
        summary=f"{locked.full_name} raised from {locked.level_code} to {LEVELS[level].code}",
        reason=reason,
        evidence={"promotion": promotion, "bundle": bundle_sha256, "approvals": approvals},
    )


def put_back_level(repository: Repository, level: int, **facts: Any) -> Event:
    """Set a locked repository's level, whatever the rules of a direct change say: for restoring.restore_level alone."""
    return _set_listing(repository, _Listing.of(repository, level=level), **facts)


@transaction.atomic
def restore_overturned(
    *, overturned: Event, reason: str, actor: Actor, now: datetime.datetime, evidence: dict[str, Any]
) -> Event:
    """Give a repository back the level that a lowering took from it: the one way up to L3 or L4 beside a promotion and
    upstream's file. Only for an appeal that overturned that very decision, and only while it is what holds.

    Returns the compensating decision. Raises Problem: `malformed` (no reason), `level_transition` (the event lowered no
    level), `level_stale` (another decision changed the level since), `decision_waits`.
    """
    reason = written(reason, "reason", REASON_MAX)
    body = body_of(overturned)
    before, after = (BY_CODE.get(body[side].get("level", "")) for side in ("before", "after"))
    is_lowering = overturned.action == Action.LEVEL_CHANGED and before and after and after.number < before.number
    if not is_lowering or before is None:
        raise Problem("level_transition", f"#{overturned.seq} lowered no level: there is none to restore.")
    locked = Repository.objects.select_for_update().get(public_id=overturned.subject_id)
    holds = LevelInterval.objects.filter(repository=locked, ended_at=None, event_seq=overturned.seq).exists()
    if not holds:
        detail = f"{locked.full_name} is at {locked.level_code} by a later decision than #{overturned.seq}."
        raise Problem("level_stale", detail)
    device = locked.device or body["before"].get("device", "")
    return _decide(
        locked,
        _Listing(before.number, device, locked.oncalls, locked.events or sorted(EVERY_EVENT)),
        actor=actor,
        now=now,
        summary=f"{locked.full_name} restored to {before.code}: decision #{overturned.seq} was overturned",
        reason=reason,
        evidence=evidence | {"overturned": overturned.seq},
    )


@dataclass(frozen=True)
class _Listing:
    """What the allowlist says of one repository."""

    level: int
    device: str
    oncalls: list[str]
    events: list[str]

    @classmethod
    def of(cls, repository: Repository, *, level: int | None = None) -> "_Listing":
        known = repository.level if level is None else level
        return cls(known, repository.device, repository.oncalls, repository.events)

    @classmethod
    def from_entry(cls, entry: Entry, known: Repository) -> "_Listing":
        # A device is written at L3 only; elsewhere the file does not speak of it and the known one stays.
        device = entry.device or known.device
        return cls(entry.level, device, list(entry.oncalls), sorted(entry.events))


def _decide(repository: Repository, to: _Listing, **facts: Any) -> Event:
    """What is decided here about a locked repository: in force at once, or with upstream's file where that decides."""
    if not authority.is_file():
        return _set_listing(repository, to, **facts)
    name, device = repository.full_name, to.device if to.level == STABLE else ""
    return edits.decide(
        repository=repository,
        to=Entry(to.level, name, device, tuple(to.oncalls), frozenset(to.events)),
        before=_spelled(_Listing.of(repository)),
        after=_spelled(to),
        **{name: facts[name] for name in ("actor", "now", "reason", "evidence")},
    )


def _set_listing(
    repository: Repository,
    to: _Listing,
    *,
    actor: Actor,
    now: datetime.datetime,
    summary: str,
    reason: str,
    evidence: dict[str, Any],
    action: Action | None = None,
) -> Event:
    """Apply a listing to a locked repository: row, interval, event, wake-up. The compare-and-set is the last guard."""
    before = _Listing.of(repository)
    changed = Repository.objects.filter(pk=repository.pk, level=before.level).update(**dataclasses.asdict(to))
    if changed != 1:
        raise Problem("level_stale", f"{repository.full_name} has changed meanwhile.", "expected_level")
    if to.level > UNLISTED and repository.github_id is None:
        wake(REPOSITORY_UNPINNED, [str(repository.pk)], now=now)
    if max(before.level, to.level) >= CHECKS_FROM:
        wake(LISTING_FOR_CHECKS, [str(repository.pk)], now=now)
    if (before.level >= MATURE) is not (to.level >= MATURE):
        wake(BLOCKING_CHANGED, [str(repository.pk)], now=now)
    if action is None:
        action = Action.LEVEL_CHANGED if to.level != before.level else Action.DETAILS_CHANGED
    event = record(
        action=action,
        actor=actor,
        subject=subject_of(repository),
        summary=summary,
        before=_spelled(before),
        after=_spelled(to),
        reason=reason,
        evidence=evidence,
        now=now,
    )
    if to.level != before.level or action is Action.REPOSITORY_LISTED:
        current = LevelInterval.objects.filter(repository=repository, ended_at=None).first()
        # `now` was asked before the row was locked: whoever held it may have a later one.
        start = max(now, current.started_at) if current else now
        if current:
            LevelInterval.objects.filter(pk=current.pk).update(ended_at=start)
        LevelInterval.objects.create(repository=repository, level=to.level, started_at=start, event_seq=event.seq)
    for name, value in dataclasses.asdict(to).items():
        setattr(repository, name, value)
    return event


def _spelled(listing: _Listing) -> dict[str, Any]:
    return dataclasses.asdict(listing) | {"level": LEVELS[listing.level].code}


@dataclass(frozen=True)
class Change:
    """One line of an import's outcome."""

    full_name: str
    summary: str
    event_seq: int


@transaction.atomic
def import_allowlist(
    *,
    allowlist: Allowlist,
    source: str,
    sha256: str,
    actor: Actor,
    now: datetime.datetime,
    evidence: dict[str, Any] | None = None,
    decided: Mapping[str, dict[str, Any]] | None = None,
) -> list[Change]:
    """Make the hub's listing equal to a parsed allowlist file: what the file leaves out becomes unlisted (L0).

    Any level may be set, as an external change without an evidence bundle: the file is upstream's decision, not the
    hub's. `source` names the file, `sha256` its content, `evidence` what else is known of it. `decided` has the entries
    that say what was decided here: key → evidence that names the decision. An entry under a former name means the
    repository that was called so. Returns what changed; an unchanged listing writes nothing.
    """
    # One import or direct change at a time per repository: rows are locked in one order.
    known = {r.full_name.lower(): r for r in Repository.objects.select_for_update().order_by("pk")}
    found = compare(map(entry_of, known.values()), allowlist.renamed(former_names()).entries)
    repositories = [known.get(one.entry.key) or _create_repository(one.full_name, now) for one in found]
    outcome = []
    for one, repository in zip(found, repositories, strict=True):
        to = _Listing.from_entry(one.after, repository) if one.after else _Listing.of(repository, level=UNLISTED)
        ours = (decided or {}).get(one.entry.key, {})
        event = _set_listing(
            repository,
            to,
            actor=actor,
            now=now,
            summary=one.summary,
            reason=f"decision #{ours['decision']}, in {source}" if ours else f"external change: allowlist {source}",
            evidence={"bundle": "none", "source": source, "sha256": sha256, "line": one.after.line if one.after else 0}
            | (evidence or {})
            | ours,
            action=None if one.before else Action.REPOSITORY_LISTED,
        )
        outcome.append(Change(repository.full_name, one.summary, event.seq))
    return outcome


def import_by_hand(
    *, allowlist: Allowlist, source: str, sha256: str, actor: Actor, now: datetime.datetime
) -> list[Change]:
    """`import_allowlist` of a file that an operator brings. Raises Problem `allowlist_elsewhere` where the hub follows
    a file of upstream's: the next sync would undo the import."""
    if authority.is_file():
        raise Problem(
            "allowlist_elsewhere",
            f"{authority.address()} is the allowlist: change it there, the hub follows. `--dry-run` compares.",
        )
    return import_allowlist(allowlist=allowlist, source=source, sha256=sha256, actor=actor, now=now)


@transaction.atomic
def list_repository(
    *,
    full_name: str,
    platform_name: str,
    device: str,
    oncalls: list[str],
    events: list[str],
    reason: str,
    evidence: dict[str, Any],
    actor: Actor,
    now: datetime.datetime,
) -> tuple[Repository, Event]:
    """Put a repository that is not listed on the allowlist, at L1. Takes effect with the transaction; where a file of
    upstream's is the authority, when that says so (`LEVEL_DECIDED`).

    One that the hub knows stays with its platform; for a new one a platform called `platform_name` is made. Returns the
    repository and the decision. Raises Problem: `malformed` (no reason), `already_listed`, `level_stale` (someone
    listed it meanwhile), `decision_waits` (an earlier one still waits for the file).
    """
    reason = reason.strip()
    if not reason:
        raise Problem("malformed", "reason: say why, it becomes part of the public log.", "reason")
    repository = Repository.objects.select_for_update().filter(full_name__iexact=full_name).first()
    is_new = repository is None
    if repository is None:
        try:
            with transaction.atomic():
                repository = _create_repository(full_name, now, platform_name=platform_name)
        except IntegrityError:
            raise Problem("level_stale", f"{full_name} was added meanwhile: look again, then decide.") from None
    elif repository.level != UNLISTED:
        detail = f"{repository.full_name} is listed already, at {repository.level_code}: change its level instead."
        raise Problem("already_listed", detail)
    name, code = repository.full_name, LEVELS[ONBOARDING].code
    event = _decide(
        repository,
        _Listing(ONBOARDING, device or repository.device, list(oncalls), sorted(events)),
        actor=actor,
        now=now,
        summary=f"{name} listed at {code}" if is_new else f"{name} raised from {LEVELS[UNLISTED].code} to {code}",
        reason=reason,
        evidence=evidence,
        action=Action.REPOSITORY_LISTED if is_new else None,
    )
    return repository, event


def _create_repository(full_name: str, now: datetime.datetime, *, platform_name: str = "") -> Repository:
    slug = default_platform_slug(full_name)
    taken = set(Platform.objects.filter(slug__startswith=slug).values_list("slug", flat=True))
    candidates = (slug if n == 1 else f"{slug}-{n}" for n in range(1, len(taken) + 2))
    platform = Platform.objects.create(
        slug=next(c for c in candidates if c not in taken),
        name=platform_name or full_name.split("/")[1],
        created_at=now,
    )
    return Repository.objects.create(platform=platform, full_name=full_name)


@transaction.atomic
def mark_probe(*, repository: Repository, is_probe: bool, actor: Actor, now: datetime.datetime) -> bool:
    """Say that a repository tests the hub itself, or no longer does: a probe feeds the hub's health page and no public
    number. Returns False, and writes nothing, when it is so already."""
    if Repository.objects.filter(pk=repository.pk, is_probe=not is_probe).update(is_probe=is_probe) != 1:
        return False
    record(
        action=Action.PROBE_MARKED if is_probe else Action.PROBE_UNMARKED,
        actor=actor,
        subject=subject_of(repository),
        summary=f"{repository.full_name} is {'a probe' if is_probe else 'no longer a probe'} of the hub",
        before={"is_probe": not is_probe},
        after={"is_probe": is_probe},
        now=now,
    )
    return True


@transaction.atomic
def attach_repository(*, repository: Repository, platform: Platform, actor: Actor, now: datetime.datetime) -> bool:
    """Put a repository under another platform; one that nothing stands behind any more goes. Returns False, and writes
    nothing, when it is there already."""
    locked = Repository.objects.select_for_update().get(pk=repository.pk)
    before = Platform.objects.get(pk=locked.platform_id)
    if before.pk == platform.pk:
        return False
    locked.platform = platform
    locked.save(update_fields=["platform"])
    is_empty = not before.repositories.exists() and not before.memberships.exists()
    if is_empty:
        before.delete()
    record(
        action=Action.REPOSITORY_ATTACHED,
        actor=actor,
        subject=subject_of(locked),
        summary=f"{locked.full_name} stands under {platform.name}",
        before={"platform": before.slug},
        after={"platform": platform.slug},
        evidence={"removed": before.slug} if is_empty else {},
        now=now,
    )
    return True
