"""What time brings to quarantines: they expire, their tests vanish, and their release is proposed once it is proven."""

import datetime
from itertools import groupby

import numpy as np
from django.db.models import QuerySet

from apps.audit.services import HUB
from apps.quarantine import rules as rule_versions
from apps.quarantine import services
from apps.quarantine.enums import State, Verb
from apps.quarantine.evidence import Opened, counted
from apps.quarantine.models import Member, Progress, Quarantine
from apps.quarantine.policy import EFFECTIVE, Proof, Ran
from apps.quarantine.proofs import proof_from, runs_of
from apps.relay.models import Commit
from apps.results.namesakes import newest_names
from apps.results.report_selectors import of_platform

_HOURS_A_DAY = 24


def expire(*, now: datetime.datetime) -> int:
    """End what has run out. Returns how many."""
    due = list(_effective().filter(expires_at__lte=now))
    for quarantine in due:
        reason = f"It held until {quarantine.expires_at:%Y-%m-%d %H:%M} and was not renewed."
        services.end(quarantine=quarantine, verb=Verb.EXPIRE, reason=reason, actor=HUB, now=now)
    return len(due)


def vanish(*, now: datetime.datetime) -> int:
    """End those of whose tests no report has named one for so long. Returns how many."""
    rules = rule_versions.in_force(now)
    begun = now - datetime.timedelta(hours=rules.vanish)
    ended = 0
    for quarantine in _effective().filter(effective_from__lte=begun):
        if _was_named(quarantine, begun):
            continue
        reason = f"No report has named one of its tests for {rules.vanish / _HOURS_A_DAY:g} days."
        services.end(quarantine=quarantine, verb=Verb.VANISH, reason=reason, actor=HUB, now=now)
        ended += 1
    return ended


def _was_named(quarantine: Quarantine, begun: datetime.datetime) -> bool:
    """Whether a report since then names one of its tests, skipped or not. What was found is kept on the members."""
    members = Member.objects.filter(quarantine=quarantine)
    if members.filter(last_seen_at__gt=begun).exists():
        return True
    assert quarantine.platform is not None
    newest = newest_names(members.values_list("test_id", flat=True))
    since = counted().filter(of_platform(quarantine.platform), variant=quarantine.variant, received_at__gt=begun)
    for report in since.order_by("-received_at", "-pk").iterator():
        named = set(np.intersect1d(Opened(report).tests, list(newest.values())).tolist())
        if named:
            seen = [test for test, now in newest.items() if now in named]
            members.filter(test__in=seen).update(last_seen_at=report.received_at)
            return True
    return False


def propose_releases(*, now: datetime.datetime) -> int:
    """Reckon how far each release is proven, and propose what the rules call proven. Returns how many are proposed."""
    rules = rule_versions.in_force(now)
    begun = _effective().filter(effective_from__lte=now).order_by("platform", "variant", "pk")
    proposed = 0
    for _, group in groupby(begun, key=lambda one: (one.platform_id, one.variant)):
        quarantines = list(group)
        ran = runs_of(quarantines)
        for quarantine in quarantines:
            proof = proof_from(ran[quarantine.pk], quarantine, rules, now=now)
            _keep(quarantine, proof, ran[quarantine.pk], now)
            if quarantine.state != State.IN_FORCE or not proof.is_whole:
                continue
            place = _proven_from(ran[quarantine.pk])
            services.propose_release(
                quarantine=quarantine,
                revision=quarantine.revision,
                reason=f"{proof.passes} executed passes and no red on commits of main from {place} on.",
                actor=HUB,
                now=now,
                fix_sha=Commit.objects.filter(position=place).values_list("sha", flat=True).first() or "",
                fix_place=place,
            )
            proposed += 1
    return proposed


def _keep(quarantine: Quarantine, proof: Proof, ran: list[Ran], now: datetime.datetime) -> None:
    """For pages and the API, which do not reckon it themselves."""
    values = {
        "passes": proof.passes,
        "passes_needed": proof.needed,
        "reds": proof.reds,
        "hours": proof.hours,
        "hours_needed": proof.hours_needed,
        "missing": proof.words,
        "last_run_at": ran[-1].at if ran else None,
        "reckoned_at": now,
    }
    Progress.objects.update_or_create(quarantine=quarantine, defaults=values)


def _proven_from(ran: list[Ran]) -> int:
    """The first commit, by its place, after the last one on which a run was red or flaky."""
    placed = [(one.place, one.is_red or one.is_flaky) for one in ran if one.place is not None]
    last_red = max((place for place, is_bad in placed if is_bad), default=-1)
    return min(place for place, _ in placed if place > last_red)


def _effective() -> QuerySet[Quarantine]:
    return Quarantine.objects.filter(state__in=EFFECTIVE).select_related("platform").order_by("pk")
