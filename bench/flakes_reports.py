"""Full runs' reports as rows and files of outcomes, without the bytes they were read from."""

import datetime
import os
from collections.abc import Iterator

import numpy as np

from apps.platforms.models import Repository
from apps.results import catalogue, outcomes
from apps.results.enums import ReportState
from apps.results.formats.cases import Outcome
from apps.results.models import Report
from apps.results.models_reports import OUTCOME_COUNTS
from apps.results.names.rules import words_of
from bench import hub

# Of each run: (run, attempt, commit).
RUNS = ((1, 1, 1), (1, 2, 1), (2, 1, 2), (2, 2, 2), (3, 1, 3))
RED_SHARE, SKIPPED_SHARE = 0.001, 0.35
FLAKY_SHARE = float(os.environ.get("BENCH_FLAKY_SHARE", "0.001"))


def written(cases: int, *, begun: datetime.datetime) -> Iterator[Report]:
    """Each report once it is stored."""
    with hub.standin() as github:
        (name, *_) = hub.list_repositories(github, 1)
    repository = Repository.objects.select_related("platform").get(full_name=name)
    names = [(f"test_{n // 500}.py", f"TestOps{n // 100}", f"test_{n}_float32") for n in range(cases)]
    tests = catalogue.identify(names, words_of("npu")).tests
    dice = np.random.default_rng(11)
    edges = np.cumsum([SKIPPED_SHARE, RED_SHARE, FLAKY_SHARE])
    for at, (run, attempt, commit) in enumerate(RUNS):
        roll = dice.random(cases)
        codes = np.select([roll < edge for edge in edges], [Outcome.SKIPPED, Outcome.FAILED, Outcome.FLAKY], 0)
        yield _stored(repository, tests, codes.astype(np.int8), run, attempt, commit, begun + at * _HOUR)


_HOUR = datetime.timedelta(hours=1)


def _stored(
    repository: Repository,
    tests: np.ndarray,
    codes: np.ndarray,
    run: int,
    attempt: int,
    commit: int,
    at: datetime.datetime,
) -> Report:
    rows = len(tests)
    found = np.bincount(codes, minlength=len(Outcome)).tolist()
    report = Report.objects.create(
        repository=repository,
        variant="default",
        report_key=f"{run}.{attempt}",
        run_id=str(run),
        run_attempt=attempt,
        job_name="ops",
        head_sha=f"{commit:040x}",
        level=repository.level,
        wanted=1,
        received_at=at,
        changed_at=at,
    )
    none = np.full(rows, -1, np.int32)
    columns = outcomes.Outcomes(tests, codes, np.ones(rows, np.int16), none, none, np.zeros(rows, np.int32), [])
    name = outcomes.write(columns, report=str(report.public_id), revision=1)
    counts = {outcome.label: found[outcome] for outcome in Outcome if outcome.label in OUTCOME_COUNTS}
    Report.objects.filter(pk=report.pk).update(
        state=ReportState.READY,
        revision=1,
        progress=100,
        outcomes_name=name,
        parsed_at=at,
        total=rows,
        **counts,
    )
    return Report.objects.select_related("repository__platform").get(pk=report.pk)
