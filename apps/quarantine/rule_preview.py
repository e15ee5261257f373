"""What a changed rule set would flag as flaky today, and what it would not flag any more, before it is put in force."""

import datetime
from dataclasses import dataclass

from apps.platforms.models import Platform
from apps.quarantine.detection import Place, preview
from apps.quarantine.models import Member
from apps.quarantine.policy import Rules
from apps.results.models import Test


@dataclass(frozen=True)
class Told:
    """A test of a preview. `is_standing`: it stands in an open quarantine of the place, so nothing more is proposed."""

    test: Test
    is_standing: bool


@dataclass(frozen=True)
class Change:
    """Of one platform's variant: the tests that would be flagged anew, those that would not be any more, and how many
    both sets flag."""

    place: Place
    flagged: list[Told]
    unflagged: list[Told]
    both: int


def changes(rules: Rules, *, now: datetime.datetime) -> list[Change]:
    """What would change against today's evidence, for every platform and variant that has some. Flakes of incidents
    stay out: what was an incident when its report came remains one."""
    platforms = Platform.objects.filter(flakes__isnull=False).distinct().order_by("name")
    pairs = preview(rules, platforms=platforms, now=now)
    moved = {test for before, after in pairs for test in before.tests.keys() ^ after.tests.keys()}
    tests = Test.objects.in_bulk(moved)
    standing = set(Member.objects.filter(test__in=moved, is_open=True).values_list("platform_id", "variant", "test_id"))

    def told(place: Place, numbers: set[int]) -> list[Told]:
        found = [
            Told(tests[number], (place.platform.pk, place.variant, number) in standing)
            for number in numbers
            if number in tests
        ]
        return sorted(found, key=lambda one: (one.test.file, one.test.class_name, one.test.name, one.test.pk))

    return [
        Change(
            after.place,
            told(after.place, after.tests.keys() - before.tests.keys()),
            told(after.place, before.tests.keys() - after.tests.keys()),
            len(before.tests.keys() & after.tests.keys()),
        )
        for before, after in pairs
    ]
