"""Addresses of this room."""

from django.urls import path

from apps.levels import falling_views

app_name = "levels"

urlpatterns = [
    path("notices/", falling_views.notices, name="notices"),
    path("notices/<uuid:public_id>/", falling_views.notice, name="notice"),
    path("downgrades/", falling_views.downgrade_list, name="downgrades"),
    path("downgrades/<uuid:public_id>/", falling_views.downgrade, name="downgrade"),
    path("repositories/<str:owner>/<str:name>/downgrade/", falling_views.make_downgrade, name="make_downgrade"),
]
