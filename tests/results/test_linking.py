"""Uploads and their jobs: linked whichever comes first, and what the tests say about the conclusion."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.core.clock import now
from apps.core.models import Wakeup
from apps.platforms.models import Transfer
from apps.relay.holds import decide_transfer
from apps.relay.models import Job
from apps.results.linking import agreement, settle_jobs
from apps.results.models import Report, Upload
from apps.results.parsing import parse
from tests.factories.listing import TESTS, listed
from tests.factories.pages import Page
from tests.live import ClonedDatabase
from tests.relay.downstream import Downstream, refusal
from tests.relay.test_callback import KESTREL, dispatch
from tests.results.reporter import failing, junit, passing, received, upload

RED, GREEN, NONE = junit(failing("test_a"), passing("test_b")), junit(passing("test_a")), junit()
OF_D1: dict[str, Any] = {"delivery_id": "d-1", "event_type": "pull_request"}


@pytest.fixture
def kestrel(
    cloned_database: ClonedDatabase, storage_folder: Path, downstream: Callable[..., Downstream], client: Client
) -> Downstream:
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    dispatch(client)
    return made


def settle() -> int:
    for report in Report.objects.exclude(state="ready"):
        parse(report_pk=report.pk, clock=now)
    repositories = [pk for pk in Report.objects.values_list("repository_id", flat=True) if pk]
    return settle_jobs(repository_ids=repositories, now=now())


def job() -> tuple[str, list[str], str, str]:
    found = Job.objects.get()
    return found.bucket, found.flags, found.trust["conclusion"], found.trust["counts"]


CONTRADICTED = ("contradicted", ["tests_contradict"], "contradicted", "self-reported")
CORROBORATED = ("success", ["corroborated"], "corroborated", "corroborated")


@pytest.mark.parametrize("is_report_first", [True, False])
@pytest.mark.parametrize(
    ("content", "conclusion", "expected", "verdict"),
    [
        (GREEN, "success", CORROBORATED, "corroborated"),
        (RED, "success", CONTRADICTED, "contradicted"),
        (NONE, "success", CONTRADICTED, "contradicted"),
        (GREEN[:-12], "success", ("success", [], "self-reported", "self-reported"), ""),
        (RED, "failure", ("failure", ["corroborated"], "corroborated", "corroborated"), "corroborated"),
        (GREEN, "failure", ("failure", [], "self-reported", "self-reported"), ""),
    ],
)
def test_a_job_hears_what_its_tests_say_whichever_comes_first(
    kestrel: Downstream, is_report_first: bool, content: bytes, conclusion: str, expected: Any, verdict: str
) -> None:
    kestrel.start()
    acts = [lambda: received(upload(kestrel, content, **OF_D1)), lambda: kestrel.end(conclusion)]
    for act in acts if is_report_first else reversed(acts):
        act()
        settle()
    assert settle() == 0
    assert job() == expected
    sent = Upload.objects.get()
    assert (sent.verdict, sent.job) == (verdict, Job.objects.get())
    is_contradicted = verdict == "contradicted"
    report = Report.objects.get()
    assert ("contradicts_job" in report.flags) is is_contradicted
    page = Page(Client().get(f"/jobs/{Job.objects.get().public_id}/"))
    assert ("the tests that it uploaded do not" in page.text) is is_contradicted
    (said,) = page.items["reports"]
    assert said.startswith(f"build, default {report.total} tests: {report.failed} failed, {report.skipped} skipped; ")
    assert f"/reports/{report.public_id}/" in page.links


def test_an_upload_before_the_first_callback_finds_its_job_later(kestrel: Downstream) -> None:
    received(upload(kestrel, GREEN, **OF_D1))
    settle()
    assert Upload.objects.get().job is None
    kestrel.end("success")
    assert settle() == 2  # linked, and judged
    assert job()[1] == ["corroborated", "start_lost"]


def test_a_shard_that_turns_the_tests_red_takes_the_green_back_and_one_that_was_wrong_gives_it(
    kestrel: Downstream,
) -> None:
    kestrel.start()
    key = OF_D1 | {"report_key": "k", "shards": 2}
    received(upload(kestrel, GREEN, shard=1, **key))
    kestrel.end("success")
    settle()
    assert job() == CORROBORATED
    name = received(upload(kestrel, RED, shard=2, **key))
    settle()
    assert job() == CONTRADICTED
    from apps.results.removal import remove_report
    from tests.factories.listing import TESTS

    remove_report(report=Report.objects.get(public_id=name), reason="wrong", actor=TESTS, now=now())
    settle()
    assert job()[0] == "contradicted", "a report that was taken down takes nothing back by itself"


def test_another_attempt_leg_or_delivery_is_another_job(kestrel: Downstream) -> None:
    kestrel.start()
    for changes in ({"job_name": "other"}, {"check_run_id": "999"}, {"leg": "b"}, {"workflow": "Other"}):
        received(upload(kestrel, GREEN, report_key=str(changes), **OF_D1 | changes))
    assert list(Upload.objects.values_list("job", flat=True)) == [None] * 4
    received(upload(kestrel, GREEN, **OF_D1))
    assert Upload.objects.exclude(job=None).count() == 1


def test_a_job_whose_callbacks_name_no_check_run_is_found_by_an_upload_that_does(kestrel: Downstream) -> None:
    kestrel.start(check_run_id=None)
    received(upload(kestrel, GREEN, check_run_id="999", **OF_D1))
    assert Upload.objects.get().job == Job.objects.get()
    kestrel.start(check_run_id="999")
    received(upload(kestrel, GREEN, check_run_id="999", report_key="again", **OF_D1))
    assert Upload.objects.latest("pk").job is None, "the one it names, or the one that names none"


def test_where_several_jobs_fit_none_is_meant(kestrel: Downstream) -> None:
    kestrel.start(check_run_id="1")
    kestrel.start(check_run_id="2")
    received(upload(kestrel, GREEN, check_run_id=None, **OF_D1))
    assert Upload.objects.get().job is None


@pytest.mark.parametrize(
    ("conclusion", "tests", "failing", "is_whole", "expected"),
    [
        ("success", 5, 0, True, True),
        ("success", 5, 0, False, None),
        ("success", 5, 1, True, False),
        ("success", 5, 1, False, False),
        ("success", 0, 0, True, False),
        ("failure", 5, 1, False, True),
        ("failure", 5, 0, True, None),
        ("timed_out", 5, 1, True, None),
        ("cancelled", 0, 0, True, None),
    ],
)
def test_what_tests_say_about_a_conclusion(
    conclusion: str, tests: int, failing: int, is_whole: bool, expected: bool | None
) -> None:
    assert agreement(conclusion, tests=tests, failing=failing, is_whole=is_whole) is expected


# --- under a new owner ------------------------------------------------------------------------------------------


def upload_moved(kestrel: Downstream, content: bytes, **meta: Any) -> Any:
    """An upload of the same run, whose repository belongs to somebody else by now."""
    return upload(kestrel, content, token=kestrel.token(repository_owner_id="77"), **meta)


def test_a_held_report_says_nothing_of_a_job_until_its_owner_is_accepted(kestrel: Downstream) -> None:
    kestrel.start()
    kestrel.end("success")
    received(upload_moved(kestrel, RED, **OF_D1))
    settle()
    assert job() == ("success", [], "self-reported", "self-reported")
    assert Upload.objects.values_list("verdict", "judged_revision").get() == ("", None)
    Wakeup.objects.all().delete()
    decide_transfer(transfer=Transfer.objects.get(), is_accepted=True, reason="sold", actor=TESTS, now=now())
    today = f"{Report.objects.get().repository_id}:{now().date()}"
    assert list(Wakeup.objects.filter(topic="job_changed").values_list("key", flat=True)) == [today]
    settle()
    assert job() == CONTRADICTED


def test_a_held_report_takes_nothing_from_what_the_others_say(kestrel: Downstream) -> None:
    kestrel.start()
    kestrel.end("success")
    received(upload(kestrel, GREEN, **OF_D1))
    received(upload_moved(kestrel, RED, variant="slow", **OF_D1))
    settle()
    assert job() == CORROBORATED


def test_a_report_has_one_owner_from_its_first_shard_to_its_last(kestrel: Downstream) -> None:
    before: dict[str, Any] = {"report_key": "before", "shards": 2} | OF_D1
    after: dict[str, Any] = {"report_key": "after", "shards": 2} | OF_D1
    received(upload(kestrel, GREEN, shard=1, **before))
    received(upload_moved(kestrel, GREEN, shard=1, **after))
    assert refusal(upload_moved(kestrel, RED, shard=2, **before)) == (409, "report_conflict", "report_key")
    assert refusal(upload(kestrel, RED, shard=2, **after)) == (409, "report_conflict", "report_key")
    assert Upload.objects.count() == 2
    decide_transfer(transfer=Transfer.objects.get(), is_accepted=True, reason="sold", actor=TESTS, now=now())
    received(upload_moved(kestrel, RED, shard=2, **after))
