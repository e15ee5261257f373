"""The adjusted pass rate, from a vendor's bytes to the figure: the raw one never changes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.core.clock import now
from apps.core.models import Wakeup
from apps.platforms.models import Platform
from apps.quarantine import services
from apps.quarantine.enums import Verb
from apps.quarantine.models import Quarantine
from apps.relay.models import Job
from apps.results.linking import settle_jobs
from apps.results.models import Report, Upload
from apps.results.parsing import parse
from apps.results.removal import remove_report
from apps.results.services import recount
from tests.factories.listing import TESTS, listed
from tests.factories.pages import Page
from tests.factories.tests import catalogued
from tests.live import ClonedDatabase
from tests.quarantine.test_services import in_force
from tests.relay.downstream import Downstream
from tests.relay.test_callback import KESTREL, dispatch
from tests.results.reporter import failing, junit, passing, received, upload

OF_D1: dict[str, Any] = {"delivery_id": "d-1", "event_type": "pull_request"}
A, B = "test_a", "test_b"
IN_QUARANTINE, BOTH = junit(failing(A), passing(B)), junit(failing(A), failing(B))


@pytest.fixture
def kestrel(
    cloned_database: ClonedDatabase, storage_folder: Path, downstream: Callable[..., Downstream], client: Client
) -> Downstream:
    """A job that failed, on a platform where test_a is in quarantine."""
    made = downstream(KESTREL)
    platform = listed({KESTREL: 2})[KESTREL].platform
    in_force(platform, catalogued(A, "TestFoo", "test_foo.py"), at=now())
    dispatch(client)
    made.start()
    return made


def settle() -> None:
    for report in Report.objects.exclude(state__in=["ready", "removed"]):
        parse(report_pk=report.pk, clock=now)
    settle_jobs(repository_ids=list(Job.objects.values_list("repository_id", flat=True)), now=now())


def rates() -> tuple[float | None, float | None, int]:
    """The raw pass rate, the adjusted one, and how many of the failures were told apart, of the day as it is told."""
    settle()
    recount(days=2, now=now())
    body = Client().get(f"/api/v1/repositories/{KESTREL}/metrics/").json()
    assert body["buckets"]["failure"] + body["buckets"]["contradicted"] == 1
    return body["pass_rate"], body["adjusted_pass_rate"], body["parts"]["listed_apart"]


PASSED, FAILED = (0.0, 1.0, 1), (0.0, 0.0, 0)


@pytest.mark.parametrize("is_report_first", [True, False])
@pytest.mark.parametrize(
    ("content", "expected"),
    [(IN_QUARANTINE, PASSED), (BOTH, FAILED), (junit(passing(A)), FAILED), (IN_QUARANTINE[:-12], FAILED)],
    ids=["in quarantine", "one is not", "none failed", "not whole"],
)
def test_a_job_that_failed_by_quarantine_alone_passes_in_the_adjusted_rate_alone(
    kestrel: Downstream, content: bytes, expected: Any, is_report_first: bool
) -> None:
    acts: list[Callable[[], Any]] = [lambda: upload(kestrel, content, **OF_D1), lambda: kestrel.end("failure")]
    for act in acts if is_report_first else reversed(acts):
        act()
        settle()
    assert rates() == expected
    job = Job.objects.get()
    assert ("red_apart" in job.flags, job.bucket) == (expected == PASSED, "failure")
    page = Page(Client().get(f"/jobs/{job.public_id}/"))
    assert ("all its failed tests were in quarantine" in page.text) is (expected == PASSED)
    (row,) = Client().get("/api/v1/jobs/", {"delivery": "d-1"}).json()["results"]
    assert (row["bucket"], "red_apart" in row["flags"]) == ("failure", expected == PASSED)


def test_a_report_that_comes_late_has_its_day_counted_anew(kestrel: Downstream) -> None:
    kestrel.end("failure")
    assert rates() == FAILED
    received(upload(kestrel, IN_QUARANTINE, **OF_D1))
    for report in Report.objects.all():
        parse(report_pk=report.pk, clock=now)
    Wakeup.objects.all().delete()
    settle()
    today = f"{Job.objects.get().repository_id}:{now().date()}"
    assert list(Wakeup.objects.filter(topic="job_changed").values_list("key", flat=True)) == [today]
    assert rates() == PASSED
    Wakeup.objects.all().delete()
    settle()
    assert not Wakeup.objects.exists()


def test_what_is_lost_may_have_failed(kestrel: Downstream) -> None:
    kestrel.end("failure")
    key = OF_D1 | {"report_key": "k", "shards": 2}
    received(upload(kestrel, IN_QUARANTINE, shard=1, **key))
    assert rates() == FAILED
    received(upload(kestrel, junit(passing("test_c")), shard=2, **key))
    assert rates() == PASSED


def test_a_failure_that_another_attempts_shard_does_not_share_is_not_forgotten(kestrel: Downstream) -> None:
    kestrel.end("failure")
    key = OF_D1 | {"report_key": "k", "shards": 2}
    received(upload(kestrel, BOTH, shard=1, **key))
    again = {"shard": 2, "run_attempt": 2, "token": kestrel.token(run_attempt="2")}
    received(upload(kestrel, junit(passing(B)), **key | again))
    settle()
    assert Report.objects.values_list("failed", "flaky").get() == (1, 1)
    assert rates() == FAILED


def test_every_variant_of_a_job_must_be_all_in_quarantine(kestrel: Downstream) -> None:
    kestrel.end("failure")
    received(upload(kestrel, IN_QUARANTINE, **OF_D1))
    assert rates() == PASSED
    received(upload(kestrel, IN_QUARANTINE, variant="slow", **OF_D1))
    assert rates() == FAILED


def test_a_success_that_its_tests_deny_is_no_success_for_being_in_quarantine(kestrel: Downstream) -> None:
    kestrel.end("success")
    received(upload(kestrel, IN_QUARANTINE, **OF_D1))
    assert rates() == FAILED


def test_a_quarantine_that_begins_or_ends_later_changes_nothing(kestrel: Downstream) -> None:
    kestrel.end("failure")
    received(upload(kestrel, BOTH, **OF_D1))
    assert rates() == FAILED
    in_force(Platform.objects.get(), catalogued(B, "TestFoo", "test_foo.py"), at=now())
    read_again()
    assert rates() == FAILED
    received(upload(kestrel, BOTH, report_key="again", **OF_D1))
    Report.objects.earliest("pk").uploads.all().delete()
    assert rates() == PASSED
    for made in Quarantine.objects.all():
        services.end(quarantine=made, verb=Verb.BREAK, reason="fails always", actor=TESTS, now=now())
    read_again()
    assert rates() == PASSED


def read_again() -> None:
    """Another parse of all that was uploaded."""
    for report in Report.objects.filter(uploads__isnull=False):
        Report.objects.filter(pk=report.pk).update(wanted=report.wanted + 1, state="received")
        assert parse(report_pk=report.pk, clock=now) == "ready"
    assert set(Upload.objects.values_list("judged_revision", flat=True)) == {None}


def test_a_report_that_is_taken_down_excuses_nothing(kestrel: Downstream) -> None:
    kestrel.end("failure")
    name = received(upload(kestrel, IN_QUARANTINE, **OF_D1))
    assert rates() == PASSED
    remove_report(report=Report.objects.get(public_id=name), reason="wrong", actor=TESTS, now=now())
    assert Wakeup.objects.filter(topic="job_changed").exists()
    assert rates() == FAILED
