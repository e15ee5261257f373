"""Falling in the tables."""

from django.contrib import admin

from apps.core.admin import ReadOnly, site
from apps.levels.models import Downgrade, FallNotice, NoticeAnswer, WayBack


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
