"""The figures of a day in the tables."""

from django.contrib import admin

from apps.core.admin import ReadOnly, site
from apps.results.models import DayFigures


@admin.register(DayFigures, site=site)
class DayFiguresAdmin(ReadOnly):
    list_select_related = ("repository",)
    search_fields = ("repository__full_name",)
