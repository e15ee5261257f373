"""Upstream's own job of the demo: its report can be read, agrees with its counts, and names what others name."""

from collections import Counter
from typing import Any

import pytest
from django.core.management import call_command

from apps.core.enums import Kind
from apps.core.models import Installation
from apps.results.models import InTreeSource
from apps.results.names.canonical import Original, canonical
from apps.results.names.rules import words_of
from apps.simulator.baseline import DEVICE, REF, WORKFLOW_FILE, baseline_job, baseline_meta, reportlog
from apps.simulator.characters import CHARACTERS
from apps.simulator.downstream import Downstreams
from apps.simulator.junit import junit
from apps.simulator.plan import plan
from apps.simulator.standin import GitHubStandIn
from apps.simulator.timetable import Timetable
from apps.simulator.upstream import OWNER_ID, REPOSITORY_ID
from tests.results.formats.reading import Read, read_junit, read_log
from tests.simulator.tiny_hub import AUDIENCE, TinyHub, eventually

KESTREL = CHARACTERS[0]
UPSTREAM = "pytorch/pytorch"
SHAS = [f"{number:040x}" for number in range(12)]


def identities(read: Read, device: str) -> set[tuple[str, str, str]]:
    words = words_of(device)
    return {canonical(Original(case.file, case.class_name, case.name), words)[:3] for case in read.cases}


def test_its_log_is_read_without_a_note_and_agrees_with_its_counts() -> None:
    jobs = [baseline_job(UPSTREAM, sha, seed=1) for sha in SHAS]
    for job in jobs:
        read = read_log(reportlog(job))
        counts: Counter[str] = Counter(case.outcome.label for case in read.cases)
        assert read.notes == {}
        assert job.test_results == {
            "passed": counts["passed"],
            "failed": counts["failed"],
            "skipped": counts["skipped"] + counts["xfailed"],
            "total": len(read.cases),
        }
    assert {job.conclusion for job in jobs} == {"success", "failure"}


def test_it_names_the_tests_that_downstreams_name() -> None:
    payload = {"event_type": "push", "delivery_id": "d", "payload": {}}
    [own] = [job for job in plan(KESTREL, payload, seed=1) if job.uploads]
    upstreams = identities(read_log(reportlog(baseline_job(UPSTREAM, SHAS[0], seed=1))), DEVICE)
    theirs = identities(read_junit(junit(own)), KESTREL.device)
    assert theirs < upstreams


def test_it_reports_as_a_job_of_upstreams_own_workflow(github: GitHubStandIn, tiny_hub: TinyHub) -> None:
    github.add_repository(UPSTREAM, repository_id=REPOSITORY_ID, owner_id=OWNER_ID)
    with Timetable() as timetable:
        downstreams = Downstreams(
            hub_url=tiny_hub.url, github_url=github.url, audience=AUDIENCE, seed=1, timetable=timetable, pace=0.001
        )
        downstreams.test_upstream(UPSTREAM, SHAS[3])
        eventually(lambda: tiny_hub.reports)
    job = baseline_job(UPSTREAM, SHAS[3], seed=1)
    [(claims, meta, file)] = tiny_hub.reports
    assert (claims["repository_id"], claims["ref"], claims["job_workflow_ref"]) == (
        str(REPOSITORY_ID),
        REF,
        f"{UPSTREAM}/{WORKFLOW_FILE}@{REF}",
    )
    assert (meta, file) == (baseline_meta(job), reportlog(job))
    assert (meta["head_sha"], "delivery_id" in meta) == (SHAS[3], False)


@pytest.mark.django_db
def test_the_demo_lets_it_report(settings: Any) -> None:
    settings.DEMO = True
    Installation.objects.update(kind=Kind.DEMO)
    call_command("seed_demo")
    source = InTreeSource.objects.select_related("platform").get()
    assert (source.platform.slug, source.workflow, source.ref, source.device) == ("cpu", WORKFLOW_FILE, REF, DEVICE)
    assert (source.github_id, source.github_owner_id) == (REPOSITORY_ID, OWNER_ID)
