"""A row in each table that no page of a small hub fills."""

from apps.checks.models import PullRequest
from apps.core.clock import now
from apps.platforms.models import NameChange, Participation, Repository, UpstreamFile
from apps.relay.models import CheckLook, Comparison, Delivery, DeliveryLog, Intent, MainPush, SeenCheck, UnreadLog
from tests.factories.jobs import days_ago

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
