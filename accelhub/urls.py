"""Every route of the hub. Each view declares its access (apps/core/permissions.py)."""

from django.urls import include, path

from apps.core import views
from apps.core.admin import site

urlpatterns = [
    path("", include("apps.public.urls")),
    path("", include("apps.platforms.urls")),
    path("", include("apps.relay.page_urls")),
    path("", include("apps.results.urls")),
    path("", include("apps.quarantine.urls")),
    path("", include("apps.gate.urls")),
    path("", include("apps.governance.urls")),
    path("", include("apps.levels.urls")),
    path("", include("apps.appeals.urls")),
    path("", include("apps.checks.urls")),
    path("", include("apps.console.urls")),
    path("", include("apps.audit.urls")),
    path("", include("apps.accounts.urls")),
    path("github/", include("apps.relay.urls")),
    path("api/v1/", include("accelhub.api")),
    path("api/crcr/", include("apps.relay.urls_crcr")),
    path("admin/", site.urls),
    path("docs/errors/<slug:code>", views.error_code, name="error_code"),
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
]

handler400 = "apps.core.views.bad_request"
handler403 = "apps.core.views.permission_denied"
handler404 = "apps.core.views.page_not_found"
handler500 = "apps.core.views.server_error"
