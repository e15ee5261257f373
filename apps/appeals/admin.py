"""Appeals in the tables."""

from django.contrib import admin

from apps.appeals.models import Appeal, AppealedRow
from apps.core.admin import ReadOnly, site


@admin.register(Appeal, site=site)
class AppealAdmin(ReadOnly):
    list_display = ("public_id", "platform", "state", "claim", "opened_at", "deadline_at")
    list_filter = ("state", "claim")
    list_select_related = ("platform",)
    search_fields = ("platform__name",)


@admin.register(AppealedRow, site=site)
class AppealedRowAdmin(ReadOnly):
    list_display = ("appeal", "job", "is_freed", "is_accepted")
    list_select_related = ("appeal__platform", "appeal__repository", "job__repository")
