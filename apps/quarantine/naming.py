"""Tests as people write them down, one a line, to numbers of the catalogue: numbers, pytest's node ids, upstream's
`name (module.Class)`, and bare names. A name is looked for among the tests of the platform's last report alone."""

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from apps.core.text import storable
from apps.platforms.models import Platform
from apps.quarantine.room import last_report
from apps.results.models import Report, Test
from apps.results.names.canonical import Original, canonical
from apps.results.names.rules import words_of

_NUMBERS = re.compile(r"[0-9]{1,18}(?:[\s,]+[0-9]{1,18})*,?", re.ASCII)
_UPSTREAM = re.compile(r"(?P<name>.+) \((?P<class_name>[\w.]+)\)")
_SEPARATOR = "::"
_SHOWN = 80


class Written(NamedTuple):
    """A test as it was written; '' for a part that was not said."""

    file: str
    class_name: str
    name: str


class Resolved(NamedTuple):
    """The numbers of the tests that were found, and a sentence for each line that names none, or more than one."""

    tests: list[int]
    refused: list[str]


def resolved(lines: Iterable[str], platform: Platform, variant: str) -> Resolved:
    """Read what was pasted. Numbers are taken as they are. Two queries and one file where there are names."""
    said = [line.strip() for line in lines if line.strip()]
    numbers = [int(word) for line in said if _NUMBERS.fullmatch(line) for word in re.split(r"[\s,]+", line) if word]
    names = list(dict.fromkeys(line for line in said if not _NUMBERS.fullmatch(line)))
    if not names:
        return Resolved(numbers, [])
    report = last_report(platform, variant)
    if report is None or not report.outcomes_name:
        return Resolved(
            numbers, [f"No report of {platform.name} ({variant}) says yet which tests there are: write numbers."]
        )
    found = _found(report, names)
    refused = [_refusal(name, found[name], platform, variant) for name in names if len(found[name]) != 1]
    return Resolved(numbers + [found[name][0] for name in names if len(found[name]) == 1], refused)


def _refusal(line: str, found: list[int], platform: Platform, variant: str) -> str:
    if found:
        return f"Saw {line[:_SHOWN]!r}: {len(found)} tests are called so, write file::Class::name."
    return f"Saw {line[:_SHOWN]!r}: the last report of {platform.name} ({variant}) names no such test."


def _found(report: Report, lines: list[str]) -> dict[str, list[int]]:
    from apps.results import outcomes  # pyarrow: only where it is needed

    words = words_of(report.device)
    wanted = {line: _readings(_parsed(storable(line)), words) for line in lines}
    numbers = outcomes.read(report.outcomes_name, ["test"])["test"].tolist()
    named = Test.objects.filter(pk__in=numbers, name__in={one.name for of in wanted.values() for one in of})
    by_name: dict[str, list[Test]] = defaultdict(list)
    for test in named.order_by("pk"):
        by_name[test.name].append(test)
    return {
        line: sorted({test.pk for one in readings for test in by_name[one.name] if _is_meant(one, test)})
        for line, readings in wanted.items()
    }


def _parsed(line: str) -> Written:
    if upstream := _UPSTREAM.fullmatch(line):
        return Written("", upstream["class_name"].rpartition(".")[2], upstream["name"])
    file, *rest = line.split(_SEPARATOR, 2)
    if not rest:
        return Written("", "", file)
    return Written(file, "", rest[0]) if len(rest) == 1 else Written(file, *rest)


def _readings(written: Written, words: frozenset[str]) -> set[Written]:
    """As the catalogue may have it: without the platform's device, and as it stands."""
    without = canonical(Original(*written), words)
    return {written, Written(without.file, without.class_name, without.name)}


def _is_meant(written: Written, test: Test) -> bool:
    """Whether what was said of file and class fits. A path may be given from further up than the catalogue has it."""
    file = written.file.removesuffix(".py")
    is_file = not file or file == test.file or file.endswith(f"/{test.file}")
    return is_file and written.class_name in ("", test.class_name, test.class_name.rpartition(".")[2])
