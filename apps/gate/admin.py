"""What the gate said, overrides and trips of the breaker in the tables."""

from django.contrib import admin

from apps.core.admin import ReadOnly, site
from apps.gate.models import BreakerTrip, Override, StoredVerdict


@admin.register(StoredVerdict, site=site)
class StoredVerdictAdmin(ReadOnly):
    list_display = ("sha", "pr_number", "at", "verdict", "policy_number")
    list_filter = ("verdict",)
    search_fields = ("sha", "pr_number")


@admin.register(Override, site=site)
class OverrideAdmin(ReadOnly):
    list_display = ("pr_number", "repository", "by_label", "from_at", "until", "withdrawn_at")
    list_select_related = ("repository",)
    search_fields = ("pr_number",)


@admin.register(BreakerTrip, site=site)
class BreakerTripAdmin(ReadOnly):
    list_display = ("repository", "kind", "opened_at", "closed_at", "closed_by")
    list_filter = ("kind", "closed_by")
    list_select_related = ("repository",)
