"""What a repository's new owner sends is held: nobody is told on the pull request before that owner is accepted."""

from collections.abc import Callable

import pytest

from apps.core.clock import now
from apps.core.models import Wakeup
from apps.platforms.models import Transfer
from apps.relay.holds import decide_transfer
from apps.relay.models import Job
from apps.simulator.standin import GitHubStandIn
from tests.checks.field import KESTREL, Upstream, settle, shown
from tests.factories.listing import TESTS
from tests.relay.downstream import Downstream

pytestmark = pytest.mark.django_db
MOVED = "osprey-demo/torch-kestrel"
HELD = "The job was reported under a new owner of the repository, whom nobody has accepted"
BUILD, LINT = f"crcr/{KESTREL}/CI/build", f"crcr/{KESTREL}/CI/lint"


@pytest.fixture
def moved(upstream: Upstream, at_level: Callable[[int], Downstream], github: GitHubStandIn) -> Downstream:
    """At L4 and pinned by the one job that has ended; then transferred to another owner, where a job fails."""
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel)
    upstream.says(kestrel, "success")
    github.rename_repository(KESTREL, MOVED)
    made = Downstream(MOVED, github, kestrel.client, kestrel.run_id)
    upstream.says(made, "failure", job_name="lint")
    return made


@pytest.mark.usefixtures("moved")
def test_a_held_job_has_no_check_run_until_its_owner_is_accepted(github: GitHubStandIn) -> None:
    assert Job.objects.get(job_name="lint").is_held
    assert shown(github) == [(BUILD, "success", "Passed")]
    decide_transfer(transfer=Transfer.objects.get(), is_accepted=True, reason="both say so", actor=TESTS, now=now())
    job = Job.objects.get(job_name="lint")
    assert Wakeup.objects.filter(topic="job_for_checks", key=f"{job.pk}:{job.revision}").exists()
    settle()
    # The failed job's tests are awaited, and with them the part of which the other is one.
    assert [(name, state) for name, state, _ in shown(github)] == [(BUILD, "in_progress"), (LINT, "failure")]


def test_an_open_one_whose_end_is_held_ends_as_neutral_and_says_why(
    upstream: Upstream, at_level: Callable[[int], Downstream], github: GitHubStandIn
) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel)
    github.rename_repository(KESTREL, MOVED)
    upstream.says(Downstream(MOVED, github, kestrel.client, kestrel.run_id), "failure")
    assert shown(github) == [(BUILD, "neutral", HELD)]
    assert github.check_runs[-1]["output"]["summary"] == (
        f"**{HELD}.**\n\nThis check run ended without a verdict on the change. Where the hub's maintainers accept that "
        "owner, it says what the job says."
    )
    decide_transfer(transfer=Transfer.objects.get(), is_accepted=True, reason="both say so", actor=TESTS, now=now())
    settle()
    assert shown(github) == [(BUILD, "failure", "Failed")]


@pytest.mark.usefixtures("moved")
def test_a_refused_one_never_gets_any(github: GitHubStandIn) -> None:
    decide_transfer(transfer=Transfer.objects.get(), is_accepted=False, reason="nobody knows", actor=TESTS, now=now())
    settle()
    assert shown(github) == [(BUILD, "success", "Passed")]
