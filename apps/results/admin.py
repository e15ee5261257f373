"""Figures, reports and names in the tables. What came below L2 stays its vendor's."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from apps.core.admin import ReadOnly, site
from apps.platforms.models import Platform
from apps.platforms.policy import PUBLIC_FROM
from apps.results.models import (
    Alias,
    DayFigures,
    Exclusion,
    InTreeSource,
    Reason,
    Removal,
    Report,
    SearchedTest,
    Test,
    Upload,
)
from apps.results.report_selectors import PUBLIC


@admin.register(DayFigures, site=site)
class DayFiguresAdmin(ReadOnly):
    list_select_related = ("repository",)
    search_fields = ("repository__full_name",)


@admin.register(Report, site=site)
class ReportAdmin(ReadOnly):
    list_display = ("public_id", "state", "job_name", "variant", "wanted", "revision", "attempts", "received_at")
    list_filter = ("state",)
    search_fields = ("repository__full_name", "report_key")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(PUBLIC)


@admin.register(Upload, site=site)
class UploadAdmin(ReadOnly):
    list_display = ("report_id", "shard", "bytes", "job_name", "verdict", "received_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(report__in=Report.objects.filter(PUBLIC))


@admin.register(InTreeSource, site=site)
class InTreeSourceAdmin(ReadOnly):
    list_select_related = ("platform",)
    list_display = ("platform", "workflow", "ref", "added_at", "removed_at")


@admin.register(Removal, site=site)
class RemovalAdmin(ReadOnly):
    list_display = ("report_id", "reason", "actor_label", "removed_at")


@admin.register(Test, site=site)
class TestAdmin(ReadOnly):
    list_display = ("id", "file", "class_name", "name")


@admin.register(Reason, site=site)
class ReasonAdmin(ReadOnly):
    list_display = ("id", "text")


@admin.register(SearchedTest, site=site)
class SearchedTestAdmin(ReadOnly):
    list_display = ("test_id", "words")


@admin.register(Alias, site=site)
class AliasAdmin(ReadOnly):
    list_display = ("old", "new", "by", "reason", "created_at")
    list_select_related = ("old", "new")


@admin.register(Exclusion, site=site)
class ExclusionAdmin(ReadOnly):
    list_display = ("platform", "variant", "test", "pattern", "source", "from_at", "until_at")
    list_filter = ("source",)
    list_select_related = ("platform", "test")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        public = Q(platform__kind=Platform.Kind.IN_TREE) | Q(platform__repositories__level__gte=PUBLIC_FROM)
        return super().get_queryset(request).filter(public).distinct()
