"""The same policy applied to everyone: what was decided about each platform, how fast, and what came of it.

One function a column; each answers for all platforms with a fixed number of queries. A count is a number, 0 included; a
time to decision is unknown (None) where nothing was decided.
"""

import datetime
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from apps.appeals.enums import State
from apps.appeals.models import Appeal
from apps.audit.enums import Action
from apps.audit.models import Event
from apps.gate.models import Override
from apps.governance.enums import Verb
from apps.governance.models import Transition, Waiver
from apps.levels.enums import PromotionState
from apps.levels.models import Objection, Promotion
from apps.platforms.models import Platform, Repository
from apps.results.metrics import median

WINDOWS = (30, 90, 365)
DEFAULT = 90


@dataclass(frozen=True)
class Link:
    """Where the rows of a number are."""

    text: str
    href: str


@dataclass(frozen=True)
class Cell:
    """One number of one platform: None is unknown. `detail` tells it apart, `links` lead to its rows."""

    value: int | None
    detail: str = ""
    links: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Span:
    """What is asked: these platforms with their repositories, over [since, now]."""

    platforms: dict[int, Platform]
    repositories: dict[int, Repository]
    since: datetime.datetime
    now: datetime.datetime


Cells = dict[int, Cell]


@dataclass(frozen=True)
class Column:
    """One column: what it is called, how it is computed in words, its unit, and what computes it. `under`: the key of
    the column with which it shares a place on the page."""

    key: str
    title: str
    says: str
    count: Callable[[Span], Cells]
    unit: str = "count"
    under: str = ""


@dataclass(frozen=True)
class Row:
    """One platform, with a cell for each column in their order."""

    platform: Platform
    cells: tuple[tuple[Column, Cell], ...]

    @property
    def places(self) -> list[list[tuple[Column, Cell]]]:
        """The cells as the page groups them: each that leads a place with those under it."""
        leading = [column.key for column, _ in self.cells if not column.under]
        return [[pair for pair in self.cells if key in (pair[0].key, pair[0].under)] for key in leading]


def rows(*, days: int, now: datetime.datetime) -> list[Row]:
    """Every platform with a repository that is no probe, by name, over the last `days` days."""
    repositories = {
        one.pk: one for one in Repository.objects.filter(is_probe=False).select_related("platform").order_by("pk")
    }
    platforms = {one.platform_id: one.platform for one in repositories.values()}
    span = Span(platforms, repositories, now - datetime.timedelta(days=days), now)
    counted = [(column, column.count(span)) for column in COLUMNS]
    by_name = sorted(platforms.values(), key=lambda one: (one.name.casefold(), one.pk))
    return [
        Row(one, tuple((column, cells.get(one.pk, column_default(column))) for column, cells in counted))
        for one in by_name
    ]


def column_default(column: Column) -> Cell:
    """What a platform has of which there is nothing: a count of 0, or an unknown time."""
    return Cell(0) if column.unit == "count" else Cell(None)


def _decisions_link(text: str, since: datetime.datetime, **filters: str) -> Link:
    query = urlencode({**filters, "since": since.date().isoformat()})
    return Link(text, f"{reverse('audit:decisions')}?{query}")


def _by_repository(span: Span, found: Iterable[int], link: Callable[[Repository, int], Link]) -> Cells:
    """So many of each repository, added up by platform, with a link for each repository."""
    counts = Counter(found)
    links: dict[int, list[Link]] = defaultdict(list)
    totals: Counter[int] = Counter()
    for pk, count in sorted(counts.items()):
        repository = span.repositories.get(pk)
        if repository is not None:
            totals[repository.platform_id] += count
            links[repository.platform_id].append(link(repository, count))
    return {pk: Cell(total, links=tuple(links[pk])) for pk, total in totals.items()}


def waivers_granted(span: Span) -> Cells:
    """Waivers granted in the window."""
    found = Waiver.objects.filter(from_at__gte=span.since, from_at__lte=span.now)
    return _by_repository(span, found.values_list("repository_id", flat=True), _waiver_link(span))


def waivers_holding(span: Span) -> Cells:
    """Waivers that hold now, whenever they were granted."""
    found = Waiver.objects.filter(from_at__lte=span.now, until_at__gt=span.now, withdrawn_at=None)
    oldest = min(found.values_list("from_at", flat=True), default=span.since)
    return _by_repository(
        span, found.values_list("repository_id", flat=True), _waiver_link(span, min(oldest, span.since))
    )


def _waiver_link(span: Span, since: datetime.datetime | None = None) -> Callable[[Repository, int], Link]:
    return lambda repository, count: _decisions_link(
        f"{count} of {repository.full_name}",
        since or span.since,
        about=repository.full_name,
        action=Action.WAIVER_GRANTED.value,
    )


def decisions(span: Span) -> Cells:
    """Public decisions about the platform's repositories in the window, by kind."""
    ids = {str(one.public_id): one for one in span.repositories.values()}
    found = Event.objects.filter(
        is_decision=True, subject_kind="repository", subject_id__in=ids, at__gte=span.since, at__lte=span.now
    )
    kinds: dict[int, Counter[str]] = defaultdict(Counter)
    whose: list[int] = []
    for subject, action in found.values_list("subject_id", "action"):
        repository = ids[subject]
        whose.append(repository.pk)
        kinds[repository.platform_id][Action(action).label] += 1
    cells = _by_repository(
        span,
        whose,
        lambda one, count: _decisions_link(f"{count} of {one.full_name}", span.since, about=one.full_name),
    )
    return {
        pk: Cell(cell.value, ", ".join(f"{name} {count}" for name, count in sorted(kinds[pk].items())), cell.links)
        for pk, cell in cells.items()
    }


def overrides(span: Span) -> Cells:
    """Overrides that name one of the platform's repositories, granted in the window. Those of all parts name nobody."""
    found = Override.objects.filter(repository__isnull=False, from_at__gte=span.since, from_at__lte=span.now)
    ledger = reverse("gate:overrides")
    return _by_repository(
        span,
        found.values_list("repository_id", flat=True),
        lambda one, count: Link(f"{count} of {one.full_name}", f"{ledger}?{urlencode({'repository': one.full_name})}"),
    )


def appeals(span: Span) -> Cells:
    """Appeals opened in the window, by where they are now."""
    found = Appeal.objects.filter(opened_at__gte=span.since, opened_at__lte=span.now)
    states: dict[int, Counter[str]] = defaultdict(Counter)
    for pk, state in found.values_list("platform_id", "state"):
        states[pk][State(state).label] += 1
    return {
        pk: Cell(
            counts.total(),
            ", ".join(f"{name} {count}" for name, count in sorted(counts.items())),
            (_appeals_link(span.platforms[pk]),),
        )
        for pk, counts in states.items()
        if pk in span.platforms
    }


def _appeals_link(platform: Platform) -> Link:
    return Link("the appeals", f"{reverse('appeals:appeals')}?{urlencode({'platform': platform.slug})}")


def appeal_time(span: Span) -> Cells:
    """The median time from an appeal to its decision, of those decided in the window; in seconds."""
    found = Appeal.objects.filter(decided_at__gte=span.since, decided_at__lte=span.now)
    took: dict[int, list[int]] = defaultdict(list)
    for pk, opened, decided in found.values_list("platform_id", "opened_at", "decided_at"):
        assert decided is not None, "the filter asks for it"
        took[pk].append(int((decided - opened).total_seconds()))
    return {
        pk: Cell(median(times), f"of {len(times)}", (_appeals_link(span.platforms[pk]),))
        for pk, times in took.items()
        if pk in span.platforms
    }


def proposal_outcomes(span: Span) -> Cells:
    """Answers of the maintainers to proposals, in the window: accepted, returned."""
    words: dict[int, Counter[str]] = defaultdict(Counter)
    names: dict[int, set[str]] = defaultdict(set)
    for answer in _answers(span):
        words[answer.platform][answer.verb.label] += 1
        names[answer.platform].add(answer.full_name)
    return {
        pk: Cell(
            counts.total(),
            ", ".join(f"{name} {count}" for name, count in sorted(counts.items())),
            _proposal_links(span, names[pk]),
        )
        for pk, counts in words.items()
    }


def proposal_time(span: Span) -> Cells:
    """The median time from a submission to the maintainers' answer, of those answered in the window; in seconds."""
    took: dict[int, list[int]] = defaultdict(list)
    names: dict[int, set[str]] = defaultdict(set)
    for answer in _answers(span):
        took[answer.platform].append(answer.seconds)
        names[answer.platform].add(answer.full_name)
    return {pk: Cell(median(times), f"of {len(times)}", _proposal_links(span, names[pk])) for pk, times in took.items()}


def _proposal_links(span: Span, names: set[str]) -> tuple[Link, ...]:
    return tuple(_decisions_link(f"of {name}", span.since, about=name, subject="repository") for name in sorted(names))


def promotions(span: Span) -> Cells:
    """Promotions opened in the window, by where they are now."""
    found = Promotion.objects.filter(opened_at__gte=span.since, opened_at__lte=span.now)
    states: dict[int, Counter[str]] = defaultdict(Counter)
    whose: list[int] = []
    for pk, state in found.values_list("repository_id", "state"):
        if repository := span.repositories.get(pk):
            whose.append(pk)
            states[repository.platform_id][PromotionState(state).value] += 1
    cells = _by_repository(span, whose, _promotions_link)
    return {
        pk: Cell(cell.value, ", ".join(f"{name} {count}" for name, count in sorted(states[pk].items())), cell.links)
        for pk, cell in cells.items()
    }


def promotion_time(span: Span) -> Cells:
    """The median time from opening a promotion to its decision, of those decided in the window; in seconds."""
    decided = (PromotionState.APPROVED, PromotionState.DECLINED)
    found = Promotion.objects.filter(state__in=decided, ended_at__gte=span.since, ended_at__lte=span.now)
    took: dict[int, list[int]] = defaultdict(list)
    links: dict[int, dict[str, Link]] = defaultdict(dict)
    for pk, opened, ended in found.order_by("pk").values_list("repository_id", "opened_at", "ended_at"):
        assert ended is not None, "the filter asks for it"
        if repository := span.repositories.get(pk):
            took[repository.platform_id].append(int((ended - opened).total_seconds()))
            links[repository.platform_id][repository.full_name] = _promotions_link(repository)
    return {pk: Cell(median(times), f"of {len(times)}", tuple(links[pk].values())) for pk, times in took.items()}


def objections(span: Span) -> Cells:
    """Objections to its promotions, made in the window."""
    found = Objection.objects.filter(at__gte=span.since, at__lte=span.now)
    return _by_repository(span, found.values_list("promotion__repository_id", flat=True), _promotions_link)


def _promotions_link(repository: Repository, count: int | None = None) -> Link:
    text = f"of {repository.full_name}" if count is None else f"{count} of {repository.full_name}"
    return Link(text, f"{reverse('levels:promotions')}?{urlencode({'repository': repository.full_name})}")


@dataclass(frozen=True)
class _Answer:
    platform: int
    full_name: str
    verb: Verb
    seconds: int


def _answers(span: Span) -> list[_Answer]:
    """Each submission's answer, of proposals whose repository the hub knows: of others no platform is known yet."""
    by_name = {one.full_name.lower(): one.platform_id for one in span.repositories.values()}
    asked: dict[int, datetime.datetime] = {}
    answers = []
    steps = Transition.objects.filter(at__lte=span.now).order_by("pk")
    for pk, verb, at, full_name in steps.values_list("proposal_id", "verb", "at", "proposal__full_name"):
        if verb in (Verb.SUBMIT, Verb.RESUBMIT):
            asked[pk] = at
        elif verb in (Verb.ACCEPT, Verb.RETURN) and pk in asked:
            platform, since = by_name.get(full_name.lower()), asked.pop(pk)
            if platform is not None and at >= span.since:
                answers.append(_Answer(platform, full_name, Verb(verb), int((at - since).total_seconds())))
    return answers


COLUMNS: tuple[Column, ...] = (
    Column("decisions", "Decisions", "public decisions about its repositories, by kind", decisions),
    Column("waivers_granted", "Waivers granted", "criteria that were waived in the window", waivers_granted),
    Column(
        "waivers_holding",
        "Waivers that hold",
        "waivers in force now, whenever granted",
        waivers_holding,
        under="waivers_granted",
    ),
    Column("proposals", "Proposals answered", "answers of maintainers: accepted, or returned", proposal_outcomes),
    Column(
        "proposal_seconds",
        "Time to answer a proposal",
        "median from a submission to its answer, of those answered in the window",
        proposal_time,
        "seconds",
        "proposals",
    ),
    Column(
        "promotions", "Promotions", "promotions to L3 and L4 opened in the window, by where they are now", promotions
    ),
    Column(
        "promotion_seconds",
        "Time to decide a promotion",
        "median from opening to approved or declined, of those decided in the window",
        promotion_time,
        "seconds",
        "promotions",
    ),
    Column("objections", "Objections", "objections to its promotions, made in the window", objections),
    Column("appeals", "Appeals", "appeals opened in the window, by where they are now", appeals),
    Column(
        "appeal_seconds",
        "Time to decide an appeal",
        "median from an appeal to its decision, of those decided in the window, pauses included",
        appeal_time,
        "seconds",
        "appeals",
    ),
    Column(
        "overrides",
        "Overrides against it",
        "gate overrides that name its repositories, granted in the window; those of all parts name nobody",
        overrides,
    ),
)
