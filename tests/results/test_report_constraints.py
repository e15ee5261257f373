"""What must not be of reports, PostgreSQL refuses, whoever writes it."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.platforms.models import Repository
from apps.results.models import Report, Upload
from apps.results.models_reports import OUTCOME_COUNTS
from tests.factories.listing import listed

pytestmark = pytest.mark.django_db
NOW = timezone.now()
COUNTED = {"total": 3, **dict.fromkeys(OUTCOME_COUNTS, 0), "passed": 2, "failed": 1, "outcomes_name": "x"}
READY = COUNTED | {"state": "ready", "revision": 1, "wanted": 1, "parsed_at": NOW}


@pytest.fixture
def repository() -> Repository:
    return listed({"acme/torch": 2})["acme/torch"]


def report(repository: Repository | None, **fields: Any) -> Report:
    values = {"variant": "default", "report_key": "k", "run_id": "1", "run_attempt": 1, "job_name": "j", "level": 2}
    times = {"received_at": NOW, "changed_at": NOW}
    return Report.objects.create(repository=repository, **(values | times | fields))


def refused(by: str, act: Callable[[], Any]) -> bool:
    with pytest.raises(IntegrityError, match=by), transaction.atomic():
        act()
    return True


@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        ("results_report_state", {"state": "nonsense"}),
        ("results_report_event", {"event": "release"}),
        ("results_report_named", {"variant": ""}),
        ("results_report_named", {"report_key": ""}),
        ("results_report_attempt", {"run_attempt": 0}),
        ("results_report_level", {"level": 0}),
        ("results_report_shards", {"shards": 0}),
        ("results_report_shards", {"shards": 1001}),
        ("results_report_progress", {"progress": 101}),
        ("results_report_revision", {"revision": 1, "wanted": 0}),
        ("results_report_lease", {"state": "parsing"}),
        ("results_report_lease", {"lease": uuid.uuid4(), "lease_until": NOW}),
        ("results_report_counts_sum", COUNTED | {"total": 4}),
        ("results_report_counts_sum", COUNTED | {"passed": None}),
        ("results_report_counts_sum", COUNTED | {"outcomes_name": ""}),
        ("results_report_counts_sum", COUNTED | {"passed": 4, "failed": -1}),
        ("results_report_ready_whole", {"state": "ready", "wanted": 1, "revision": 1}),
        ("results_report_ready_whole", READY | {"revision": 0}),
        ("results_report_failed_why", {"state": "failed"}),
        ("results_report_failed_why", {"failure": "why"}),
        ("results_report_removed_empty", COUNTED | {"state": "removed"}),
    ],
)
def test_a_report_that_cannot_be(repository: Repository, constraint: str, fields: dict[str, Any]) -> None:
    assert refused(constraint, lambda: report(repository, **fields))


def test_a_report_has_one_origin_and_one_key(repository: Repository) -> None:
    report(repository, **READY)
    assert refused("results_report_once", lambda: report(repository))
    assert refused("results_report_one_origin", lambda: report(None))
    report(repository, variant="slow")


def test_a_report_that_was_taken_down_stays_so(repository: Repository) -> None:
    made = report(repository)
    Report.objects.filter(pk=made.pk).update(state="removed")
    assert refused("taken down", lambda: Report.objects.filter(pk=made.pk).update(state="received"))
    assert refused("does not fit", lambda: upload(made))


def upload(of: Report, **fields: Any) -> Upload:
    values = {"digest": "0" * 64, "bytes": 1, "run_id": "1", "run_attempt": 1, "job_name": "j", "claims": {}}
    return Upload.objects.create(report=of, received_at=NOW, **(values | fields))


def test_an_upload_that_cannot_be(repository: Repository) -> None:
    made = report(repository, shards=2)
    upload(made, shard=2)
    assert refused("results_upload_shard_once", lambda: upload(made, shard=2))
    assert refused("does not fit", lambda: upload(made, shard=3))
    assert refused("results_upload_shard", lambda: upload(made, shard=0))
    assert refused("results_upload_failing", lambda: upload(made, tests=1, failing=2))
    assert refused("results_upload_verdict", lambda: upload(made, verdict="corroborated"))
