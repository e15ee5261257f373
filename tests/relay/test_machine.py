"""Deliveries, callbacks, sweeps, changes of level and failures in any order: what must hold whatever happens."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Count
from django.test import Client
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from apps.core.clock import now
from apps.relay import limits, outbox, services
from apps.relay.enums import DeliveryState, DispatchState
from apps.relay.lookups import close_silent, due_runs, look_up_run, silent_runs
from apps.relay.models import Callback, Delivery, Dispatch, Job
from apps.relay.policy import STATE_KEPT
from apps.relay.selectors import with_superseded
from apps.results.models import DayFigures
from apps.results.services import recount
from apps.simulator.standin import GitHubStandIn
from tests.factories.figures import counted
from tests.factories.listing import listed
from tests.relay.downstream import PAYLOAD, Downstream, send_webhook

Make = Callable[..., Downstream]
NAMES = ("kestrel-demo/torch-kestrel", "fen-demo/torch-fen")
IDENTITY = ("repository", "delivery_id", "run_id", "run_attempt", "workflow", "job_name", "leg")
REFUSALS = {"never_dispatched", "completion_conflict", "token_reused", "dispatch_token_wrong", "malformed"}

conclusions = st.sampled_from(["success", "success", "failure", "cancelled", "timed_out"])
# Few names, so that callbacks meet.
workflows = st.fixed_dictionaries(
    {
        "job_name": st.sampled_from(["build", "build", "test"]),
        "check_run_id": st.sampled_from(["1", "1", "2", None]),
        "run_attempt": st.sampled_from(["1", "1", "1", "2"]),
    },
    optional={
        "conclusion": conclusions,
        "leg": st.just("cuda"),
        "test_results": st.sampled_from([{"passed": 3, "failed": 0, "skipped": 0}, {"passed": 1, "failed": 1}]),
    },
)
# Downstream, delivery, workflow, and which token it echoes.
callbacks = st.tuples(
    st.integers(0, 1), st.sampled_from([1, 1, 1, 2, 3]), workflows, st.sampled_from(["", "right", "right", "wrong"])
)


class Relay(RuleBasedStateMachine):
    """One hub with two downstreams. What it remembers is what answers promised."""

    def __init__(self, github: GitHubStandIn, client: Client, make: Make) -> None:
        super().__init__()
        self.github, self.client = github, client
        self.downstreams = [make(name, repository_id=n, owner_id=n) for n, name in enumerate(NAMES, 1)]
        self.levels = dict.fromkeys(NAMES, 2)
        self.numbers = itertools.count(1)
        self.said: list[tuple[Downstream, dict[str, Any], str, int]] = []
        # By job: the conclusion and counts that its first real end gave it.
        self.ends: dict[str, tuple[Any, ...]] = {}

    # --- upstream, GitHub and the hub's own people ----------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.github.heal()
        listed(self.levels)  # type: ignore[arg-type]
        self.deliver(True)

    def teardown(self) -> None:
        if hasattr(self, "atomic"):
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)

    @rule(is_fanned_out=st.booleans())
    @precondition(lambda self: Delivery.objects.count() < 2)
    def deliver(self, is_fanned_out: bool) -> None:
        number = Delivery.objects.count() + 1
        for expected in (202, 200):  # GitHub may send it again
            assert send_webhook(self.client, PAYLOAD, delivery_id=f"d-{number}").status_code == expected
        if is_fanned_out:
            self.fan_out()

    @rule()
    def fan_out(self) -> None:
        for pk in Delivery.objects.filter(state=DeliveryState.RECEIVED).values_list("pk", flat=True):
            services.fan_out(delivery_pk=pk, now=now())

    @rule()
    def send(self) -> None:
        moment = now() + STATE_KEPT
        for pk in Dispatch.objects.filter(state=DispatchState.PENDING).values_list("pk", flat=True):
            outbox.send_dispatch(dispatch_pk=pk, now=moment, chance=0)

    @rule(path=st.sampled_from(["/dispatches$", "/attempts/"]), status=st.sampled_from([0, 403, 404, 500]))
    def fail(self, path: str, status: int) -> None:
        self.github.fail(path, status=status)

    @rule(name=st.sampled_from(NAMES), level=st.sampled_from([1, 2, 2, 3, 4]))
    def change_level(self, name: str, level: int) -> None:
        self.levels[name] = level
        listed(self.levels)  # type: ignore[arg-type]

    # --- downstreams ----------------------------------------------------------------------------------------------

    @rule(told=st.lists(callbacks, min_size=1, max_size=6))
    def call_back(self, told: list[tuple[int, int, dict[str, Any], str]]) -> None:
        for downstream, delivery, workflow, echo in told:
            made = self.downstreams[downstream]
            body = made.body(f"d-{delivery}", **workflow)
            sent = [d.client_payload for d in self.github.dispatches if d.repository == made.full_name]
            mine = [payload for payload in sent if payload["delivery_id"] == body["delivery_id"]]
            if echo and mine:
                body |= {"dispatch_token": mine[-1]["dispatch_token"] if echo == "right" else "wrong"}
            self._post(made, body, made.token(run_attempt=workflow["run_attempt"]))

    @rule(number=st.integers(0, 1_000), conclusion=conclusions)
    @precondition(lambda self: Job.objects.filter(status="in_progress").exists())
    def lower_and_end(self, number: int, conclusion: str) -> None:
        running = Job.objects.filter(status="in_progress").order_by("pk")
        job = running[number % len(running)]
        made = next(one for one in self.downstreams if one.full_name == job.repository.full_name)
        self.levels[made.full_name] = 1
        listed(self.levels)  # type: ignore[arg-type]
        leg = {"leg": job.leg} if job.leg == "cuda" else {}
        workflow = {"job_name": job.job_name, "check_run_id": job.check_run_id or None, "run_attempt": job.run_attempt}
        body = made.body(job.delivery_id, conclusion=conclusion, **workflow, **leg)
        self._post(made, body, made.token(run_attempt=str(job.run_attempt)))
        job.refresh_from_db()
        assert (job.status, job.conclusion) == ("completed", conclusion)

    @rule(number=st.integers(0, 1_000))
    @precondition(lambda self: self.said)
    def say_it_again(self, number: int) -> None:
        made, body, token, status = self.said[number % len(self.said)]
        before = self._rows()
        answer = made.post(body, token=token)
        assert answer.status_code == status
        assert answer.json().get("status") in {"duplicate", "ignored", 409}
        assert self._rows() == before

    @rule(number=st.integers(0, 1_000), name=st.sampled_from(["build", "test", "third"]))
    @precondition(lambda self: self.said)
    def use_a_token_for_another_body(self, number: int, name: str) -> None:
        made, body, token, _ = self.said[number % len(self.said)]
        other = body | {"workflow": body["workflow"] | {"job_name": name, "artifact_url": "https://example.org/"}}
        before = self._rows()
        assert made.post(other, token=token).json()["code"] == "token_reused"
        assert self._rows() == before

    def _post(self, made: Downstream, body: dict[str, Any], token: str) -> None:
        jobs_before = Job.objects.count()
        response = made.post(body, token=token)
        answer, workflow = response.json(), body["workflow"]
        assert response.status_code in {200, 400, 403, 409}
        if response.status_code == 400 or response.status_code == 403 or answer.get("code") == "token_reused":
            assert answer["code"] in REFUSALS
            assert Job.objects.count() == jobs_before
            return
        if Callback.objects.filter(claims__jti=_jti(token)).exists():
            self.said.append((made, body, token, response.status_code))
        if self.levels[made.full_name] < 2:  # what began before it was lowered goes on; nothing begins
            assert ("job" not in answer, Job.objects.count()) == (answer.get("status") == "ignored", jobs_before)
        if answer.get("status") == "applied" and workflow["conclusion"]:
            # A job has one real end.
            assert answer["job"] not in self.ends
            job = Job.objects.get(public_id=answer["job"].rstrip("/").rsplit("/", 1)[1])
            assert job.conclusion == workflow["conclusion"]
            self.ends[answer["job"]] = _end_of(job)

    # --- the hub's own work ---------------------------------------------------------------------------------------

    @rule(
        downstream=st.integers(0, 1), check_run=st.sampled_from("123"), conclusion=st.one_of(st.just(""), conclusions)
    )
    def run_on_github(self, downstream: int, check_run: str, conclusion: str) -> None:
        made = self.downstreams[downstream]
        for attempt in (1, 2):
            self.github.record_job(
                made.full_name,
                run_id=made.run_id,
                run_attempt=attempt,
                name="build",
                check_run_id=check_run,
                conclusion=conclusion,
            )

    @rule()
    def sweep_dispatches(self) -> None:
        outbox.sweep(now=now() + STATE_KEPT)

    @rule()
    def sweep_silent_jobs(self) -> None:
        moment = now() + STATE_KEPT
        for run, pks in silent_runs(now=moment).items():
            close_silent(run=run, job_pks=pks, now=moment)
        assert not Job.objects.filter(status="in_progress").exists()

    @rule()
    def look_up(self) -> None:
        moment = now() + STATE_KEPT
        for run in due_runs(now=moment):
            look_up_run(run=run, now=moment)

    # --- what must hold -------------------------------------------------------------------------------------------

    @invariant()
    def every_identity_is_one_row(self) -> None:
        assert not Job.objects.values(*IDENTITY).annotate(rows=Count("pk")).filter(rows__gt=1).exists()
        assert not Callback.objects.values("token_id").annotate(rows=Count("pk")).filter(rows__gt=1).exists()

    @invariant()
    def a_final_state_stands_unless_it_was_inferred(self) -> None:
        jobs = {str(job.public_id): job for job in Job.objects.all()}
        for address, end in self.ends.items():
            job = jobs[address.rstrip("/").rsplit("/", 1)[1]]
            assert (_end_of(job), job.is_inferred) == (end, False)
        told = {address.rstrip("/").rsplit("/", 1)[1] for address in self.ends}
        assert all(job.is_inferred for pk, job in jobs.items() if job.status == "completed" and pk not in told)

    @invariant()
    def what_is_contradicted_is_never_green(self) -> None:
        for job in Job.objects.filter(bucket="success"):
            assert (job.conclusion, job.failed or 0, job.verdict == "contradicted") == ("success", 0, False)

    @invariant()
    def every_job_was_asked_for_by_the_hub(self) -> None:
        for job in Job.objects.select_related("dispatch__delivery"):
            assert job.dispatch is not None
            assert job.dispatch.attempts > 0
            assert (job.dispatch.repository_id, job.dispatch.delivery.delivery_id) == (
                job.repository_id,
                job.delivery_id,
            )

    @invariant()
    def the_buckets_sum_to_the_total(self) -> None:
        recount(days=2, now=now())
        assert sum(counted(row).rows for row in DayFigures.objects.all()) == Job.objects.count()
        superseded = sum(job.is_superseded for job in with_superseded(Job.objects.all()))  # type: ignore[attr-defined]
        assert sum(row.superseded for row in DayFigures.objects.all()) == superseded

    def _rows(self) -> list[Any]:
        return [*Job.objects.order_by("pk").values(), *Callback.objects.order_by("pk").values()]


def _end_of(job: Job) -> tuple[Any, ...]:
    return job.status, job.conclusion, job.passed, job.failed, job.skipped, job.total


def _jti(token: str) -> str:
    import jwt

    return str(jwt.decode(token, options={"verify_signature": False})["jti"])


@pytest.mark.django_db
def test_whatever_happens_in_whatever_order(
    github: GitHubStandIn, client: Client, downstream: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LIMIT", dataclasses.replace(limits.LIMIT, per_minute=1_000_000))
    run_state_machine_as_test(
        lambda: Relay(github, client, downstream),  # type: ignore[arg-type]
        settings=settings(
            max_examples=12,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.reuse, Phase.generate],
        ),
    )
