"""The test report that a job of the demo uploads: JUnit XML as upstream's tests write it, a few hundred cases.

The cases agree with the counts of the job's callback. Every platform runs the same tests, under its own device's name
and with a skip list of its own, so that reports can be compared.
"""

import itertools
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree

from apps.simulator.chance import chance
from apps.simulator.characters import Character, by_repository
from apps.simulator.plan import Job

_CLASSES = (
    ("test_ops.py", "TestCommon", ("dtypes", "out", "noncontiguous_samples")),
    ("test_binary_ufuncs.py", "TestBinaryUfuncs", ("contig_vs_every_other", "type_promotion")),
)
_OPERATORS = (
    *("add", "addmm", "argmax", "bmm", "cat", "clamp", "cumsum", "div", "einsum", "erf", "exp", "gather"),
    *("index_add", "linalg_qr", "logsumexp", "matmul", "mul", "norm", "pow", "scatter", "sort", "topk", "where"),
)
_DTYPES = ("bfloat16", "complex64", "float32", "int64")
# Where the tests of every platform break first, and the words they break with.
_FRAGILE = ("test_out_cumsum", "test_dtypes_linalg_qr", "test_out_topk")
_FAILURE = "AssertionError: Tensor-likes are not close!"
_TRACEBACK = f"""Traceback (most recent call last):
  File "/build/test/test_ops.py", line 412, in test_case
    self.assertEqual(actual, expected)
{_FAILURE}

Mismatched elements: 3 / 25 (12.0%)
"""
# Why tests are skipped, and of so many how often.
_SKIPS = {
    "Only runs on cuda": 6,
    "Device does not support complex64": 5,
    "test is slow; run with PYTORCH_TEST_WITH_SLOW to enable test": 3,
    "No module named 'scipy'": 3,
    "Requires at least 2 GPUs": 2,
    "Test is disabled because an issue exists disabling it: https://github.com/pytorch/pytorch/issues/81732 for "
    "platform(s) linux": 1,
    "Skipped!": 3,
}
_XFAIL_SHARE = 0.1  # of the tests that are skipped: they fail here, and are known to
_MOST_FRAGILE = 3  # of a run's failures
_UNLUCKY = "RuntimeError: the device was lost"
_SECONDS = (0.002, 0.4)
_FLAKE_RATE = 0.35  # of the runs in which a flaky test passes only when it is tried again


class Case(NamedTuple):
    """A test on whatever device: `name` without the device's word and without the dtype."""

    file: str
    class_name: str
    name: str
    dtype: str


class Ended(NamedTuple):
    """How a test ended: `how` is passed, failed, skipped or flaky; `words` what is said of it."""

    case: Case
    how: str
    words: str = ""


def junit(job: Job) -> bytes:
    """A job's report. The job has counts: its `test_results` is not None."""
    counts, character = job.test_results, by_repository(job.repository)
    assert counts is not None
    assert character is not None
    totals = {"tests": counts["total"], "failures": counts["failed"], "skipped": counts["skipped"]}
    suite = ElementTree.Element("testsuite", {"name": "pytest", "errors": "0"} | {k: str(v) for k, v in totals.items()})
    for case, how, words in ended(job, character.flaky_tests):
        element = _element(suite, case, character.device)
        if how == "failed":
            ElementTree.SubElement(element, "failure", message=words).text = _TRACEBACK
        elif how == "skipped":
            element.append(_skip(words))
        elif how == "flaky":
            ElementTree.SubElement(element, "rerun", message=words).text = words
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))


def ended(job: Job, flaky_tests: int = 0) -> Iterator[Ended]:
    """Every test of a job with how it ended; `flaky_tests`: so many of them now and then only at a second try."""
    counts = job.test_results
    assert counts is not None
    cases = list(itertools.islice(_catalogue(), counts["total"]))
    failed = _failed(job, cases, counts["failed"])
    skipped = _skipped(job, [case for case in cases if case not in failed], counts["skipped"])
    luck = chance(job, "flaky")
    unsteady = _unsteady(job.repository, cases, flaky_tests)[job.is_mended :]
    flaky = {case for case in unsteady if luck.random() < _FLAKE_RATE}
    for case in cases:
        if case in failed:
            yield Ended(case, "failed", _FAILURE)
        elif case in skipped:
            yield Ended(case, "skipped", _why(job, case))
        elif case in flaky:
            yield Ended(case, "flaky", _UNLUCKY)
        else:
            yield Ended(case, "passed")


def seconds_of(case: Case) -> float:
    """How long a test takes, on any device."""
    return chance("seconds", *case).uniform(*_SECONDS)


def _catalogue() -> Iterator[Case]:
    """Every test there is, always in this order."""
    for dtype, operator, (file, class_name, kinds) in itertools.product(_DTYPES, _OPERATORS, _CLASSES):
        for kind in kinds:
            yield Case(file, class_name, f"test_{kind}_{operator}", dtype)


def _failed(job: Job, cases: list[Case], count: int) -> set[Case]:
    """The fragile ones first, then any: another run breaks elsewhere."""
    fragile = [case for case in cases if case.name in _FRAGILE]
    others = [case for case in cases if case.name not in _FRAGILE]
    return set((fragile[:_MOST_FRAGILE] + chance(job, "failed").sample(others, count))[:count])


def _skipped(job: Job, cases: list[Case], count: int) -> set[Case]:
    """A platform's skip list hardly changes from run to run."""
    return set(sorted(cases, key=lambda case: chance(job.repository, "skip", *case).random())[:count])


def _unsteady(repository: str, cases: list[Case], count: int) -> list[Case]:
    """A platform's flaky tests: those that its skip list would have last."""
    return sorted(cases, key=lambda case: chance(repository, "skip", *case).random())[len(cases) - count :]


def mended_test(character: Character) -> str:
    """The flaky test of a platform that is mended, by the name that it has on every device."""
    shape = next(shape for shape in character.jobs if shape.uploads)
    case = _unsteady(character.full_name, list(itertools.islice(_catalogue(), shape.tests)), character.flaky_tests)[0]
    return f"{case.name}_<device>_{case.dtype}"


def _why(job: Job, case: Case) -> str:
    """Why a test is skipped; '' where it is known to fail."""
    luck = chance(job.repository, "why", *case)
    if luck.random() < _XFAIL_SHARE:
        return ""
    return luck.choices(list(_SKIPS), weights=list(_SKIPS.values()))[0]


def _skip(words: str) -> ElementTree.Element:
    if not words:
        return ElementTree.Element("skipped", type="pytest.xfail", message="known to fail here")
    return ElementTree.Element("skipped", type="pytest.skip", message=words)


def _element(suite: ElementTree.Element, case: Case, device: str) -> ElementTree.Element:
    """An out-of-tree device stands by its name in the method, and as PRIVATEUSE1 in the class."""
    return ElementTree.SubElement(
        suite,
        "testcase",
        classname=f"{case.class_name}PRIVATEUSE1",
        name=f"{case.name}_{device}_{case.dtype}",
        file=case.file,
        time=f"{seconds_of(case):.3f}",
    )
