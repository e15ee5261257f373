"""Flake evidence and quarantines in the tables. What came below L2 stays its vendor's."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.core.admin import ReadOnly, site
from apps.quarantine.models import (
    FlakeEvent,
    Member,
    Progress,
    Quarantine,
    Reading,
    RuleVersion,
    Streak,
    UpstreamDisabled,
    UpstreamList,
    UpstreamWord,
)
from apps.quarantine.selectors import visible_to
from apps.results.models import Report
from apps.results.report_selectors import PUBLIC


class OfPublic(ReadOnly):
    """Rows that stand on a public report (`on_report`) or on a quarantine that anyone may see (`on_quarantine`)."""

    on_report = ""
    on_quarantine = ""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        found = super().get_queryset(request)
        if self.on_report:
            return found.filter(**{f"{self.on_report}__in": Report.objects.filter(PUBLIC)})
        return found.filter(**{f"{self.on_quarantine}__in": Quarantine.objects.filter(visible_to(AnonymousUser()))})


@admin.register(Quarantine, site=site)
class QuarantineAdmin(OfPublic):
    on_quarantine = "pk"
    list_display = ("public_id", "platform", "variant", "state", "source", "owner", "tests", "expires_at")
    list_filter = ("state", "source", "reason_class")
    list_select_related = ("platform",)
    search_fields = ("pattern", "owner")


@admin.register(Member, site=site)
class MemberAdmin(OfPublic):
    on_quarantine = "quarantine"
    list_display = ("quarantine", "test", "is_open", "last_seen_at")
    list_filter = ("is_open",)
    list_select_related = ("quarantine__platform", "test")


@admin.register(Progress, site=site)
class ProgressAdmin(OfPublic):
    on_quarantine = "quarantine"
    list_display = ("quarantine", "passes", "passes_needed", "reds", "hours", "missing", "last_run_at", "reckoned_at")
    list_select_related = ("quarantine__platform",)


@admin.register(FlakeEvent, site=site)
class FlakeEventAdmin(OfPublic):
    on_report = "report"
    list_display = ("test", "platform", "variant", "kind", "sha", "is_in_incident", "at")
    list_filter = ("kind", "is_in_incident")
    list_select_related = ("test", "platform")


@admin.register(Reading, site=site)
class ReadingAdmin(OfPublic):
    on_report = "report"
    list_display = ("report_id", "revision", "red", "turned", "usual", "is_incident", "read_at")
    list_filter = ("is_incident",)


@admin.register(Streak, site=site)
class StreakAdmin(OfPublic):
    on_report = "last"
    list_display = ("test", "platform", "variant", "runs", "commits", "since_at", "last_at", "is_raised")
    list_filter = ("is_raised",)
    list_select_related = ("test", "platform")


@admin.register(UpstreamList, site=site)
class UpstreamListAdmin(ReadOnly):
    list_display = ("source", "taken_at", "answered_at", "alarm", "alarm_at", "left_out")


@admin.register(UpstreamDisabled, site=site)
class UpstreamDisabledAdmin(ReadOnly):
    list_display = ("said", "issue", "words")
    search_fields = ("said",)


@admin.register(UpstreamWord, site=site)
class UpstreamWordAdmin(ReadOnly):
    list_display = ("word", "platform", "by", "at")
    list_select_related = ("platform",)


@admin.register(RuleVersion, site=site)
class RuleVersionAdmin(ReadOnly):
    list_display = ("from_at", "shipped", "by", "reason")
