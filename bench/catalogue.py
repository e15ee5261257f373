"""Names, catalogue and outcome files with a full run of 600,000 tests, beside a parse of the files that only counts."""

import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from bench import reports_data

CASES = int(os.environ.get("BENCH_CASES", str(reports_data.CASES)))
Name = tuple[str, str, str]


def run() -> None:
    """Each stage by itself. Names are in memory before, so that no stage pays for the parse."""
    with tempfile.TemporaryDirectory(prefix="accelhub-reports-") as folder:
        print(f"\nCatalogue: {CASES:,} tests")
        files = max(1, min(reports_data.FILES, CASES // 10))
        for line in reports_data.write(Path(folder), cases=CASES, files=files).lines():
            print(line)
        paths = sorted(Path(folder).rglob("*.xml"))
        count = timed("floor: expat, counting test cases", lambda: sum(count_cases(path) for path in paths))
        assert count == CASES
        names = [name for path in paths for name in _names(path)]
    _stages(names)


def _stages(names: list[Name]) -> None:
    from apps.results import catalogue, outcomes
    from apps.results.names.canonical import Canonicals
    from apps.results.names.rules import words_of

    words = words_of("npu")
    canonicals = Canonicals(words)
    timed("canonical names and their digests", lambda: canonicals.digests(names))
    before = _memory()
    first = timed("first sight: names, digests, COPY in steps", lambda: catalogue.identify(names, words))
    print(
        f"{'':4}{first.added:,} new, {first.collisions} kept apart; memory from {before} to {_memory()} MiB at its peak"
    )
    again = timed("known suite", lambda: catalogue.identify(names, words))
    assert (again.added, again.tests.tolist()) == (0, first.tests.tolist())
    catalogue._remembered.clear()
    timed("a new process reads the catalogue", catalogue.known)
    timed("the search index, in the background", lambda: catalogue.fill_search(steps=10**6))
    timed("a search", lambda: catalogue.search("test_forward matmul_17", limit=50))

    written = outcomes_of(first)
    name = timed("outcome file written", lambda: outcomes.write(written, report="bench", revision=1))
    from django.core.files.storage import default_storage

    size = default_storage.size(name)
    without = outcomes.Outcomes(
        **{each: getattr(written, each) for each in outcomes.COLUMNS} | {"ms": written.ms * 0 - 1},
        spellings=written.spellings,
    )
    bare = default_storage.size(outcomes.write(without, report="bench", revision=2))
    print(f"{'':4}{size / 1e6:.2f} MB; {bare / 1e6:.2f} MB of them without times")
    timed("two columns read", lambda: outcomes.read(name))
    timed("one test's row, 200 times", lambda: [outcomes.row_of(name, int(test)) for test in first.tests[:200]])
    print(f"memory at its peak, the names of the whole suite among it: {_memory()} MiB")


def outcomes_of(identified: Any, *, seed: int = 7) -> Any:
    """Outcomes of these tests, as a run of this seed ended."""
    from apps.results.outcomes import Outcomes

    dice, rows = np.random.default_rng(seed), len(identified.tests)
    roll = dice.random(rows)
    outcome = np.select([roll < 0.35, roll < 0.353, roll < 0.363], [3, 1, 6], 0).astype(np.int8)
    reason = np.minimum(dice.exponential(12, rows).astype(np.int32), 59)
    seconds = dice.lognormal(reports_data.TIME_MU, reports_data.TIME_SIGMA, rows)
    return Outcomes(
        identified.tests,
        outcome,
        np.where(outcome == 6, 2, 1).astype(np.int16),
        (seconds * 1_000).astype(np.int32),
        np.where(outcome == 3, reason, -1).astype(np.int32),
        identified.spelling,
        identified.spellings,
    )


def timed(what: str, work: Callable[[], Any]) -> Any:
    begun, worked = time.perf_counter(), time.process_time()
    result = work()
    elapsed, worked = time.perf_counter() - begun, time.process_time() - worked
    print(f"{what:<50} {elapsed:7.2f} s, {worked:6.2f} s of this process")
    return result


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def count_cases(path: Path) -> int:
    """The floor: a parse that only counts test cases."""
    count = 0

    def start(tag: str, _attributes: list[str]) -> None:
        nonlocal count
        if tag == "testcase":
            count += 1

    _parse(path, start)
    return count


def _names(path: Path) -> Iterator[Name]:
    found: list[Name] = []

    def start(tag: str, attributes: list[str]) -> None:
        if tag == "testcase":
            given = dict(zip(attributes[::2], attributes[1::2], strict=True))
            found.append((given["file"], given["classname"], given["name"]))

    _parse(path, start)
    return iter(found)


def _parse(path: Path, start: Callable[[str, list[str]], None]) -> None:
    parser = expat.ParserCreate()
    parser.ordered_attributes = True
    parser.StartElementHandler = start
    with path.open("rb") as file:
        parser.ParseFile(file)
