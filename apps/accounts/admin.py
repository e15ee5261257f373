"""Users in the tables. Password hashes, tokens' digests and sessions are not shown."""

from django.contrib import admin

from apps.accounts.models import ApiToken, Organisation, RoleGrant, User
from apps.core.admin import ReadOnly, site


@admin.register(User, site=site)
class UserAdmin(ReadOnly):
    list_display = ("username", "github_login", "organisation", "is_active", "is_demo", "last_login")
    list_filter = ("is_active", "is_demo", "organisation")
    list_select_related = ("organisation",)
    search_fields = ("username", "github_login", "email")
    fields = (
        "username",
        "github_login",
        "email",
        "organisation",
        "is_active",
        "is_demo",
        "public_id",
        "date_joined",
        "last_login",
    )


@admin.register(Organisation, site=site)
class OrganisationAdmin(ReadOnly):
    list_display = ("name", "slug", "created_at")


@admin.register(RoleGrant, site=site)
class RoleGrantAdmin(ReadOnly):
    list_display = ("user", "role", "source", "granted_at")
    list_filter = ("role", "source")
    list_select_related = ("user",)
    search_fields = ("user__username",)


@admin.register(ApiToken, site=site)
class ApiTokenAdmin(ReadOnly):
    list_display = ("user", "note", "created_at")
    list_select_related = ("user",)
    search_fields = ("user__username",)
    exclude = ("digest",)
