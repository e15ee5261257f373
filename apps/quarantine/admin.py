"""Flake evidence and quarantines in the tables."""

from django.contrib import admin

from apps.core.admin import ReadOnly, site
from apps.quarantine.models import FlakeEvent, Member, Quarantine, Reading, RuleVersion, Streak


@admin.register(Quarantine, site=site)
class QuarantineAdmin(ReadOnly):
    list_display = ("public_id", "platform", "variant", "state", "source", "owner", "tests", "expires_at")
    list_filter = ("state", "source", "reason_class")
    list_select_related = ("platform",)
    search_fields = ("pattern", "owner")


@admin.register(Member, site=site)
class MemberAdmin(ReadOnly):
    list_display = ("quarantine", "test", "is_open", "last_seen_at")
    list_filter = ("is_open",)
    list_select_related = ("quarantine__platform", "test")


@admin.register(FlakeEvent, site=site)
class FlakeEventAdmin(ReadOnly):
    list_display = ("test", "platform", "variant", "kind", "sha", "is_in_incident", "at")
    list_filter = ("kind", "is_in_incident")
    list_select_related = ("test", "platform")


@admin.register(Reading, site=site)
class ReadingAdmin(ReadOnly):
    list_display = ("report_id", "revision", "red", "turned", "usual", "is_incident", "read_at")
    list_filter = ("is_incident",)


@admin.register(Streak, site=site)
class StreakAdmin(ReadOnly):
    list_display = ("test", "platform", "variant", "runs", "commits", "since_at", "last_at", "is_raised")
    list_filter = ("is_raised",)
    list_select_related = ("test", "platform")


@admin.register(RuleVersion, site=site)
class RuleVersionAdmin(ReadOnly):
    list_display = ("from_at", "shipped", "by", "reason")
