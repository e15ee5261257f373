"""Jobs, for programs."""

from typing import Any

from django.conf import settings
from django.urls import reverse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.cursors import listed, read_filters
from apps.core.permissions import Open
from apps.core.sheets import SheetView
from apps.relay import selectors
from apps.relay.forms import JobForm
from apps.relay.models import Job

FIGURES = ("identity", "timing", "conclusion", "counts")


class JobOut(serializers.Serializer[Any]):
    """A job. `conclusion` and times are null while they are not known; seconds are by the hub's clock; `bucket` is
    where it counts; `superseded_by` is `attempt` where a later attempt took its place, `push` where a newer push
    cancelled it; `trust` says how far each of its figures can be trusted; `url` is its page here."""

    id = serializers.UUIDField(source="public_id")
    repository = serializers.CharField(source="repository.full_name")
    delivery_id = serializers.CharField()
    event = serializers.CharField(source="event_type")
    run_id = serializers.CharField()
    run_attempt = serializers.IntegerField()
    workflow = serializers.CharField()
    job_name = serializers.CharField()
    check_run_id = serializers.CharField()
    leg = serializers.CharField()
    status = serializers.CharField()
    conclusion = serializers.SerializerMethodField()
    bucket = serializers.CharField(source="counts_as")
    flags = serializers.ListField(child=serializers.CharField())
    trust = serializers.SerializerMethodField()
    reported_started_at = serializers.DateTimeField()
    reported_completed_at = serializers.DateTimeField()
    first_seen_at = serializers.DateTimeField()
    completed_at = serializers.DateTimeField()
    queue_seconds = serializers.FloatField()
    execution_seconds = serializers.FloatField()
    superseded = serializers.SerializerMethodField()
    superseded_by = serializers.CharField()
    url = serializers.SerializerMethodField()

    def get_conclusion(self, job: Job) -> str | None:
        return job.conclusion or None

    def get_superseded(self, job: Job) -> bool:
        return job.superseded_by is not None  # type: ignore[attr-defined]

    def get_trust(self, job: Job) -> dict[str, str]:
        return {name: job.trust[name] for name in FIGURES}

    def get_url(self, job: Job) -> str:
        return settings.BASE_URL + reverse("public:job", args=[job.public_id])


class JobList(SheetView):
    """`GET /api/v1/jobs/?repository=&delivery=&run_id=&pr=&event=&cursor=&limit=&format=`: jobs of repositories that
    are no probes, newest first; each filter is a whole name or number.

    200 `{"next", "previous", "results": [...]}`, each as JobOut says. What was reported at L1 never becomes a job: it
    is not here for anybody. 400 `malformed` names the filter that cannot be read.
    """

    access = Open.PUBLIC
    columns = (
        *("id", "repository", "delivery_id", "event", "run_id", "run_attempt", "workflow", "job_name", "check_run_id"),
        *("leg", "status", "conclusion", "bucket", "flags", *(f"trust.{figure}" for figure in FIGURES)),
        *("reported_started_at", "reported_completed_at", "first_seen_at", "completed_at"),
        *("queue_seconds", "execution_seconds", "superseded", "superseded_by", "url"),
    )

    def get(self, request: Request) -> Response:
        form = JobForm(request.query_params)
        read_filters(form)
        return listed(request, selectors.jobs_found(form.filters()), JobOut)
