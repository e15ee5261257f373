"""The figures of a day in the tables."""

from django.contrib import admin

from apps.core.admin import ReadOnly, site
from apps.results.models import (
    Alias,
    DayFigures,
    InTreeSource,
    Reason,
    Removal,
    Report,
    SearchedTest,
    Test,
    Upload,
)


@admin.register(DayFigures, site=site)
class DayFiguresAdmin(ReadOnly):
    list_select_related = ("repository",)
    search_fields = ("repository__full_name",)


@admin.register(Report, site=site)
class ReportAdmin(ReadOnly):
    list_display = ("public_id", "state", "job_name", "variant", "wanted", "revision", "attempts", "received_at")
    list_filter = ("state",)
    search_fields = ("repository__full_name", "report_key")


@admin.register(Upload, site=site)
class UploadAdmin(ReadOnly):
    list_display = ("report_id", "shard", "bytes", "job_name", "verdict", "received_at")


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
