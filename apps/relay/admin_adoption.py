"""A hub beside today's relay, in the tables. What a relay posted may be private: the bodies are not here."""

from django.contrib import admin

from apps.core.admin import ReadOnly, site
from apps.relay.models import CheckLook, Comparison, Difference, Forward, Intent, SeenCheck


@admin.register(Forward, site=site)
class ForwardAdmin(ReadOnly):
    list_display = ("repository_name", "delivery_id", "answer", "state", "attempts", "received_at", "error")
    list_filter = ("state", "answer")
    search_fields = ("repository_name", "delivery_id")
    ordering = ("-received_at", "-pk")
    exclude = ("body",)


@admin.register(Intent, site=site)
class IntentAdmin(ReadOnly):
    list_display = ("delivery", "repository", "created_at")
    list_select_related = ("delivery", "repository")
    search_fields = ("delivery__delivery_id", "repository__full_name")
    ordering = ("-created_at", "-pk")


@admin.register(Comparison, site=site)
class ComparisonAdmin(ReadOnly):
    list_display = ("delivery", "compared_at")
    list_select_related = ("delivery",)
    search_fields = ("delivery__delivery_id",)


@admin.register(Difference, site=site)
class DifferenceAdmin(ReadOnly):
    list_display = ("kind", "delivery_id", "repository", "name", "ours", "theirs", "found_at")
    list_filter = ("kind",)
    list_select_related = ("repository",)
    search_fields = ("delivery_id", "repository__full_name", "name")
    ordering = ("-found_at", "-pk")


@admin.register(CheckLook, site=site)
class CheckLookAdmin(ReadOnly):
    list_display = ("sha", "looked_at", "error")
    search_fields = ("sha",)


@admin.register(SeenCheck, site=site)
class SeenCheckAdmin(ReadOnly):
    list_display = ("name", "sha", "app_name", "app_id", "status", "conclusion", "started_at")
    search_fields = ("name", "sha", "app_name")
    ordering = ("-started_at", "-pk")
