"""The figures of a day in the tables."""

from django.contrib import admin

from apps.core.admin import ReadOnly, site
from apps.results.models import Alias, DayFigures, Reason, SearchedTest, Test


@admin.register(DayFigures, site=site)
class DayFiguresAdmin(ReadOnly):
    list_select_related = ("repository",)
    search_fields = ("repository__full_name",)


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
