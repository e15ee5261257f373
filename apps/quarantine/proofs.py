"""Proof that a quarantine may go: what its tests did, from the files of outcomes. Rules: policy.proof."""

import datetime
from collections import defaultdict

import numpy as np

from apps.quarantine.enums import State
from apps.quarantine.evidence import Opened, counted
from apps.quarantine.models import Member, Quarantine
from apps.quarantine.policy import Proof, Ran, Rules, proof
from apps.relay.graph_selectors import places_of
from apps.results.namesakes import newest_names
from apps.results.report_selectors import of_platform

# The newest reports of a platform's variant that are looked through.
LOOKED_AT = 400


def proof_of(quarantine: Quarantine, rules: Rules, *, now: datetime.datetime) -> Proof:
    """How far the release of a quarantine that is in force, or was, is proven."""
    return proof_from(runs_of([quarantine])[quarantine.pk], quarantine, rules, now=now)


def proof_from(ran: list[Ran], quarantine: Quarantine, rules: Rules, *, now: datetime.datetime) -> Proof:
    """The same, of runs that were looked up."""
    return proof(ran, rules, fixed_at=quarantine.fix_place, changed_at=quarantine.changed_at, at=now)


def runs_of(quarantines: list[Quarantine]) -> dict[int, list[Ran]]:
    """By quarantine, all of one platform and variant, the runs of its tests since it was put in force, oldest first:
    red where one of its tests was red. A run that executed none of them is no run. Each file is read once."""
    members = list(Member.objects.filter(quarantine__in=quarantines).values_list("quarantine_id", "test_id"))
    newest = newest_names(test for _, test in members)
    tests: dict[int, list[int]] = defaultdict(list)
    for quarantine, test in members:
        tests[quarantine].append(newest[test])
    of = quarantines[0]
    assert of.platform is not None
    begun = {one.pk: _begun(one) for one in quarantines}
    found = counted().filter(of_platform(of.platform), variant=of.variant, received_at__gte=min(begun.values()))
    reports = list(found.order_by("-received_at", "-pk")[:LOOKED_AT])[::-1]
    places = places_of(report.head_sha for report in reports)
    ran: dict[int, list[Ran]] = {one.pk: [] for one in quarantines}
    for report in reports:
        seen = Opened(report).signs
        for pk, from_at in begun.items():
            if report.received_at < from_at:
                continue
            red, flaky, green = (bool(np.isin(tests[pk], shown).any()) for shown in (seen.red, seen.flaky, seen.green))
            if red or green:
                ran[pk].append(Ran(report.received_at, red, places.get(report.head_sha), flaky))
    return ran


def _begun(quarantine: Quarantine) -> datetime.datetime:
    """From when its runs count: since it was put in force. Whoever has renewed it, or refused its release, has decided
    on the runs before."""
    assert quarantine.effective_from is not None
    if quarantine.state == State.IN_FORCE:
        return max(quarantine.effective_from, quarantine.changed_at)
    return quarantine.effective_from
