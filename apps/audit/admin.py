"""The log in the tables: every event, also those that are no public decisions."""

from django.contrib import admin

from apps.audit.models import Event
from apps.core.admin import ReadOnly, site


@admin.register(Event, site=site)
class EventAdmin(ReadOnly):
    list_display = ("seq", "at", "action", "subject_label", "actor_label", "is_decision")
    list_filter = ("action", "is_decision", "actor_kind")
    search_fields = ("subject_label", "actor_label")
