"""A platform's list in force for other runners: upstream's file of disabled tests, and pytest's options.

Both say a test's name as the platform's last report wrote it. docs/quarantine.md says what is left out.
"""

import datetime
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from apps.platforms.models import Platform
from apps.quarantine.models import Member, Quarantine
from apps.quarantine.policy import EFFECTIVE
from apps.quarantine.services import fitted, url_of
from apps.results import catalogue
from apps.results.enums import ReportState
from apps.results.models import Report, Test
from apps.results.report_selectors import reports_of_platform

_ISSUE = re.compile(r"/(?:issues|pull)/(\d{1,12})$")
# Upstream's runner knows words of in-tree platforms alone, so nobody else's stands here.
_PLATFORMS: list[str] = []


class Disabled(NamedTuple):
    """A test in quarantine under its original name. `file` is a path from upstream's test folder on."""

    quarantine: Quarantine
    file: str
    class_name: str
    name: str


def disabled(platform: Platform, variant: str, user: Any, *, now: datetime.datetime) -> list[Disabled]:
    """The tests in force on a platform's variant, as the last report that this user may see names them."""
    in_force = Quarantine.objects.filter(
        platform=platform, variant=variant, state__in=EFFECTIVE, effective_from__lte=now, expires_at__gt=now
    ).order_by("pk")
    reports = reports_of_platform(platform, user).filter(variant=variant, state=ReportState.READY)
    report = reports.order_by("-received_at", "-pk").first()
    if report is None:
        return []
    held = {test: quarantine for quarantine in in_force for test in _tests_of(quarantine, platform)}
    return sorted(_named(report, held), key=lambda one: one[1:])


def _tests_of(quarantine: Quarantine, platform: Platform) -> list[int]:
    if quarantine.pattern:
        return fitted(platform, quarantine.variant, quarantine.pattern)
    return list(Member.objects.filter(quarantine=quarantine).values_list("test_id", flat=True))


def _named(report: Report, held: dict[int, Quarantine]) -> Iterator[Disabled]:
    """Those of these tests that a report names; renamed ones are found under either number."""
    import numpy as np  # with pyarrow: only where a report is opened

    from apps.results import outcomes
    from apps.results.names.canonical import Canonical, restore

    numbers = np.array(list(held), np.int64)
    quarantines = dict(zip(catalogue.renamed(numbers).tolist(), held.values(), strict=True))
    spellings = outcomes.about(report.outcomes_name).spellings
    columns = outcomes.read(report.outcomes_name, ["test", "spelling"])
    current = catalogue.renamed(columns["test"])
    at = np.flatnonzero(np.isin(current, list(quarantines)))
    tests = Test.objects.in_bulk(columns["test"][at].tolist())
    said = (columns["test"][at].tolist(), current[at].tolist(), columns["spelling"][at].tolist())
    for number, new, spelling in zip(*said, strict=True):
        test = tests[number]
        original = restore(Canonical(test.file, test.class_name, test.name, spellings[spelling]))
        yield Disabled(quarantines[new], test.file, original.class_name.rpartition(".")[2], original.name)


def disabled_tests(found: list[Disabled], base_url: str) -> dict[str, list[Any]]:
    """Upstream's form, `test (__main__.Class)`: issue, address, platforms. Tests without a class have none."""
    return {
        f"{one.name} (__main__.{one.class_name})": [
            _issue_of(one.quarantine),
            one.quarantine.issue_url or f"{base_url}{url_of(one.quarantine)}",
            _PLATFORMS,
        ]
        for one in found
        if one.class_name
    }


def _issue_of(quarantine: Quarantine) -> str:
    number = _ISSUE.search(quarantine.issue_url)
    return number[1] if number else ""


def deselected(found: list[Disabled]) -> str:
    """Options of pytest, one a line, for `pytest @deselect.txt` in upstream's test folder. A name that breaks the line
    would become an option of its own, so it is left out."""
    nodes = [
        "::".join(part for part in (f"{one.file.removesuffix('.py')}.py", one.class_name, one.name) if part)
        for one in found
        if one.file
    ]
    return "".join(f"--deselect={node}\n" for node in nodes if node.splitlines() == [node])
