"""Which red outcomes of a report are listed apart, and by what. Rooms above write exclusions through these verbs.

A pattern is a pytest node id of canonical names with `*` for any characters: `test_ops.py::TestCommon::test_x*`. A
part that is left out at the end fits everything: `nn/test_conv.py` is all tests of that file.
"""

import datetime
import re
from collections.abc import Iterable
from itertools import chain
from typing import Any

from apps.core.errors import Problem
from apps.platforms.models import Platform
from apps.results.formats.cases import RED as RED_OUTCOMES
from apps.results.models import Exclusion, Finding, Report, Test
from apps.results.namesakes import all_names

# What is red, and so can be listed apart.
RED = tuple(sorted(outcome.label for outcome in RED_OUTCOMES))
PATTERN_MAX = 500
_PARTS = 3
# So many letters a pattern says before its first star: one that fits everything is no pattern.
_SAID_MIN = 4


def parts_of(pattern: str) -> tuple[str, str, str]:
    """File, class and name of a pattern, '*' where it says none. Raises Problem `malformed`."""
    parts = pattern.split("::")
    file = parts[0]
    if len(pattern) > PATTERN_MAX or len(parts) > _PARTS or not all(parts) or len(file.partition("*")[0]) < _SAID_MIN:
        raise Problem(
            "malformed",
            f"pattern: saw {pattern[:60]!r}, send file::Class::name with * for any characters; the file begins with "
            f"at least {_SAID_MIN} characters that are said.",
            "pattern",
        )
    return file, parts[1] if len(parts) > 1 else "*", parts[2] if len(parts) == _PARTS else "*"


def fits(pattern: str, test: Test) -> bool:
    """Whether a pattern names a test. Files are compared with and without `.py`, as catalogues keep them without."""
    file, class_name, name = parts_of(pattern)
    return _fits(file.removesuffix(".py"), test.file) and _fits(class_name, test.class_name) and _fits(name, test.name)


def _fits(glob: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, glob.split("*"))), text, re.DOTALL) is not None


def exclude(
    *,
    source: str,
    source_id: str,
    url: str,
    platform: Platform,
    variant: str,
    tests: Iterable[int],
    pattern: str,
    reason: str,
    from_at: datetime.datetime,
    until_at: datetime.datetime | None,
) -> None:
    """List red outcomes of these tests, or of the pattern, apart in results that come in [`from_at`, `until_at`). To be
    called in the transaction of the state that asks for it."""
    common: dict[str, Any] = {
        "source": source,
        "source_id": source_id,
        "url": url,
        "platform": platform,
        "variant": variant,
        "reason": reason,
        "from_at": from_at,
        "until_at": until_at,
    }
    scopes = [{"pattern": pattern}] if pattern else [{"test_id": test} for test in tests]
    Exclusion.objects.bulk_create([Exclusion(**common, **scope) for scope in scopes])


def move_end(*, source: str, source_id: str, until_at: datetime.datetime, now: datetime.datetime) -> int:
    """Let what still holds, or is to hold, end at another moment. What would end before it begins goes. Returns how
    many rows there were."""
    rows = Exclusion.objects.filter(source=source, source_id=source_id).exclude(until_at__lte=now)
    gone, _ = rows.filter(from_at__gte=until_at).delete()
    return gone + rows.update(until_at=until_at)


def excluded(report: Report, tests: Iterable[Test]) -> dict[int, Exclusion]:
    """Of these tests of a report, those whose red is listed apart, by number: by the list in force when the report
    came. A renamed test is meant by each of its names. Two queries at most, whatever the report's size."""
    at = report.received_at
    found = Exclusion.objects.filter(platform=report.platform, variant=report.variant, from_at__lte=at)
    return hits(found.exclude(until_at__lte=at), tests)


def hits(in_force: Iterable[Exclusion], tests: Iterable[Test]) -> dict[int, Exclusion]:
    """Of these tests those that a list in force names, by number: by itself before a pattern, by any of its names."""
    in_force = list(in_force)
    if not in_force:
        return {}
    by_test = {exclusion.test_id: exclusion for exclusion in in_force if exclusion.test_id}
    patterns = [exclusion for exclusion in in_force if exclusion.pattern]
    answer: dict[int, Exclusion] = {}
    for number, names in all_names(tests).items():
        named = (by_test[name.pk] for name in names if name.pk in by_test)
        fitting = (exclusion for exclusion in patterns for name in names if fits(exclusion.pattern, name))
        if (hit := next(chain(named, fitting), None)) is not None:
            answer[number] = hit
    return answer


def apart(report: Report, findings: Iterable[Finding]) -> dict[int, Exclusion]:
    """Of a report's findings (with their tests), the red ones that are listed apart, by the test's number."""
    return excluded(report, [finding.test for finding in findings if finding.outcome in RED])
