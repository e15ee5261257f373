"""Pages of the gate."""

from django.urls import path

from apps.gate import breaker_views, replay_views, views

app_name = "gate"
urlpatterns = [
    path("overrides/", views.overrides, name="overrides"),
    path("overrides/new/", views.grant, name="grant"),
    path("overrides/<uuid:public_id>/", views.override, name="override"),
    path("breakers/", breaker_views.breakers, name="breakers"),
    path("breakers/<uuid:public_id>/", breaker_views.breaker, name="breaker"),
    path("repositories/<str:owner>/<str:name>/replay/", replay_views.replayed, name="replay"),
]
