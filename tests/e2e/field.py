"""People, platforms and a week of jobs: something to see on every page."""

from dataclasses import dataclass
from typing import Any

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.accounts.services import actor_of, create_api_token, create_organisation, set_organisation
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.governance.models import Proposal
from apps.platforms.members import create_invitation
from apps.platforms.models import Repository
from apps.platforms.services import add_member, change_level, rename_platform
from apps.relay.adoption import DifferenceKind
from apps.relay.enums import Answer, Bucket
from apps.relay.models import Commit, Delivery, Difference, Forward, HubOutage, Job, MergeBase, MissedDelivery
from apps.results.services import recount
from tests.factories.jobs import callback, days_ago, dispatch, job, rejection
from tests.factories.listing import TESTS, listed, user
from tests.factories.proposals import proposal, returned

CLAIMS = {"repository": "acme/torch", "ref": "refs/heads/main", "job_workflow_ref": "acme/torch/.github/ci.yml@main"}


@dataclass(frozen=True)
class Field:
    """What was made, for tests to name."""

    vendor: User  # speaks for Zephyr NPU, and proposed something that was returned
    maintainer: User
    operator: User
    admin: User
    acme: Repository  # L2, with jobs
    zephyr: Repository  # L1: its results are private
    job: Job
    delivery: Delivery
    decision: int
    invitation: str  # its code
    waiting: Proposal  # of Borealis TPU
    returned: Proposal  # of the vendor

    def addresses(self) -> dict[str, Any]:
        """What the addresses of pages are made of."""
        return {
            "platform": self.acme.platform.slug,
            "private_platform": self.zephyr.platform.slug,
            "repository": self.acme.full_name,
            "pull_request": self.delivery.pr_number,
            "sha": self.delivery.head_sha,
            "job": self.job.public_id,
            "decision": self.decision,
            "invitation": self.invitation,
            "waiting": self.waiting.public_id,
            "returned": self.returned.public_id,
            "person": self.vendor.public_id,
        }


def grow() -> Field:
    """Make it, through the real services."""
    moment = now()
    people = {
        "vendor": user(username="vera", email="vera@zephyr.example"),
        "maintainer": user(Role.MAINTAINER, username="mona"),
        "operator": user(Role.OPERATOR, username="otto"),
        "admin": user(Role.ADMIN, username="ada"),
    }
    vendor = people["vendor"]
    made = listed(
        {
            "acme/torch": (2, {"oncalls": ("zoe", "yann")}),
            "zephyr/torch": 1,
            "kestrel/torch": (3, {"device": "kestrel", "oncalls": ("kim",)}),
            "quartz/torch": 2,
        },
        now=days_ago(20),
    )
    acme, zephyr = made["acme/torch"], made["zephyr/torch"]
    for repository, name in ((acme, "Acme One"), (zephyr, "Zephyr NPU"), (made["kestrel/torch"], "Kestrel NPU")):
        slug = name.lower().replace(" ", "-")
        rename_platform(platform=repository.platform, name=name, slug=slug, actor=TESTS, now=days_ago(19))
    decision = change_level(
        repository=made["quartz/torch"],
        level=1,
        reason="Silent for two weeks.",
        evidence="no callback since day 6",
        actor=actor_of(people["maintainer"]),
        now=days_ago(4),
    )
    shown, delivery = _jobs(acme, made["kestrel/torch"])
    _private(zephyr, vendor)
    _beside_the_relay(acme, delivery)
    organisation = create_organisation(name="Zephyr", slug="zephyr", actor=TESTS, now=moment)
    set_organisation(user=vendor, organisation=organisation, reason="works there", actor=TESTS, now=moment)
    create_api_token(user=vendor, note="nightly script", actor=actor_of(vendor), now=moment)
    _, code = create_invitation(
        platform=acme.platform, note="Zoe", inviter=people["admin"], actor=actor_of(people["admin"]), now=moment
    )
    Wakeup.objects.get_or_create(topic="results.count", key="1:2026-01-01", defaults={"created_at": moment})
    return Field(
        **people,
        acme=acme,
        zephyr=zephyr,
        job=shown,
        delivery=delivery,
        decision=decision.seq,
        invitation=code,
        waiting=proposal("borealis/torch", by=user(username="bo"), platform_name="Borealis TPU"),
        returned=returned(proposal("zephyr/second", by=vendor, platform_name="Zephyr Two")),
    )


def _beside_the_relay(acme: Repository, delivery: Delivery) -> None:
    """What a hub in shadow mode lists, an outage, and the place of a commit."""
    moment = days_ago(2)
    for kind in DifferenceKind.values:
        name = f"crcr/{acme.full_name}/CI/{'long-name-' * 9}"
        values = {"kind": kind, "name": name, "ours": "success", "theirs": "failure", "found_at": moment}
        Difference.objects.create(delivery_id=delivery.delivery_id, repository=acme, **values)
    Forward.objects.create(
        repository_name=acme.full_name,
        delivery_id=delivery.delivery_id,
        order_key="1",
        answer="refused",
        detail="workflow.conclusion: saw 'splendid'",
        received_at=moment,
        state="given_up",
        attempts=8,
        changed_at=moment,
        due_at=moment,
        error="the dashboard answered 503",
    )
    outage = HubOutage.objects.create(started_at=days_ago(3), ended_at=moment)
    MissedDelivery.objects.create(
        delivery_id="missed", outage=outage, github_id=1, event="push", delivered_at=moment, due_at=moment
    )
    Commit.objects.create(sha="ab" * 20, position=0, placed_at=moment)
    Commit.objects.create(sha=delivery.head_sha, parent_sha="ab" * 20, position=1, placed_at=moment)
    for head in (delivery.head_sha, "cd" * 20):
        MergeBase.objects.create(
            pr_number=delivery.pr_number or 1, head_sha=head, base_sha="ab" * 20, state="known", due_at=moment
        )


def _jobs(acme: Repository, kestrel: Repository) -> tuple[Job, Delivery]:
    """A week of every outcome, and of each event. It is no month: what axe needs grows with the rows."""
    outcomes = ("success", "failure", "cancelled", "success", "timed_out", "skipped", "")
    for day in range(2, 9):
        sent = dispatch(acme, at=days_ago(day), title="Fold view into copy", action="opened")
        named = {"dispatch": sent, "pr_number": sent.delivery.pr_number, "head_sha": sent.delivery.head_sha}
        for number, conclusion in enumerate((outcomes[day % 7], "success")):
            job(acme, conclusion, at=days_ago(day), job_name=f"test-{number}", **named)
    lie = dispatch(acme, title="Skip the slow path")
    job(acme, "success", dispatch=lie, bucket=Bucket.CONTRADICTED, pr_number=lie.delivery.pr_number, failed=3, total=9)
    push = {"event": "push", "pr_number": None, "ref": "refs/heads/main"}
    sent = dispatch(acme, at=days_ago(2), **push)
    job(acme, "success", at=days_ago(2), event_type="push", dispatch=sent, head_sha=sent.delivery.head_sha)
    job(kestrel, "failure", at=days_ago(2), event_type="nightly", head_sha="ab" * 20)
    both = dispatch(acme, title="Keep strides of a view", action="synchronize")
    kestrels = dispatch(kestrel, title="Keep strides of a view", action="opened")
    job(kestrel, "failure", dispatch=kestrels, pr_number=kestrels.delivery.pr_number)
    shown = job(
        acme,
        "success",
        dispatch=both,
        pr_number=both.delivery.pr_number,
        head_sha=both.delivery.head_sha,
        job_name="test-strides",
        url="https://github.com/acme/torch/actions/runs/7",
        passed=120,
        failed=2,
        skipped=8,
        total=130,
    )
    callback(shown, claims=CLAIMS, status="in_progress", conclusion=None)
    callback(shown, claims=CLAIMS)
    callback(shown, claims=CLAIMS, answer=Answer.CONFLICT, conclusion="failure")
    recount(days=40, now=days_ago(0))
    return shown, both.delivery


def _private(zephyr: Repository, vendor: User) -> None:
    """What only Zephyr's members see: a callback of L1, and refusals."""
    add_member(platform=zephyr.platform, user=vendor, actor=TESTS, now=days_ago(10))
    callback(zephyr, job_name="private-ops")
    rejection(zephyr, reason="token expired 3 min before it arrived")
    rejection()
