"""People, platforms and a week of jobs: something to see on every page."""

import datetime
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.test.utils import override_settings

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.accounts.services import actor_of, create_api_token, create_organisation, set_organisation
from apps.appeals.models import Appeal
from apps.audit import publishing
from apps.audit.services import Actor
from apps.core import alarms
from apps.core.clock import now
from apps.core.models import Alarm, Wakeup
from apps.gate.models import BreakerTrip, Override
from apps.governance.models import Proposal
from apps.levels.models import Downgrade, FallNotice, Promotion
from apps.platforms.members import create_invitation
from apps.platforms.models import AllowlistAlarm, AllowlistEdit, Demotion, Platform, Repository, Transfer, UpstreamFile
from apps.platforms.participation import announce_window
from apps.platforms.pipelines import map_pipeline
from apps.platforms.renames import hold
from apps.platforms.services import add_member, change_level, rename_platform
from apps.policies.models import PolicyDraft
from apps.quarantine import services as quarantines
from apps.quarantine.enums import ReasonClass, Source
from apps.quarantine.models import Quarantine
from apps.quarantine.sweep import expire
from apps.relay.adoption import DifferenceKind
from apps.relay.enums import Answer, Bucket
from apps.relay.models import (
    Acknowledgement,
    Commit,
    CommitLookup,
    DeclaredOutcome,
    Delivery,
    Difference,
    Dispatch,
    Forward,
    HubOutage,
    Job,
    MergeBase,
    MissedDelivery,
    Omission,
    TimeLimit,
)
from apps.results.catalogue import fill_search
from apps.results.coverage import count_coverage
from apps.results.enums import FileState, ReportFlag, TestsVerdict
from apps.results.models import Alias, Reason, Report, SearchedTest
from apps.results.public_names import publish
from apps.results.services import recount
from tests.factories import checks, reports
from tests.factories.checkpoints import seed
from tests.factories.checks import check, rerun
from tests.factories.jobs import callback, days_ago, dispatch, job, rejection
from tests.factories.listing import TESTS, listed, user
from tests.factories.proposals import proposal, returned
from tests.factories.reports import read_report
from tests.factories.tables import the_rest
from tests.factories.tests import catalogued
from tests.results.reporter import ended, junit

CLAIMS = {"repository": "acme/torch", "ref": "refs/heads/main", "job_workflow_ref": "acme/torch/.github/ci.yml@main"}


@dataclass(frozen=True)
class Field:
    """What was made, for tests to name."""

    vendor: User  # speaks for Zephyr NPU, and proposed something that was returned; an oncall of Acme
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
    transfer: Transfer  # of the Kestrel NPU's repository, with a held job
    reports: dict[str, Report]
    read: tuple[Report, Report]  # two of Acme's tests, with something of everything
    quarantines: dict[str, Quarantine]  # of Acme, in several states

    def addresses(self) -> dict[str, Any]:
        """What the addresses of pages are made of."""
        return {
            "platform": self.acme.platform.slug,
            "private_platform": self.zephyr.platform.slug,
            "repository": self.acme.full_name,
            "pull_request": self.delivery.pr_number,
            "delivery": self.delivery.delivery_id,
            "sha": self.delivery.head_sha,
            "job": self.job.public_id,
            "decision": self.decision,
            "invitation": self.invitation,
            "waiting": self.waiting.public_id,
            "returned": self.returned.public_id,
            "open_appeal": Appeal.objects.get(state="open").public_id,
            "decided_appeal": Appeal.objects.get(state="overturned").public_id,
            "override": Override.objects.earliest("pk").public_id,
            "promotion": Promotion.objects.earliest("pk").public_id,
            "notice": FallNotice.objects.earliest("pk").public_id,
            "downgrade": Downgrade.objects.earliest("pk").public_id,
            "red_job": Acknowledgement.objects.earliest("pk").job.public_id,
            "trip": BreakerTrip.objects.earliest("pk").public_id,
            "draft": PolicyDraft.objects.get(state="open").public_id,
            "person": self.vendor.public_id,
            "transfer": self.transfer.public_id,
            **{name: report.public_id for name, report in self.reports.items()},
            **{name: quarantine.public_id for name, quarantine in self.quarantines.items()},
            "report_before": self.read[0].public_id,
            "read_report": self.read[1].public_id,
            "test": self.read[1].findings.earliest("pk").test_id,
        }


def _read_reports(acme: Repository, kestrel: Repository) -> tuple[Report, Report]:
    """A report and the one after it, another platform's of the same commit, one of a long name."""
    issue = "Test is disabled because an issue exists disabling it: https://github.com/pytorch/pytorch/issues/5"
    trace = "Traceback (most recent call last):&#10;  torch/ops.py:7: in add&#10;RuntimeError: boom"
    long = f"test_{'very_long_name_' * 9}cpu_float32"
    cases = (
        ended("test_a", "passed"),
        ended("test_b", "failed", trace),
        ended("test_c", "skipped", "Only runs on cuda"),
        ended("test_d", "skipped", issue),
        ended("test_e", "skipped", ""),
        ended(long, "passed"),
        ended("test_f", "passed"),
    )
    before = read_report(acme, junit(*cases))
    read_report(kestrel, junit(ended("test_c", "passed"), ended("test_z", "failed", trace)))
    changed = (ended("test_a", "failed", trace), *cases[1:5], ended(long, "failed", "no"), ended("test_g", "passed"))
    after = read_report(acme, junit(*changed))
    fill_search(steps=1)
    publish(reports=10)
    count_coverage(reports=10, now=now())
    return before, after


def grow() -> Field:
    """Make it, through the real services."""
    moment = now()
    people = {
        "vendor": user(username="vera", github_login="vera", email="vera@zephyr.example"),
        "maintainer": user(Role.MAINTAINER, username="mona"),
        "operator": user(Role.OPERATOR, username="otto"),
        "admin": user(Role.ADMIN, username="ada"),
    }
    vendor = people["vendor"]
    made = listed(
        {
            "acme/torch": (2, {"oncalls": ("zoe", "yann", "vera")}),
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
    _kept_back(acme, made["kestrel/torch"], delivery, actor_of(people["maintainer"]))
    _beside_the_relay(acme, delivery)
    organisation = create_organisation(name="Zephyr", slug="zephyr", actor=TESTS, now=moment)
    set_organisation(user=vendor, organisation=organisation, reason="works there", actor=TESTS, now=moment)
    create_api_token(user=vendor, note="nightly script", actor=actor_of(vendor), now=moment)
    _, code = create_invitation(
        platform=acme.platform, note="Zoe", inviter=people["admin"], actor=actor_of(people["admin"]), now=moment
    )
    _upstream(acme, decision.seq)
    the_rest(acme, delivery)
    _checkpoints()
    Wakeup.objects.get_or_create(topic="results.count", key="1:2026-01-01", defaults={"created_at": moment})
    return Field(
        **people,
        acme=acme,
        zephyr=zephyr,
        job=shown,
        delivery=delivery,
        decision=decision.seq,
        invitation=code,
        transfer=_identities(acme, made["kestrel/torch"]),
        read=_read_reports(acme, made["kestrel/torch"]),
        reports=_reports(acme, zephyr, shown),
        quarantines=_quarantines(acme.platform),
        waiting=proposal("borealis/torch", by=user(username="bo"), platform_name="Borealis TPU"),
        returned=returned(proposal("zephyr/second", by=vendor, platform_name="Zephyr Two")),
    )


def _reports(acme: Repository, zephyr: Repository, shown: Job) -> dict[str, Report]:
    """Reports in each of their states, with everything that can stand on their page; and rows of the catalogue."""
    ready = reports.report(
        acme,
        passed=388_274,
        failed=1_803,
        skipped=209_923,
        shards=3,
        flags=[flag.value for flag in ReportFlag],
        torch_version="2.10.0a0+git1234567",
        hardware="A very long name of hardware " * 4,
        report_key="nightly-" * 20,
        collisions=3,
    )
    reports.upload(ready, shard=3, job=shown, verdict=TestsVerdict.CONTRADICTED, tests=5, failing=1)
    note = {"code": "truncated", "count": 2, "says": "The file ends too early: what was complete is read."}
    reports.file(ready, "test-reports/python-pytest/test_ops/test_ops-0123456789abcdef.xml")
    reports.file(ready, "a" * 300, note, state=FileState.PARTIAL)
    reports.in_tree(Platform.objects.create(slug="cuda", name="CUDA", kind="in_tree", created_at=now()))
    old, new = catalogued("test_old"), catalogued("test_new")
    SearchedTest.objects.create(test=old, words=str(old))
    Alias.objects.create(old=old, new=new, reason="renamed upstream", by="mona", created_at=now())
    Reason.objects.create(digest=UUID(int=7), text="Only runs on cuda")
    return {
        "report": ready,
        "waiting_report": reports.report(acme),
        "removed_report": reports.removed(acme),
        "private_report": reports.report(zephyr, level=1, passed=3),
    }


def _quarantines(platform: Platform) -> dict[str, Quarantine]:
    """One in each state that has a page of its own; the one in force has evidence (factories.tables)."""
    in_force = Quarantine.objects.get(platform=platform)
    proposed = _proposed(platform, "test_proposed", days=1, issue_url="https://github.com/acme/torch/issues/7")
    to_release = _in_force(platform, "test_mended", days=9)
    to_release = quarantines.propose_release(
        quarantine=to_release,
        revision=to_release.revision,
        reason="It passes since the kernel was mended.",
        actor=TESTS,
        now=days_ago(1),
    )
    expired = _in_force(platform, f"test_{'very_long_name_' * 9}", days=31)
    assert expire(now=now()) == 1
    return {
        "quarantine": in_force,
        "proposed_quarantine": proposed,
        "quarantine_to_release": to_release,
        "expired_quarantine": expired,
    }


def _proposed(platform: Platform, name: str, *, days: int, **more: Any) -> Quarantine:
    return quarantines.propose(
        platform=platform,
        variant="default",
        tests=[catalogued(name).pk],
        source=Source.VENDOR,
        reason_class=ReasonClass.TIMING,
        reason="It races with the allocator.",
        owner="zoe",
        actor=TESTS,
        now=days_ago(days),
        **more,
    )


def _in_force(platform: Platform, name: str, *, days: int) -> Quarantine:
    made = _proposed(platform, name, days=days)
    return quarantines.put_in_force(
        quarantine=made, revision=made.revision, is_bound=True, actor=TESTS, now=days_ago(days)
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
    about = {"job": shown, "head_sha": shown.head_sha, "pr_number": shown.pr_number}
    check(kestrel, f"crcr/{kestrel.full_name}/CI/build", **about)
    check(acme, f"crcr/{acme.full_name}/CI/test-strides", **about | checks.shown("completed"))
    rerun(kestrel, state="refused", error="Re-runs are for L3 and L4: it is at L2 now.")
    callback(shown, claims=CLAIMS, status="in_progress", conclusion=None)
    callback(shown, claims=CLAIMS)
    callback(shown, claims=CLAIMS, answer=Answer.CONFLICT, conclusion="failure")
    recount(days=40, now=days_ago(0))
    return shown, both.delivery


def _checkpoints() -> None:
    """Two days' checkpoints."""
    with override_settings(CHECKPOINT_KEY=seed()):
        for days in (2, 1):
            publishing.make_daily(now=days_ago(days))


def _kept_back(acme: Repository, kestrel: Repository, delivery: Delivery, actor: Actor) -> None:
    """What was not sent: given up, by a repository's own choice, and in an announced window to come."""
    given_up = dispatch(acme, title="Rename a kernel", action="opened")
    error = "GitHub answered 403: Resource not accessible by integration"
    Dispatch.objects.filter(pk=given_up.pk).update(state="given_up", sent_at=None, attempts=7, error=error)
    TimeLimit.objects.create(repository=acme, job_name="build", seconds=3_600, declared_at=days_ago(3))
    for outcome, name, withdrawn_at in (
        ("failure", "a-job-with-a-name-that-is-meant-to-fail-on-every-commit / shard 1 of 12", None),
        ("informational", "", days_ago(1)),
    ):
        DeclaredOutcome.objects.create(
            repository=acme,
            workflow=".github/workflows/nightly-end-to-end.yml",
            job_name=name,
            outcome=outcome,
            reason="It shows that a failure arrives: https://acme.example/" + "why/" * 30,
            starts_at=days_ago(9),
            ends_at=days_ago(-9),
            declared_at=days_ago(9),
            declared_by="ada",
            withdrawn_at=withdrawn_at,
        )
    CommitLookup.objects.create(sha="ab" * 20, is_known=True, looked_up_at=days_ago(3))
    Omission.objects.create(
        delivery=delivery, repository=kestrel, rule="ref", sentence="refs/heads/main fits none of its refs: release/*"
    )
    start = now() + datetime.timedelta(days=2)
    announce_window(
        repository=acme,
        starts_at=start,
        ends_at=start + datetime.timedelta(hours=4),
        note="New cards",
        actor=actor,
        now=now(),
    )


def _upstream(acme: Repository, decision: int) -> None:
    """What a hub that follows upstream's file has in its tables."""
    AllowlistAlarm.objects.create(
        kind="empty", detail="it has no content", raised_at=days_ago(3), cleared_at=days_ago(2)
    )
    AllowlistEdit.objects.create(
        repository=acme,
        event_seq=decision,
        level_before=1,
        level=2,
        state="merged",
        decided_at=days_ago(9),
        changed_at=days_ago(8),
    )
    Demotion.objects.create(
        repository=acme,
        pull_number=7,
        title="Demote acme/torch",
        level_before=3,
        state="closed",
        opened_at=days_ago(9),
        ended_at=days_ago(8),
    )


def follow_upstream(acme: Repository) -> None:
    """What stands on pages while upstream's file decides: an alarm, a decision that waits, a demotion."""
    text = "L2:\n  - kestrel/torch\n  - new/torch: zoe\n"
    UpstreamFile.objects.update_or_create(
        defaults={"commit_sha": "c4" * 20, "text": text, "taken_at": days_ago(3), "answered_at": days_ago(0)}
    )
    AllowlistAlarm.objects.create(
        kind="shrink",
        detail="3 of 4 entries are gone: acme/torch (L2), zephyr/torch (L1), quartz/torch (L1)",
        commit_sha="c5" * 20,
        text=text,
        raised_at=days_ago(1),
    )
    AllowlistEdit.objects.create(
        repository=acme,
        event_seq=1,
        level_before=2,
        level=1,
        state="opened",
        pull_number=8,
        pull_url="https://github.com/pytorch/pytorch/pull/8",
        error="GitHub answered 502",
        decided_at=days_ago(2),
        changed_at=days_ago(2),
    )
    Demotion.objects.create(
        repository=acme, pull_number=9, title="Demote acme/torch", level_before=2, opened_at=days_ago(1)
    )


def _identities(acme: Repository, kestrel: Repository) -> Transfer:
    """A mapped pipeline, an alarm, and a repository under a new owner with what it sent."""
    numbers: dict[str, Any] = {
        "organization_id": UUID(int=1),
        "pipeline_id": UUID(int=2),
        "required_claims": {"build_branch": ["main"]},
    }
    map_pipeline(repository=acme, actor=TESTS, now=days_ago(3), **numbers)
    alarms.forget()
    alarms.sound(Alarm.Kind.LIMIT_OPEN, "callback", detail="Redis does not answer", now=days_ago(2))
    hold(repository_id=kestrel.pk, old_owner_id=1, new_owner_id=2, new_name="osprey/torch", now=days_ago(2))
    held = job(kestrel, "success", at=days_ago(2), event_type="nightly", job_name="moved", flags=["held"])
    callback(held, claims={"repository_owner_id": "2"}, answer=Answer.HELD)
    return Transfer.objects.get()


def _private(zephyr: Repository, vendor: User) -> None:
    """What only Zephyr's members see: a callback of L1, and refusals."""
    add_member(platform=zephyr.platform, user=vendor, actor=TESTS, now=days_ago(10))
    callback(zephyr, job_name="private-ops")
    rejection(zephyr, reason="token expired 3 min before it arrived")
    rejection()
