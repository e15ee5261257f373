"""What the commit graph answers. None is unknown everywhere: never zero, never “no”."""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import CharField, Exists, Func, Max, OuterRef, Q, QuerySet

from apps.core.lookups import any_of
from apps.platforms.models import Repository
from apps.relay.enums import Bucket, Flag, JobStatus
from apps.relay.models import Commit, GraphState, Job, MergeBase

# How far back a tested ancestor is looked for, in commits: about two weeks of upstream's main.
LOOKED_BACK = 2_000
# Ends that say nothing about a commit.
_SAYS_NOTHING = (Bucket.CANCELLED, Bucket.NEUTRAL)
# Nor does an end that the hub inferred, or one that nobody has accepted yet.
_TESTED_NOTHING = [Flag.INFERRED, Flag.HELD]


@dataclass(frozen=True)
class Base:
    """Where a head of a pull request left main. `behind` is how many commits main has gone on since."""

    sha: str | None
    behind: int | None


def base_of(pr_number: int, head_sha: str) -> Base:
    """The merge base of one head of a pull request."""
    return bases_of([(pr_number, head_sha)])[pr_number, head_sha]


def bases_of(heads: Iterable[tuple[int | None, str]]) -> dict[tuple[int | None, str], Base]:
    """By (pull request, head), its merge base. Three queries, however many."""
    heads = list(heads)
    rows = MergeBase.objects.filter(head_sha__in={sha for _, sha in heads}, state=GraphState.KNOWN)
    shas = {(row.pr_number, row.head_sha): row.base_sha for row in rows}
    positions = dict(Commit.objects.filter(sha__in=set(shas.values())).values_list("sha", "position"))
    tip = Commit.objects.aggregate(tip=Max("position"))["tip"]
    found: dict[tuple[int | None, str], Base] = {}
    for number, head in heads:
        sha = shas.get((number, head)) if number is not None else None
        position = positions.get(sha) if sha else None
        found[number, head] = Base(sha, None if position is None or tip is None else tip - position)
    return found


def behind(commit: Commit) -> int | None:
    """How many commits main has gone on since this one; None where it is not on main."""
    tip = Commit.objects.aggregate(tip=Max("position"))["tip"]
    return None if commit.position is None or tip is None else int(tip) - commit.position


def commit_of(sha: str) -> Commit | None:
    """The commit of main (or once of main) that begins so; None where there is none, or more than one."""
    found = list(Commit.objects.filter(sha__startswith=sha)[:2])
    return found[0] if len(found) == 1 else None


def children_of(commit: Commit) -> QuerySet[Commit]:
    """What came after a commit, on main and, after forced pushes, off it."""
    return Commit.objects.filter(parent_sha=commit.sha).order_by("pk")


def pull_requests_from(commit: Commit) -> QuerySet[MergeBase]:
    """The heads of pull requests that left main here, newest first."""
    return MergeBase.objects.filter(base_sha=commit.sha).order_by("-pr_number", "-pk")


def place_of(sha: str) -> int | None:
    """A commit's place on main: its own, or of a pull request's head that of its merge base."""
    own = Commit.objects.filter(sha=sha).values_list("position", flat=True).first()
    if own is not None:
        return own
    base = MergeBase.objects.filter(head_sha=sha, state=GraphState.KNOWN).order_by("-pk").first()
    if base is None:
        return None
    return Commit.objects.filter(sha=base.base_sha).values_list("position", flat=True).first()


def places_of(shas: Iterable[str]) -> dict[str, int]:
    """The place of each commit that has one, as `place_of` says. Two queries, however many."""
    return {sha: place for sha, (place, _) in places_known(shas).items()}


def places_known(shas: Iterable[str]) -> dict[str, tuple[int, datetime.datetime]]:
    """The same, each with since when the hub knows it."""
    wanted = set(shas)
    heads = MergeBase.objects.filter(_any_sha("head_sha", wanted), state=GraphState.KNOWN).order_by("pk")
    bases = {sha: (base, known_at) for sha, base, known_at in heads.values_list("head_sha", "base_sha", "known_at")}
    asked = wanted | {base for base, _ in bases.values()}
    placed = Commit.objects.filter(_any_sha("sha", asked), position__isnull=False)
    rows = placed.values_list("sha", "position", "placed_at")
    positions = {sha: (place, at) for sha, place, at in rows if place is not None}
    found: dict[str, tuple[int, datetime.datetime]] = {}
    for sha in wanted:
        base, known_at = bases.get(sha, ("", None))
        if sha in positions:
            found[sha] = positions[sha]
        elif base in positions:
            place, placed_at = positions[base]
            found[sha] = place, max(placed_at, known_at or placed_at)
    return found


def _any_sha(column: str, shas: Iterable[str]) -> Func | Q:
    return any_of(column, shas, CharField(max_length=40))


def is_after(sha: str, fix: str) -> bool | None:
    """Whether a commit (of main, or the head of a pull request) contains a commit of main. None: unknown."""
    place = place_of(sha)
    fixed = Commit.objects.filter(sha=fix).values_list("position", flat=True).first()
    return None if place is None or fixed is None else place >= fixed


def nearest_tested_ancestor(sha: str, repository: Repository) -> Commit | None:
    """The newest commit of main, at or before a commit's place, that a repository has tested to an end. None: none
    within LOOKED_BACK commits, or its place is unknown."""
    place = place_of(sha)
    if place is None:
        return None
    ended = Job.objects.filter(head_sha=OuterRef("sha"), repository=repository, status=JobStatus.COMPLETED)
    near = Commit.objects.filter(position__lte=place, position__gt=place - LOOKED_BACK)
    telling = ended.exclude(bucket__in=_SAYS_NOTHING).exclude(flags__overlap=_TESTED_NOTHING)
    return near.filter(Exists(telling)).order_by("-position").first()
