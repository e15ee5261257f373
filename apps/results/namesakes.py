"""A renamed test is one test under several numbers: its rows keep the number of the name that they were written under,
so whoever looks rows up by number asks for all of a test's numbers. Reports' columns: catalogue.renamed."""

from collections.abc import Iterable

from django.db.models import Q, QuerySet

from apps.results.models import Alias, Test


def newest_names(tests: Iterable[int]) -> dict[int, int]:
    """These tests, each with the number that it is read under: its own, or its new name's. One query."""
    numbers = list(tests)
    renamed = dict(Alias.objects.filter(old__in=numbers).values_list("old_id", "new_id"))
    return {number: renamed.get(number, number) for number in numbers}


def all_numbers(tests: Iterable[int]) -> set[int]:
    """Every number of these tests, theirs and those of their other names. One query."""
    numbers = set(tests)
    return numbers.union(*_aliases_of(numbers).values_list("old_id", "new_id"))


def all_names(tests: Iterable[Test]) -> dict[int, list[Test]]:
    """By number, each of these tests under each of its names, the one that was given first. One query."""
    given = {test.pk: test for test in tests}
    newest: dict[int, int] = {}
    families: dict[int, dict[int, Test]] = {}
    for alias in _aliases_of(given).select_related("old", "new").order_by("pk"):
        newest[alias.old_id] = alias.new_id
        families.setdefault(alias.new_id, {alias.new_id: alias.new})[alias.old_id] = alias.old
    named: dict[int, list[Test]] = {}
    for number, test in given.items():
        family = families.get(newest.get(number, number), {})
        named[number] = [test, *(other for pk, other in family.items() if pk != number)]
    return named


def _aliases_of(tests: Iterable[int]) -> QuerySet[Alias]:
    """All aliases between names of these tests."""
    numbers = list(tests)
    new_names = Alias.objects.filter(old__in=numbers).values("new")
    return Alias.objects.filter(Q(new__in=numbers) | Q(new__in=new_names))
