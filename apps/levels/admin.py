"""Promotions and what they were decided on, in the tables."""

from django.contrib import admin

from apps.core.admin import ReadOnly, site
from apps.levels.models import Approval, EvidenceBundle, Objection, Promotion


@admin.register(Promotion, site=site)
class PromotionAdmin(ReadOnly):
    list_display = ("repository", "target", "state", "form", "opened_by", "opened_at", "ended_at")
    list_filter = ("state", "target")
    list_select_related = ("repository", "opened_by")


@admin.register(EvidenceBundle, site=site)
class EvidenceBundleAdmin(ReadOnly):
    list_display = ("promotion", "number", "sha256", "bytes", "policy_number", "frozen_at")
    list_select_related = ("promotion__repository",)


@admin.register(Approval, site=site)
class ApprovalAdmin(ReadOnly):
    list_display = ("promotion", "by", "organisation", "revision", "at")
    list_select_related = ("promotion__repository", "by", "organisation")


@admin.register(Objection, site=site)
class ObjectionAdmin(ReadOnly):
    list_display = ("promotion", "by", "criterion", "at")
    list_select_related = ("promotion__repository", "by")
