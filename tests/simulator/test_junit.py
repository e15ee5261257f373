"""Test reports of the demo: they agree with their jobs, can be read by the hub, and differ where platforms differ."""

from collections import Counter
from typing import Any

import pytest

from apps.results.skips import SkipClass, classify
from apps.simulator.characters import CHARACTERS, Character
from apps.simulator.dispatches import Dispatch
from apps.simulator.downstream import Downstreams
from apps.simulator.junit import junit, mended_test
from apps.simulator.plan import Job, plan
from apps.simulator.standin import GitHubStandIn
from apps.simulator.timetable import Timetable
from tests.results.formats.reading import read_junit
from tests.simulator.tiny_hub import AUDIENCE, TinyHub, eventually

UPLOADING = [c for c in CHARACTERS if any(shape.uploads for shape in c.jobs)]
KESTREL, FEN, WREN = CHARACTERS[0], CHARACTERS[1], CHARACTERS[4]


def jobs_of(character: Character, deliveries: int = 60, days_ago: float = 0) -> list[Job]:
    payloads = [{"event_type": "push", "delivery_id": f"d-{n}", "payload": {}} for n in range(deliveries)]
    return [job for payload in payloads for job in plan(character, payload, seed=1, days_ago=days_ago) if job.uploads]


def test_a_report_agrees_with_its_callback() -> None:
    for character in UPLOADING:
        for job in jobs_of(character):
            read = read_junit(junit(job))
            counts: Counter[str] = Counter(case.outcome.label for case in read.cases)
            passed = counts["passed"] + counts["flaky"]
            assert read.notes == {}, job
            assert job.test_results == {
                "passed": passed,
                "failed": counts["failed"],
                "skipped": counts["skipped"] + counts["xfailed"],
                "total": len({(case.file, case.class_name, case.name) for case in read.cases}),
            }


def test_the_same_run_writes_the_same_bytes() -> None:
    assert [junit(job) for job in jobs_of(WREN, 5)] == [junit(job) for job in jobs_of(WREN, 5)]


def test_platforms_skip_for_reasons_of_several_classes() -> None:
    read = read_junit(junit(jobs_of(FEN)[0]))
    found = {classify(case.message) for case in read.cases if case.outcome.label == "skipped"}
    assert found >= {SkipClass.UNSUPPORTED, SkipClass.TOO_SLOW, SkipClass.MISSING_DEPENDENCY, SkipClass.UNEXPLAINED}


def test_a_flaky_platform_has_the_same_flaky_tests_over_many_runs() -> None:
    flaky: dict[float, Counter[str]] = {}
    for days in (0.0, WREN.mended_days + 1.0):
        flaky[days] = Counter(
            case.name.replace("_wren_", "_<device>_")
            for job in jobs_of(WREN, days_ago=days)
            for case in read_junit(junit(job)).cases
            if case.outcome.label == "flaky"
        )
    before, now = flaky[WREN.mended_days + 1.0], flaky[0.0]
    assert len([name for name, runs in before.items() if runs > 5]) == len(before) == WREN.flaky_tests
    assert set(before) - set(now) == {mended_test(WREN)}
    assert len(now) == WREN.flaky_tests - 1
    assert not any(b"<rerun" in junit(job) for job in jobs_of(KESTREL))


def test_two_platforms_fail_in_the_same_tests_with_the_same_words() -> None:
    broken = [
        {
            (case.name.replace(character.device, "<device>"), case.message)
            for case in read_junit(junit(next(job for job in jobs_of(character) if job.conclusion == "failure"))).cases
            if case.outcome.label == "failed"
        }
        for character in (WREN, FEN)
    ]
    assert broken[0] & broken[1]


@pytest.fixture
def downstreams(github: GitHubStandIn, tiny_hub: TinyHub) -> Any:
    for c in CHARACTERS:
        github.add_repository(c.full_name, repository_id=c.repository_id, owner_id=c.owner_id)
    with Timetable() as timetable:
        yield Downstreams(
            hub_url=tiny_hub.url, github_url=github.url, audience=AUDIENCE, seed=1, timetable=timetable, pace=0.002
        )


def test_a_job_sends_its_report_with_a_token_of_its_own(downstreams: Downstreams, tiny_hub: TinyHub) -> None:
    payload = {"event_type": "pull_request", "delivery_id": "d-1", "payload": {"action": "opened"}}
    downstreams.on_dispatch(Dispatch(1, KESTREL.full_name, "pull_request", payload, ""))
    eventually(lambda: tiny_hub.callbacks and not downstreams.pending())
    [job] = [job for job in plan(KESTREL, payload, seed=1, pace=0.002) if job.uploads]
    [(claims, meta, file)] = tiny_hub.reports
    assert (claims["repository_id"], claims["run_id"]) == (str(KESTREL.repository_id), job.run_id)
    assert meta == {
        "event_type": "pull_request",
        "delivery_id": "d-1",
        "run_id": job.run_id,
        "run_attempt": 1,
        "workflow": "CI",
        "job_name": "test-nn",
        "check_run_id": job.check_run_id,
    }
    assert file == junit(job)
    assert claims["jti"] not in {told["jti"] for told, _ in tiny_hub.callbacks}


def test_a_night_says_which_commit_it_tested(downstreams: Downstreams, tiny_hub: TinyHub) -> None:
    downstreams.begin_night("one", "c" * 40)
    eventually(lambda: tiny_hub.callbacks and not downstreams.pending())
    assert {(meta["event_type"], meta["head_sha"]) for _, meta, _ in tiny_hub.reports} == {("nightly", "c" * 40)}
    assert all("delivery_id" not in meta for _, meta, _ in tiny_hub.reports)
