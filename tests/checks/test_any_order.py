"""Webhooks, jobs, levels and failures in any order: what GitHub shows in the end is right."""

import itertools
import json
from typing import Any

import pytest
from django.conf import settings
from django.db.models import F
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from apps.checks import services
from apps.checks.models import Check
from apps.core import wakeups
from apps.core.clock import now
from apps.core.wakeups import wake
from apps.gate.selectors import part_of
from apps.platforms.models import Repository
from apps.relay.checknames import CONCLUSIONS
from apps.relay.enums import Bucket
from apps.relay.models import Dispatch, Job
from apps.relay.policy import WORST
from apps.relay.services import receive_delivery
from apps.relay.topics import JOB_FOR_CHECKS
from apps.simulator.standin import GitHubStandIn
from tests.checks.field import KESTREL, LABEL, settle
from tests.factories.jobs import job
from tests.factories.listing import listed
from tests.relay.downstream import PAYLOAD

_numbers = itertools.count(1)
NAMES = ("build", "test")
ENDS = ("success", "failure", "timed_out", "cancelled", "skipped")
STEPS = st.one_of(
    st.tuples(st.just("label"), st.booleans()),
    st.tuples(st.just("close_or_reopen"), st.none()),
    st.tuples(st.just("level_changes"), st.sampled_from([2, 3, 4])),
    st.tuples(st.just("job_begins"), st.sampled_from(NAMES)),
    st.tuples(st.just("job_ends"), st.tuples(st.sampled_from(ENDS), st.integers(0, 5))),
    st.tuples(st.just("github_fails"), st.tuples(st.sampled_from([502, 0, 429]), st.integers(1, 3))),
)


class Story:
    """One head of one pull request, one repository, two job names with up to three legs each."""

    def __init__(self, github: GitHubStandIn, level: int, labelled: bool) -> None:
        self.github = github
        self.number = next(_numbers)
        self.sha = f"{self.number:040x}"
        self.second, self.is_open, self.was_raised = 0, True, False
        self.labels = [LABEL] if labelled else []
        self.github.heal()
        self.level = level
        self.at_level(level)
        self.told("opened")

    def at_level(self, level: int) -> None:
        listed({KESTREL: (level, {"device": "npu"} if level == 3 else {})})
        Repository.objects.filter(full_name=KESTREL).update(device="npu")
        self.work()

    def told(self, action: str, **extra: Any) -> None:
        self.second += 1
        pull = {
            "number": self.number,
            "state": "open" if self.is_open else "closed",
            "head": {"sha": self.sha, "ref": "x"},
            "labels": [{"name": name} for name in self.labels],
            "updated_at": f"2026-11-30T14:{self.second // 60:02}:{self.second % 60:02}Z",
        }
        body = PAYLOAD | {"action": action, "number": self.number, "pull_request": pull} | extra
        delivery_id = f"story-{self.number}-{self.second}"
        receive_delivery(delivery_id=delivery_id, event="pull_request", body=body, raw=json.dumps(body), now=now())
        self.work()

    def work(self) -> None:
        while wakeups.drain():
            for pk in Check.objects.filter(state="pending").values_list("pk", flat=True):
                services.send_check(check_pk=pk, now=now())

    def jobs(self) -> list[Job]:
        return list(Job.objects.filter(head_sha=self.sha).order_by("pk"))

    def changed(self, about: Job) -> None:
        wake(JOB_FOR_CHECKS, [f"{about.pk}:{about.revision}"], now=now())
        self.work()

    def label(self, on: bool) -> None:
        self.labels = [LABEL] if on else []
        self.told("labeled" if on else "unlabeled", label={"name": LABEL})

    def close_or_reopen(self, _: None) -> None:
        self.is_open = not self.is_open
        self.told("reopened" if self.is_open else "closed")

    def level_changes(self, level: int) -> None:
        self.was_raised |= level > self.level
        self.level = level
        self.at_level(level)

    def job_begins(self, name: str) -> None:
        if len([one for one in self.jobs() if one.job_name == name]) < 3:
            sent = Dispatch.objects.filter(delivery__head_sha=self.sha).earliest("pk")
            fields: dict[str, Any] = {
                "delivery_id": sent.delivery.delivery_id,
                "head_sha": self.sha,
                "pr_number": self.number,
            }
            made = job(
                sent.repository, at=now(), dispatch=sent, job_name=name, leg=str(next(_numbers)), run_id="7", **fields
            )
            self.changed(made)

    def job_ends(self, how: tuple[str, int]) -> None:
        end, which = how
        running = [one for one in self.jobs() if one.status == "in_progress"]
        if running:
            about = running[which % len(running)]
            bucket = "neutral" if end == "skipped" else end
            Job.objects.filter(pk=about.pk).update(
                status="completed", conclusion=end, bucket=bucket, completed_at=now(), revision=F("revision") + 1
            )
            about.refresh_from_db()
            self.changed(about)

    def github_fails(self, how: tuple[int, int]) -> None:
        status, times = how
        self.github.fail("/check-runs", status=status, times=times)

    def at_most_one_of_a_name_is_open(self) -> None:
        still = [run["name"] for run in self.runs() if run["status"] != "completed"]
        assert len(still) == len(set(still))

    def runs(self) -> list[dict[str, Any]]:
        return [run for run in self.github.check_runs if run["head_sha"] == self.sha]

    def ends(self) -> None:
        self.github.heal()
        Check.objects.exclude(state="sent").update(next_attempt_at=now())
        for pk in Check.objects.exclude(state="sent").values_list("pk", flat=True):
            services.send_check(check_pk=pk, now=now())
        settle()
        newest = {run["name"]: run for run in self.runs()}
        rows = Check.objects.filter(head_sha=self.sha)
        assert {row.state for row in rows} <= {"sent"}
        assert {name: (run["status"], run["conclusion"] or "") for name, run in newest.items()} == {
            row.name: (row.status, row.conclusion) for row in rows
        }
        is_wished = self.level == 4 or (self.level == 3 and bool(self.labels))
        for name in NAMES:
            self.judge(name, newest.get(f"crcr/{KESTREL}/CI/{name}"), is_wished)

    def judge(self, name: str, run: dict[str, Any] | None, is_wished: bool) -> None:
        """Against a telling of the rules that shares no code with the hub's."""
        legs = [one.bucket for one in self.jobs() if one.job_name == name]
        if not legs:
            assert run is None
        elif not is_wished:
            assert run is None or run["status"] == "completed"
        elif self.is_open and not (run is None and self.was_raised and "in_progress" not in legs):
            assert run is not None
            expected = "in_progress" if "in_progress" in legs else CONCLUSIONS[Bucket(min(legs, key=WORST.index))]
            shows = run["conclusion"] or run["status"]
            assert shows in self.at_l4(expected) if self.level == 4 else shows == expected

    def at_l4(self, own: str) -> set[str]:
        """What it may show of its own jobs, given what the gate says of its repository's part of the commit."""
        repository = Repository.objects.get(full_name=KESTREL)
        part = part_of(repository, sha=self.sha, pr_number=self.number, at=now())
        assert part is not None
        is_red = own in ("failure", "timed_out", "cancelled")
        return {
            "blocks": {own if is_red else "failure"},
            "waits": {own if is_red else "in_progress"},
            "passes": {"success", "neutral"},
        }[part.effect]


@pytest.mark.django_db
def test_whatever_happens_in_whatever_order(github: GitHubStandIn) -> None:
    for name in (settings.UPSTREAM_REPO, KESTREL):
        github.add_repository(name)

    # A story that fails is told as it is: making it shorter takes minutes.
    plain = hypothesis_settings(
        max_examples=12, suppress_health_check=list(HealthCheck), database=None, phases=[Phase.generate]
    )

    @plain
    @given(st.sampled_from([2, 3, 4]), st.booleans(), st.lists(STEPS, min_size=6, max_size=12))
    def tell(level: int, labelled: bool, steps: list[tuple[str, Any]]) -> None:
        story = Story(github, level, labelled)
        for verb, how in [("job_begins", "build"), *steps]:
            getattr(story, verb)(how)
            story.at_most_one_of_a_name_is_open()
        story.ends()

    tell()
