"""Check runs in the tables. They are sent again on their own page, where the log hears of it."""

from django.contrib import admin

from apps.checks.models import Check, PullRequest, Rerun
from apps.core.admin import ReadOnly, site


@admin.register(PullRequest, site=site)
class PullRequestAdmin(ReadOnly):
    list_display = ("number", "head_sha", "is_open", "devices", "told_at")
    list_filter = ("is_open",)
    search_fields = ("head_sha",)
    ordering = ("-told_at", "-pk")


@admin.register(Check, site=site)
class CheckAdmin(ReadOnly):
    list_display = ("name", "head_sha", "repository", "status", "conclusion", "state", "attempts", "changed_at")
    list_filter = ("state", "status", "conclusion")
    list_select_related = ("repository",)
    search_fields = ("name", "head_sha", "repository__full_name")
    ordering = ("-changed_at", "-pk")


@admin.register(Rerun, site=site)
class RerunAdmin(ReadOnly):
    list_display = ("repository", "run_id", "scope", "state", "requested_by", "created_at", "error")
    list_filter = ("state", "scope")
    list_select_related = ("repository",)
    search_fields = ("repository__full_name", "run_id")
    ordering = ("-created_at", "-pk")
