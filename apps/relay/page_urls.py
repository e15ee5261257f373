"""Pages of the relay: its two doors stand in urls.py."""

from django.urls import path

from apps.relay import acknowledge_views, declared_views, dispatch_views, limit_views

app_name = "relay_pages"
urlpatterns = [
    path("repositories/<str:owner>/<str:name>/limits/", limit_views.limits, name="limits"),
    path("repositories/<str:owner>/<str:name>/declared/", declared_views.declared, name="declared"),
    path("jobs/<uuid:public_id>/acknowledge/", acknowledge_views.acknowledge_job, name="acknowledge"),
    path("dispatches/", dispatch_views.dispatches, name="dispatches"),
]
