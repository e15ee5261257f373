"""The tables, for operators to look into: Django's admin, read-only, behind the hub's own sign-in.

Nothing is changed here: what changes, changes through a service and stands in the log. Each app registers its models in
its own `admin.py`.
"""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import URLPattern, URLResolver, path, re_path

from apps.core.access import is_allowed, requires
from apps.core.models import Alarm, Installation, Round, Wakeup
from apps.core.permissions import Permission

# Ours, in place of Django's: who is signed in and the way back; no link to a history that is never written.
OVERRIDDEN = ("admin/base_site.html", "admin/change_form_object_tools.html")


class HubAdminSite(admin.AdminSite):
    """Django's admin without its own sign-in, and without every address that changes something."""

    site_header = site_title = "AccelHub's tables"
    index_title = "What the database holds"
    enable_nav_sidebar = False
    final_catch_all_view = False

    def has_permission(self, request: HttpRequest) -> bool:
        return is_allowed(request.user, Permission.ADMIN_VIEW)

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        return requires(Permission.ADMIN_VIEW)(super().admin_view(view, cacheable))

    def get_urls(self) -> list[URLPattern | URLResolver]:
        labels = "|".join(sorted({model._meta.app_label for model in self._registry}))
        urls: list[URLPattern | URLResolver] = [
            path("", self.admin_view(self.index), name="index"),
            path("jsi18n/", self.admin_view(self.i18n_javascript, cacheable=True), name="jsi18n"),
            re_path(rf"^(?P<app_label>{labels})/$", self.admin_view(self.app_index), name="app_list"),
        ]
        for model_admin in self._registry.values():
            urls += model_admin.get_urls()
        return urls


site = HubAdminSite()

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


class ReadOnly(ModelAdmin):
    """A model to look at. `exclude` what must not be read: digests, keys."""

    actions = None
    list_per_page = 50
    # Counting the whole table for a page of it is slow where there are millions of rows.
    show_full_result_count = False

    def get_urls(self) -> list[URLPattern]:
        app, model = self.opts.app_label, self.opts.model_name
        wrap = self.admin_site.admin_view
        return [
            path(f"{app}/{model}/", wrap(self.changelist_view), name=f"{app}_{model}_changelist"),
            path(f"{app}/{model}/<path:object_id>/change/", wrap(self.change_view), name=f"{app}_{model}_change"),
        ]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Only what the page's own filters ask. Django allows every column and the keys of other tables: by answering
        yes or no to guesses, a list would spell out what `exclude` hides."""
        ways = ("", "__exact", "__isnull", "__id__exact")  # bare: where a filter offers the values that occur
        own = {f"{name}{way}" for name in self.list_filter for way in ways}
        return lookup in own and "\0" not in str(value)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_allowed(request.user, Permission.ADMIN_VIEW)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_allowed(request.user, Permission.ADMIN_VIEW)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Wakeup, site=site)
class WakeupAdmin(ReadOnly):
    list_display = ("topic", "key", "created_at")
    list_filter = ("topic",)


@admin.register(Installation, site=site)
class InstallationAdmin(ReadOnly):
    list_display = ("kind",)


@admin.register(Alarm, site=site)
class AlarmAdmin(ReadOnly):
    list_display = ("kind", "key", "detail", "times", "began_at", "last_at")
    list_filter = ("kind",)
    search_fields = ("detail",)
    ordering = ("-last_at", "-pk")


@admin.register(Round, site=site)
class RoundAdmin(ReadOnly):
    list_display = ("name", "succeeded_at", "tried_at", "is_off", "said")
    list_filter = ("is_off",)
