"""What the hub knows of upstream, in the tables: the order of main, and webhooks that it missed."""

from django.contrib import admin

from apps.core.admin import ReadOnly, site
from apps.relay.models import Commit, DeliveryLog, HubOutage, MainPush, MergeBase, MissedDelivery, UnreadLog


@admin.register(Commit, site=site)
class CommitAdmin(ReadOnly):
    list_display = ("sha", "parent_sha", "position", "placed_at")
    search_fields = ("sha",)
    ordering = ("-position", "-pk")


@admin.register(MainPush, site=site)
class MainPushAdmin(ReadOnly):
    list_display = ("delivery", "before", "after", "state", "attempts", "due_at", "error")
    list_filter = ("state",)
    list_select_related = ("delivery",)
    search_fields = ("before", "after")
    ordering = ("-pk",)


@admin.register(MergeBase, site=site)
class MergeBaseAdmin(ReadOnly):
    list_display = ("pr_number", "head_sha", "base_sha", "state", "attempts", "due_at", "error")
    list_filter = ("state",)
    search_fields = ("head_sha", "base_sha")
    ordering = ("-pk",)


@admin.register(HubOutage, site=site)
class HubOutageAdmin(ReadOnly):
    list_display = ("started_at", "ended_at")
    ordering = ("-ended_at", "-pk")


@admin.register(MissedDelivery, site=site)
class MissedDeliveryAdmin(ReadOnly):
    list_display = ("delivery_id", "event", "state", "delivered_at", "recovered_at", "attempts", "error")
    list_filter = ("state", "event")
    list_select_related = ("outage",)
    search_fields = ("delivery_id",)
    ordering = ("-delivered_at", "-pk")


@admin.register(DeliveryLog, site=site)
class DeliveryLogAdmin(ReadOnly):
    list_display = ("compared_to", "compared_at", "mode", "begun_at", "error")


@admin.register(UnreadLog, site=site)
class UnreadLogAdmin(ReadOnly):
    list_display = ("since", "until", "is_forgotten")
    ordering = ("-until",)
