"""Rows that pages read, made with the ORM: what the callback path itself does is tested in tests/relay."""

import datetime
import hashlib
import itertools
from typing import Any

from apps.accounts.models import User
from apps.platforms.models import Repository
from apps.relay.enums import Answer, Bucket, DeliveryState, DispatchState, JobStatus
from apps.relay.models import Acknowledgement, Callback, Delivery, Dispatch, Job, Rejection
from apps.relay.policy import BUCKETS

_numbers = itertools.count(1)


def days_ago(days: int) -> datetime.datetime:
    """A time that pages write as `<days> d ago` (from two days on), however long the test takes."""
    return datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=days, hours=1)


def job(repository: Repository, conclusion: str = "", *, at: datetime.datetime | None = None, **fields: Any) -> Job:
    """A job first seen at `at` (default: three days ago): in progress, or ended with a conclusion ten minutes later."""
    at = at or days_ago(3)
    end = at + datetime.timedelta(minutes=10)
    ended = {"status": JobStatus.COMPLETED, "bucket": BUCKETS[conclusion], "completed_at": end} if conclusion else {}
    values = {
        "delivery_id": "delivery-1",
        "event_type": "pull_request",
        "run_id": str(next(_numbers)),
        "run_attempt": 1,
        "workflow": "CI",
        "job_name": "test-ops",
        "status": JobStatus.IN_PROGRESS,
        "conclusion": conclusion,
        "bucket": Bucket.IN_PROGRESS,
        "first_seen_at": at,
        "start_seen_at": at,
    }
    return Job.objects.create(repository=repository, **(values | ended | fields))


def dispatch(repository: Repository, *, at: datetime.datetime | None = None, **delivery: Any) -> Dispatch:
    """A delivery that was sent to a repository."""
    at = at or days_ago(3)
    number = next(_numbers)
    sent = Delivery.objects.create(
        **{"delivery_id": f"delivery-{number}", "event": "pull_request", "state": DeliveryState.FANNED_OUT}
        | {"received_at": at, "pr_number": 1000 + number, "head_sha": f"{number:040x}"}
        | delivery
    )
    return Dispatch.objects.create(
        delivery=sent,
        repository=repository,
        state=DispatchState.SENT,
        attempts=1,
        created_at=at,
        changed_at=at,
        sent_at=at,
    )


def callback(
    about: Job | Repository,
    *,
    answer: Answer | None = None,
    at: datetime.datetime | None = None,
    claims: dict[str, str] | None = None,
    **report: Any,
) -> Callback:
    """A callback kept of a job, or a private one of a repository."""
    job_of_it = about if isinstance(about, Job) else None
    said = {"status": "completed", "conclusion": "success", "workflow": "CI", "job_name": "test-ops"}
    return Callback.objects.create(
        repository=about.repository if isinstance(about, Job) else about,
        job=job_of_it,
        received_at=at or days_ago(3),
        answer=answer or (Answer.APPLIED if job_of_it else Answer.IGNORED),
        report=said | {"run_id": "7", "run_attempt": 1, "delivery_id": "delivery-1"} | report,
        claims=claims or {},
        body_digest=hashlib.sha256(str(next(_numbers)).encode()).hexdigest(),
    )


def acknowledgement(about: Job, by: User, *, at: datetime.datetime, **fields: Any) -> Acknowledgement:
    """What an oncall said of a red job."""
    said = {"reason": "the driver", "expected_at": at + datetime.timedelta(hours=1), "by_label": by.username}
    return Acknowledgement.objects.create(job=about, by=by, at=at, **(said | fields))


def rejection(repository: Repository | None = None, **fields: Any) -> Rejection:
    """A counted refusal: of a repository's callback, or of a caller that proved nothing."""
    at = days_ago(3)
    values: dict[str, Any] = {"code": "token_invalid", "reason": f"reason {next(_numbers)}"}
    if repository:
        values |= {
            "issuer": "https://token.actions.githubusercontent.com",
            "repository_claim": repository.full_name,
            "repository_id_claim": "501",
            "owner_id_claim": "401",
        }
    return Rejection.objects.create(
        repository=repository, **(values | {"first_seen": days_ago(5), "last_seen": at} | fields)
    )
