"""From evidence to proposals: what the hub does by the rules in force. It proposes; people put in force.

It ends by itself what must not be listed apart any more: a test that fails always is a regression.
"""

import datetime
import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

from apps.audit.services import HUB
from apps.core.errors import Problem
from apps.platforms.models import Membership, Platform, Repository
from apps.quarantine import rules as rule_versions
from apps.quarantine import services
from apps.quarantine.enums import FlakeKind, ReasonClass, Source, State, Verb
from apps.quarantine.models import FlakeEvent, Member, Quarantine, Streak
from apps.quarantine.policy import EFFECTIVE, OPEN, Entry, Flake, Rules, Seen, entering, seen
from apps.relay.graph_selectors import place_of
from apps.relay.models import Commit
from apps.results.exclusions import fits
from apps.results.models import Alias, Test
from apps.results.namesakes import all_names, all_numbers, newest_names

log = logging.getLogger(__name__)

# Where a platform has neither an oncall nor a member.
NOBODY = "maintainers"
_HOURS_A_DAY = 24


@dataclass(frozen=True)
class Place:
    """One platform's variant: evidence of one says nothing about another."""

    platform: Platform
    variant: str


def detect(*, place: Place, now: datetime.datetime) -> int:
    """Propose, reopen and end what the evidence asks for. Returns how many quarantines changed."""
    rules = rule_versions.in_force(now)
    ended = end_broken(place, now)
    flakes = flakes_of(place, rules, now)
    reopened = _reopen(place, flakes, now)
    entries = entries_of(place, flakes, rules, now)
    return ended + reopened + sum(_propose(place, entry, rules, now) for entry in entries)


@dataclass(frozen=True)
class Flagged:
    """What one rule set says of a platform's variant today."""

    place: Place
    tests: dict[int, Seen]


def preview(rules: Rules, *, platforms: Iterable[Platform], now: datetime.datetime) -> list[tuple[Flagged, Flagged]]:
    """Per variant of these platforms, which tests the rules in force flag as flaky today, and which `rules` would."""
    present = rule_versions.in_force(now)
    answer = []
    for platform in platforms:
        variants = FlakeEvent.objects.filter(platform=platform).order_by("variant").values_list("variant", flat=True)
        for variant in variants.distinct():
            place = Place(platform, variant)
            answer.append((_flagged(place, present, now), _flagged(place, rules, now)))
    return answer


def _flagged(place: Place, rules: Rules, now: datetime.datetime) -> Flagged:
    flakes = flakes_of(place, rules, now)
    files = dict.fromkeys(flakes.keys() - _raised(place), "")
    entries = entering(flakes, files, rules, now)
    return Flagged(place, {test: one for entry in entries for test, one in entry.tests.items()})


# --- evidence as the rules read it ------------------------------------------------------------------------------


def flakes_of(place: Place, rules: Rules, now: datetime.datetime) -> dict[int, list[Flake]]:
    """Flakes within the rules' window by test, renamed tests under their new numbers; those of incidents, which never
    count, are left where they are. Three queries."""
    begun = now - datetime.timedelta(hours=rules.window)
    events = FlakeEvent.objects.filter(platform=place.platform, variant=place.variant, at__gte=begun, at__lte=now)
    events = events.filter(is_in_incident=False)
    columns = ("test_id", "kind", "report__repository", "run_id", "run_attempt", "job_name", "sha", "at")
    rows = list(events.order_by("at", "pk").values_list(*columns))
    on_main = set(
        Commit.objects.filter(sha__in={row[6] for row in rows}, position__isnull=False).values_list("sha", flat=True)
    )
    renamed = dict(Alias.objects.values_list("old_id", "new_id"))
    found: dict[int, list[Flake]] = defaultdict(list)
    for test, kind, origin, run, attempt, job, sha, at in rows:
        run_name = f"{origin} {run}"
        test = renamed.get(test, test)
        flake = Flake(test, FlakeKind(kind), run_name, f"{run_name}.{attempt} {job}", sha, at, sha in on_main)
        found[test].append(flake)
    return dict(found)


def entries_of(place: Place, flakes: dict[int, list[Flake]], rules: Rules, now: datetime.datetime) -> list[Entry]:
    """What enters: neither what fails always, nor what stands in an open record, nor, of a test whose quarantine was
    declined or released, on what was known then."""
    # Of the many that flaked once nothing more is asked.
    found = {test: of for test, of in flakes.items() if seen(of, rules, now).is_flaky}
    if not found:
        return []
    decided = _decided(place, found)
    newer = {
        test: [flake for flake in of if test not in decided or flake.at > decided[test]] for test, of in found.items()
    }
    barred = _raised(place) | _standing(place, found)
    tests = Test.objects.filter(pk__in=found.keys() - barred)
    return entering(newer, dict(tests.values_list("pk", "file")), rules, now)


def _raised(place: Place) -> set[int]:
    raised = Streak.objects.filter(platform=place.platform, variant=place.variant, is_raised=True)
    return all_numbers(raised.values_list("test_id", flat=True))


def _standing(place: Place, tests: Iterable[int]) -> set[int]:
    """The tests that stand in an open record; those of `tests` too that its pattern fits. By each of their names."""
    of_place = {"platform": place.platform, "variant": place.variant}
    members = all_numbers(Member.objects.filter(**of_place, is_open=True).values_list("test_id", flat=True))
    patterns = list(
        Quarantine.objects.filter(**of_place, state__in=OPEN).exclude(pattern="").values_list("pattern", flat=True)
    )
    if not patterns:
        return members
    named = all_names(Test.objects.filter(pk__in=list(tests)))
    return members | {
        number for number, names in named.items() if any(fits(pattern, name) for pattern in patterns for name in names)
    }


def _decided(place: Place, tests: Iterable[int]) -> dict[int, datetime.datetime]:
    """When people last said of a test that it is not to be listed apart."""
    members = Member.objects.filter(
        platform=place.platform,
        variant=place.variant,
        test__in=all_numbers(tests),
        quarantine__state__in=[State.DECLINED, State.RELEASED],
    )
    ordered = list(members.order_by("quarantine__ended_at").values_list("test_id", "quarantine__ended_at"))
    newest = newest_names(test for test, _ in ordered)
    return {newest[test]: at for test, at in ordered if at is not None}


# --- what follows -----------------------------------------------------------------------------------------------


def _propose(place: Place, entry: Entry, rules: Rules, now: datetime.datetime) -> bool:
    try:
        services.propose(
            platform=place.platform,
            variant=place.variant,
            tests=list(entry.tests),
            source=Source.HUB,
            reason_class=ReasonClass.OTHER,
            reason=reason_of(entry, rules),
            owner=owner_of(place.platform),
            is_aggregate=bool(entry.file),
            actor=HUB,
            now=now,
        )
    except Problem as problem:
        if problem.code != "quarantine_open":
            raise
        log.info("somebody was faster: %s", problem.detail)
        return False
    return True


def reason_of(entry: Entry, rules: Rules) -> str:
    """The evidence in a sentence."""
    days = rules.window / _HOURS_A_DAY
    if not entry.file:
        (one,) = entry.tests.values()
        counts = f"{one.jobs} jobs, {one.runs} runs, {one.commits} commits"
        return f"Red and green on one commit in {counts} within {days:g} days, last on {one.newest:%Y-%m-%d %H:%M}."
    newest = max(one.newest for one in entry.tests.values() if one.newest)
    return (
        f"{len(entry.tests)} tests of {entry.file[:200]} were red and green on one commit in several runs within "
        f"{days:g} days, last on {newest:%Y-%m-%d %H:%M}."
    )


def owner_of(platform: Platform) -> str:
    """The first oncall of the platform's highest repository that has one, else its first member."""
    for repository in Repository.objects.filter(platform=platform).order_by("-level", "pk"):
        if repository.oncalls:
            return repository.oncalls[0]
    first = Membership.objects.filter(platform=platform).select_related("user").order_by("pk").first()
    return first.user.username[: services.OWNER_MAX] if first else NOBODY


def _reopen(place: Place, flakes: dict[int, list[Flake]], now: datetime.datetime) -> int:
    """Released records of which a test was flaky again, on a commit not older than what the release stood on."""
    released = Quarantine.objects.filter(platform=place.platform, variant=place.variant, state=State.RELEASED)
    changed = 0
    for quarantine in released.order_by("pk"):
        again = [
            flake
            for test in set(newest_names(quarantine.members.values_list("test_id", flat=True)).values())
            for flake in flakes.get(test, [])
            if _is_new(flake, quarantine)
        ]
        if not again or quarantine.members.filter(test__in=_standing(place, flakes)).exists():
            continue
        newest = max(flake.at for flake in again)
        reason = f"Flaky again in {len({flake.run for flake in again})} runs, last on {newest:%Y-%m-%d %H:%M}."
        services.reopen(quarantine=quarantine, revision=quarantine.revision, reason=reason, actor=HUB, now=now)
        changed += 1
    return changed


def _is_new(flake: Flake, quarantine: Quarantine) -> bool:
    """Commit order counts, not arrival: a commit without a known place says nothing against a release that has one."""
    if quarantine.ended_at is None or flake.at <= quarantine.ended_at:
        return False
    if quarantine.fix_place is None:
        return True
    place = place_of(flake.sha)
    return place is not None and place >= quarantine.fix_place


def end_broken(place: Place, now: datetime.datetime) -> int:
    """End every open record of which a test fails always: it is a regression, and must not be listed apart."""
    raised = Streak.objects.filter(platform=place.platform, variant=place.variant, is_raised=True)
    found = Quarantine.objects.filter(
        Q(state__in=EFFECTIVE) | Q(state=State.PROPOSED, source=Source.HUB),
        platform=place.platform,
        variant=place.variant,
        members__test__in=_raised(place),
    )
    changed = 0
    for quarantine in found.distinct().order_by("pk"):
        tests = all_numbers(quarantine.members.values_list("test_id", flat=True))
        worst = raised.filter(test__in=tests).select_related("test").order_by("pk")[0]
        reason = (
            f"{str(worst.test)[:150]} was red in every run since {worst.since_at:%Y-%m-%d %H:%M}, {worst.runs} on "
            f"{worst.commits} commits: a regression, no flake."
        )
        if quarantine.state == State.PROPOSED:
            services.decline(quarantine=quarantine, revision=quarantine.revision, reason=reason, actor=HUB, now=now)
        else:
            services.end(quarantine=quarantine, verb=Verb.BREAK, reason=reason, actor=HUB, now=now)
        changed += 1
    return changed
