"""Rising and falling in the tables."""

from django.contrib import admin

from apps.core.admin import ReadOnly, site
from apps.levels.models import (
    Approval,
    Downgrade,
    EvidenceBundle,
    FallNotice,
    NoticeAnswer,
    Objection,
    Promotion,
    WayBack,
)


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


@admin.register(FallNotice, site=site)
class FallNoticeAdmin(ReadOnly):
    list_display = ("repository", "level", "state", "opened_at", "deadline_at", "ended_at")
    list_filter = ("state",)
    list_select_related = ("repository",)


@admin.register(NoticeAnswer, site=site)
class NoticeAnswerAdmin(ReadOnly):
    list_display = ("notice", "by_label", "at")
    list_select_related = ("notice__repository",)


@admin.register(Downgrade, site=site)
class DowngradeAdmin(ReadOnly):
    list_display = ("repository", "level_from", "level_to", "state", "at", "deadline_at", "ended_at")
    list_filter = ("state",)
    list_select_related = ("repository",)


@admin.register(WayBack, site=site)
class WayBackAdmin(ReadOnly):
    list_display = ("repository", "level", "since", "reached_at")
    list_select_related = ("repository",)
