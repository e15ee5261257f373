"""A repository that is renamed while its check runs stand: one right check run of each job, on every commit."""

from collections.abc import Callable

import pytest

from apps.checks.models import Check
from apps.platforms.models import NameChange, Repository
from apps.platforms.tasks import confirm_name
from apps.relay.models import Job
from apps.simulator.standin import GitHubStandIn
from tests.checks.field import BUILD, KESTREL, Upstream, settle, shown
from tests.factories.listing import listed
from tests.factories.pages import Page
from tests.relay.downstream import HEAD_SHA, Downstream

pytestmark = pytest.mark.django_db
RENAMED = "kestrel-demo/renamed"
TEST, NEXT_SHA = f"crcr/{KESTREL}/CI/test", "9" * 40


@pytest.fixture
def renamed(upstream: Upstream, at_level: Callable[[int], Downstream], github: GitHubStandIn) -> Downstream:
    """At L4, with a job that runs; then renamed, which the hub has noticed by another job."""
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel)
    github.rename_repository(KESTREL, RENAMED)
    made = Downstream(RENAMED, github, kestrel.client, kestrel.run_id)
    upstream.says(made, job_name="test", check_run_id="457")
    assert confirm_name(NameChange.objects.get().pk)
    return made


def test_on_a_commit_that_has_check_runs_they_keep_their_name(
    upstream: Upstream, renamed: Downstream, github: GitHubStandIn
) -> None:
    upstream.says(renamed, "failure")
    upstream.says(renamed, "success", job_name="test", check_run_id="457")
    upstream.says(renamed, job_name="late", check_run_id="458")
    late = f"crcr/{KESTREL}/CI/late"
    assert [(name, state) for name, state, _ in shown(github)] == [
        (BUILD, "failure"),
        (TEST, "in_progress"),
        (late, "in_progress"),
    ]
    assert f"| Repository | `{RENAMED}` |" in github.check_runs[0]["output"]["summary"]
    page = Page(renamed.client.get(f"/jobs/{Job.objects.get(job_name='build').public_id}/"))
    assert BUILD in page.text
    upstream.says(renamed, "success", run_attempt="2", check_run_id="459")
    upstream.says(renamed, "success", job_name="late", check_run_id="458")
    assert (BUILD, "success", "Passed") in shown(github)


def test_on_the_next_commit_they_have_the_new_one(
    upstream: Upstream, renamed: Downstream, github: GitHubStandIn
) -> None:
    upstream.tells("synchronize", head_sha=NEXT_SHA)
    upstream.says(renamed, "success")
    there = [run["name"] for run in github.check_runs if run["head_sha"] == NEXT_SHA]
    assert there == [f"crcr/{RENAMED}/CI/build"]


def test_who_bears_the_former_name_by_then_does_not_get_the_check_runs_of_that_commit(
    upstream: Upstream, renamed: Downstream, github: GitHubStandIn, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = upstream.make(KESTREL, repository_id=5999, owner_id=6999)
    listed({RENAMED: 4, KESTREL: 4})
    upstream.tells("reopened")
    upstream.says(stranger, "failure")
    settle()
    assert (BUILD, "in_progress", "Running") in shown(github)
    assert f"{BUILD} is the check run of {RENAMED} at {HEAD_SHA} already" in caplog.text
    assert set(Check.objects.values_list("repository", flat=True)) == {Repository.objects.get(full_name=RENAMED).pk}
