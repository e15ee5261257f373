"""A row in each table that no page of a small hub fills."""

import dataclasses
import datetime
import json

from apps.accounts.policy import Role
from apps.appeals.enums import Outcome
from apps.appeals.services import Figure, Said, appeal_figure, decide_appeal
from apps.checks.models import PullRequest
from apps.core.clock import now
from apps.core.models import Round
from apps.gate.models import BreakerTrip, KeptReplay, Override, StoredVerdict
from apps.governance.models import NightlyEvaluation
from apps.governance.nights import evaluate_field
from apps.governance.waiving import grant_waiver
from apps.levels.bundle import hash_of, packed
from apps.levels.freezing import freeze
from apps.levels.models import (
    Approval,
    Downgrade,
    EvidenceBundle,
    FallNotice,
    NoticeAnswer,
    Objection,
    Promotion,
    WayBack,
)
from apps.platforms.models import NameChange, Participation, Repository, UpstreamFile
from apps.policies.selectors import policy_at
from apps.policies.services import change_draft, open_draft
from apps.quarantine.enums import ReasonClass, Source
from apps.quarantine.models import FlakeEvent, Progress, Reading, RuleVersion, Streak
from apps.quarantine.policy import HUB
from apps.quarantine.services import propose, put_in_force
from apps.quarantine.upstream_sync import Taken, take
from apps.quarantine.upstream_words import name_word
from apps.relay.models import CheckLook, Comparison, Delivery, DeliveryLog, Intent, MainPush, SeenCheck, UnreadLog
from tests.factories.jobs import acknowledgement, days_ago, job
from tests.factories.listing import TESTS, member_of, user
from tests.factories.policies import edited, policy_in_force
from tests.factories.reports import report
from tests.factories.tests import catalogued

FIRST, SECOND = "a1" * 20, "a2" * 20


def the_rest(repository: Repository, delivery: Delivery) -> None:
    """What upstream's file, a hub in shadow mode and the commit graph leave, and what a repository chose."""
    at = days_ago(2)
    UpstreamFile.objects.create(answered_at=at)
    Participation.objects.create(repository=repository, events=["pull_request", "push"], changed_at=at)
    NameChange.objects.create(
        repository=repository, old_name="acme/former", new_name=repository.full_name, seen_at=at, confirmed_at=now()
    )
    Intent.objects.create(delivery=delivery, repository=repository, created_at=at)
    Comparison.objects.create(delivery=delivery, compared_at=at)
    CheckLook.objects.create(sha=FIRST, looked_at=at)
    SeenCheck.objects.create(
        sha=FIRST, name="other/build", app_id=5, app_name="Other", github_id=6, status="in_progress", started_at=at
    )
    MainPush.objects.create(delivery=delivery, before=FIRST, after=SECOND, due_at=at)
    DeliveryLog.objects.create(pk=1, mode="active", begun_at=at, compared_to=at, compared_at=at)
    UnreadLog.objects.create(since=at, until=at, cursor="v1_1")
    PullRequest.objects.create(number=7, head_sha=FIRST, is_open=True, devices=["npu"], told_at=at)
    Round.objects.create(name="apps.core.tasks.drain_wakeups", since_at=at, tried_at=at, said="no answer")
    _flaky(repository)
    _gate(repository)
    policy_in_force(at, limits={"dwell_days": 4})
    _judged(repository)
    _falling(repository)
    _appealed(repository)
    _disabled_upstream()
    _rising(repository)


def _rising(repository: Repository) -> None:
    """What a promotion leaves: its evidence as it is frozen, an approval, an objection."""
    by, at = user(Role.MAINTAINER, username="rising"), now()
    made = Promotion.objects.create(
        repository=repository, target=3, device="npu", reason="ready", opened_by=by, opened_at=at, objections_until=at
    )
    content, _ = freeze(repository, target=3, items=(), now=at)
    bundle = EvidenceBundle.objects.create(
        promotion=made,
        number=1,
        sha256=hash_of(content),
        content=packed(content),
        bytes=1,
        policy_number=content["policy"]["number"],
        frozen_at=at,
    )
    said = {"promotion": made, "by": by, "at": at}
    Approval.objects.create(**said, bundle=bundle, revision=1, reason="it holds", event_seq=901)
    Objection.objects.create(**said, criterion="L3.rise.pass_rate", words="only one job", event_seq=902)


def _judged(repository: Repository) -> None:
    """What a night's evaluation and a waiver leave, and a draft of the policy."""
    by = user(Role.MAINTAINER, username="judging")
    evaluate_field(now=now())
    until = now() + datetime.timedelta(days=30)
    grant_waiver(
        repository=repository, criterion="L3.rise.tenure_days", reason="known", until_at=until, by=by, now=now()
    )
    draft = open_draft(title="A shorter queue", by=by, now=now())
    values = edited(policy_at(now()), L3_rise_avg_queue_seconds="1200", L4_rise_avg_queue_seconds="1200")
    change_draft(draft=draft, title=draft.title, values=values, expected_revision=1, now=now())


def _falling(repository: Repository) -> None:
    """A notice whose deadline has passed, with an answer; a temporary downgrade; a way back; a red job that an oncall
    acknowledged."""
    opened, by = days_ago(20), user(username="oncall")
    criterion = "L2.stay.silent_days"
    evaluation = NightlyEvaluation.objects.filter(repository=repository, use="stay").latest("day")
    rows = [row for row in evaluation.results if row["criterion"] == criterion]
    given = {"calendar": "DE", "deadline_at": days_ago(6)}
    notice = FallNotice.objects.create(
        repository=repository,
        level=2,
        criteria=[criterion],
        figures=[{"day": f"{opened:%Y-%m-%d}", "policy": 0, "results": rows}],
        way_back="Meets Days without an answer < 7 days, in 4 nights in a row.",
        dwell_days=4,
        policy_number=0,
        opened_at=opened,
        event_seq=3,
        **given,
    )
    NoticeAnswer.objects.create(
        notice=notice, by=by, by_label=by.username, text="New boards\nare on their way.", at=now()
    )
    Downgrade.objects.create(
        repository=repository,
        level_from=3,
        level_to=2,
        reason="It blocks what it should not.",
        by_label="ada",
        at=opened,
        event_seq=4,
        **given,
    )
    WayBack.objects.create(repository=repository, level=3, criteria=[criterion], since=opened, event_seq=5)
    acknowledgement(job(repository, "failure", job_name="test-red"), by, at=days_ago(2))


def _appealed(repository: Repository) -> None:
    """What an appeal that was overturned leaves, and one that is open."""
    by, decider = member_of(repository.platform), user(Role.MAINTAINER, username="deciding")
    appeals = [
        appeal_figure(
            figure=Figure(repository, "pass_rate", 14),
            said=Said("flake", "It passed before.", ["https://ci.example/run/1"], [red.public_id]),
            by=by,
            now=now(),
        )
        for red in (job(repository, "failure", at=days_ago(2), job_name=name) for name in ("open", "done"))
    ]
    decide_appeal(appeal=appeals[1], outcome=Outcome.OVERTURN, reason="A flake.", revision=1, by=decider, now=now())


def _gate(repository: Repository) -> None:
    """What the gate leaves."""
    at = days_ago(2)
    StoredVerdict.objects.create(
        sha=FIRST, pr_number=7, at=at, verdict="pass", requirements=[], inputs_hash="00" * 32, policy_number=0
    )
    Override.objects.create(
        pr_number=7, reason="known", by=user(), by_label="ada", from_at=at, until=now(), event_seq=1
    )
    KeptReplay.objects.create(repository=repository, days=14, made_at=at, said={})
    BreakerTrip.objects.create(
        repository=repository, kind="timeouts", why="It timed out.", policy_number=0, opened_at=at, event_seq=2
    )


def _flaky(repository: Repository) -> None:
    """What flaky tests leave."""
    at, test, platform = now(), catalogued("test_flaky"), repository.platform
    seen = report(repository, flaky=1)
    one = {"platform": platform, "variant": "default", "test": test}
    Reading.objects.create(report=seen, revision=1, red=0, turned=1, read_at=at)
    FlakeEvent.objects.create(
        **one, report=seen, kind="rerun", run_id="1", run_attempt=1, job_name="test", sha=FIRST, at=at
    )
    Streak.objects.create(**one, since=seen, last=seen, since_at=at, last_at=at)
    RuleVersion.objects.create(values=dataclasses.asdict(HUB), from_at=at, created_at=at, reason="first", by="tests")
    made = propose(
        platform=platform,
        variant="default",
        tests=[test.pk],
        source=Source.VENDOR,
        reason_class=ReasonClass.TIMING,
        reason="it races",
        owner="ada",
        actor=TESTS,
        now=at,
    )
    made = put_in_force(quarantine=made, revision=made.revision, is_bound=True, actor=TESTS, now=at)
    Progress.objects.create(
        quarantine=made,
        passes=1,
        passes_needed=20,
        reds=0,
        hours=1,
        hours_needed=168,
        missing="19 more",
        reckoned_at=at,
    )


def _disabled_upstream() -> None:
    """What upstream's own list leaves, with a word that nobody knows and one that somebody named."""
    issue = "https://github.com/pytorch/pytorch/issues/5"
    lines = {
        "test_a_cuda_float32 (__main__.TestFooCUDA)": ["5", issue, ["rocm", "somebodys"]],
        "test_b_cuda_float32 (__main__.TestFooCUDA)": ["6", issue, []],
        f"test_{'very_long_name_' * 9}cuda (__main__.TestFooCUDA)": ["", "", ["elsewhere"]],
    }
    taken = take(content=json.dumps(lines).encode(), source="https://example.com/list.json", actor=TESTS, now=now())
    assert isinstance(taken, Taken)
    name_word(word="elsewhere", platform=None, reason="not here", actor=TESTS, now=now())
