"""The protocol's rows in the tables. Private callbacks are their platform's members' alone, so they are not here."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.core.admin import ReadOnly, site
from apps.relay import admin_adoption, admin_upstream
from apps.relay.models import (
    Acknowledgement,
    Callback,
    CommitLookup,
    DeclaredOutcome,
    Delivery,
    Dispatch,
    Job,
    Omission,
    Rejection,
    TimeLimit,
)

# Django looks for tables here; these two files hold more of them.
__all__ = ["admin_adoption", "admin_upstream"]


@admin.register(Delivery, site=site)
class DeliveryAdmin(ReadOnly):
    list_display = ("delivery_id", "event", "action", "state", "received_at", "pr_number")
    list_filter = ("state", "event")
    search_fields = ("delivery_id", "head_sha")
    ordering = ("-received_at",)


@admin.register(Dispatch, site=site)
class DispatchAdmin(ReadOnly):
    list_display = ("delivery", "repository", "state", "attempts", "changed_at", "error")
    list_filter = ("state",)
    list_select_related = ("delivery", "repository")
    search_fields = ("delivery__delivery_id", "repository__full_name")
    ordering = ("-created_at", "-pk")


@admin.register(Job, site=site)
class JobAdmin(ReadOnly):
    list_display = ("repository", "workflow", "job_name", "run_id", "run_attempt", "bucket", "first_seen_at")
    list_filter = ("status", "bucket", "event_type")
    list_select_related = ("repository",)
    search_fields = ("repository__full_name", "delivery_id", "run_id")
    ordering = ("-first_seen_at", "-pk")


@admin.register(Callback, site=site)
class CallbackAdmin(ReadOnly):
    list_display = ("repository", "job", "answer", "received_at")
    list_filter = ("answer",)
    list_select_related = ("repository", "job__repository")
    search_fields = ("repository__full_name", "job__run_id")
    ordering = ("-received_at", "-pk")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(job__isnull=False)


@admin.register(Rejection, site=site)
class RejectionAdmin(ReadOnly):
    list_display = ("code", "reason", "repository_claim", "repository", "count", "first_seen", "last_seen")
    list_filter = ("code",)
    list_select_related = ("repository",)
    search_fields = ("repository_claim", "repository__full_name", "reason")


@admin.register(TimeLimit, site=site)
class TimeLimitAdmin(ReadOnly):
    list_display = ("repository", "job_name", "seconds", "declared_at")
    list_select_related = ("repository",)
    search_fields = ("repository__full_name", "job_name")


@admin.register(DeclaredOutcome, site=site)
class DeclaredOutcomeAdmin(ReadOnly):
    list_display = ("repository", "workflow", "job_name", "outcome", "starts_at", "ends_at", "withdrawn_at")
    list_select_related = ("repository",)
    search_fields = ("repository__full_name", "job_name")


@admin.register(CommitLookup, site=site)
class CommitLookupAdmin(ReadOnly):
    list_display = ("sha", "is_known", "looked_up_at")
    list_filter = ("is_known",)
    search_fields = ("sha",)


@admin.register(Omission, site=site)
class OmissionAdmin(ReadOnly):
    list_display = ("delivery", "repository", "rule", "sentence")
    list_filter = ("rule",)
    list_select_related = ("delivery", "repository")
    search_fields = ("delivery__delivery_id", "repository__full_name")
    ordering = ("-pk",)


@admin.register(Acknowledgement, site=site)
class AcknowledgementAdmin(ReadOnly):
    list_display = ("job", "by_label", "at", "expected_at", "reason")
    list_select_related = ("job__repository",)
    search_fields = ("job__repository__full_name", "by_label")
