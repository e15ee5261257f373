"""Platforms in the tables. Levels, listings and members change on their own pages, where the log hears of it."""

from django.contrib import admin

from apps.core.admin import ReadOnly, site
from apps.platforms.models import (
    AllowlistAlarm,
    AllowlistEdit,
    Demotion,
    Invitation,
    LevelInterval,
    MaintenanceWindow,
    Membership,
    NameChange,
    Participation,
    Pipeline,
    Platform,
    Repository,
    Transfer,
    UpstreamFile,
)


@admin.register(Platform, site=site)
class PlatformAdmin(ReadOnly):
    list_display = ("name", "slug", "kind", "created_at")
    list_filter = ("kind",)
    search_fields = ("name", "slug")


@admin.register(Repository, site=site)
class RepositoryAdmin(ReadOnly):
    list_display = ("full_name", "platform", "level_code", "github_id", "pin_source", "pinned_at")
    list_filter = ("level", "pin_source")
    list_select_related = ("platform",)
    search_fields = ("full_name", "platform__name")


@admin.register(LevelInterval, site=site)
class LevelIntervalAdmin(ReadOnly):
    list_display = ("repository", "level_code", "started_at", "ended_at", "event_seq")
    list_filter = ("level",)
    list_select_related = ("repository",)
    search_fields = ("repository__full_name",)


@admin.register(Membership, site=site)
class MembershipAdmin(ReadOnly):
    list_display = ("platform", "user", "joined_at")
    list_select_related = ("platform", "user")
    search_fields = ("platform__name", "user__username")


@admin.register(Invitation, site=site)
class InvitationAdmin(ReadOnly):
    list_display = ("platform", "note", "invited_by", "expires_at", "accepted_at", "withdrawn_at")
    list_select_related = ("platform", "invited_by")
    search_fields = ("platform__name", "note")
    exclude = ("digest",)


@admin.register(AllowlistAlarm, site=site)
class AllowlistAlarmAdmin(ReadOnly):
    list_display = ("raised_at", "kind", "commit_sha", "cleared_at", "accepted_seq")
    list_filter = ("kind",)


@admin.register(AllowlistEdit, site=site)
class AllowlistEditAdmin(ReadOnly):
    list_display = ("event_seq", "repository", "level_before", "level", "state", "pull_number", "changed_at")
    list_filter = ("state",)
    list_select_related = ("repository",)
    search_fields = ("repository__full_name",)


@admin.register(Demotion, site=site)
class DemotionAdmin(ReadOnly):
    list_display = ("pull_number", "repository", "state", "level_before", "opened_at", "ended_at")
    list_filter = ("state",)
    list_select_related = ("repository",)


@admin.register(UpstreamFile, site=site)
class UpstreamFileAdmin(ReadOnly):
    list_display = ("commit_sha", "taken_at", "answered_at")


@admin.register(Participation, site=site)
class ParticipationAdmin(ReadOnly):
    list_display = ("repository", "events", "refs", "labels", "sample_percent", "max_in_flight", "changed_at")
    list_select_related = ("repository",)
    search_fields = ("repository__full_name",)


@admin.register(MaintenanceWindow, site=site)
class MaintenanceWindowAdmin(ReadOnly):
    list_display = ("repository", "starts_at", "ends_at", "note", "announced_at", "withdrawn_at")
    list_select_related = ("repository",)
    search_fields = ("repository__full_name", "note")
    ordering = ("-starts_at", "-pk")


@admin.register(Pipeline, site=site)
class PipelineAdmin(ReadOnly):
    list_display = ("repository", "organization_id", "pipeline_id", "required_claims", "created_at")
    list_select_related = ("repository",)
    search_fields = ("repository__full_name",)


@admin.register(NameChange, site=site)
class NameChangeAdmin(ReadOnly):
    list_display = ("repository", "old_name", "new_name", "seen_at", "confirmed_at")
    list_select_related = ("repository",)
    search_fields = ("repository__full_name", "old_name", "new_name")
    ordering = ("-seen_at", "-pk")


@admin.register(Transfer, site=site)
class TransferAdmin(ReadOnly):
    list_display = ("repository", "new_name", "old_owner_id", "new_owner_id", "state", "opened_at", "decided_at")
    list_filter = ("state",)
    list_select_related = ("repository",)
    search_fields = ("repository__full_name", "new_name")
    ordering = ("-opened_at", "-pk")
