"""Versions and drafts of the policy in the tables."""

from django.contrib import admin

from apps.core.admin import ReadOnly, site
from apps.policies.models import PolicyDraft, PolicyVersion


@admin.register(PolicyVersion, site=site)
class PolicyVersionAdmin(ReadOnly):
    list_display = ("number", "title", "from_at", "by", "event_seq")


@admin.register(PolicyDraft, site=site)
class PolicyDraftAdmin(ReadOnly):
    list_display = ("title", "state", "revision", "base_number", "author", "changed_at")
    list_filter = ("state",)
