"""Addresses of this room."""

from django.urls import path

from apps.levels import falling_views, views

app_name = "levels"

urlpatterns = [
    path("promotions/", views.promotions, name="promotions"),
    path("promotions/<uuid:public_id>/", views.promotion, name="promotion"),
    path("promotions/<uuid:public_id>/evidence/<int:number>.json", views.evidence, name="evidence"),
    path("repositories/<str:owner>/<str:name>/promote/", views.promote, name="promote"),
    path("notices/", falling_views.notices, name="notices"),
    path("notices/<uuid:public_id>/", falling_views.notice, name="notice"),
    path("downgrades/", falling_views.downgrade_list, name="downgrades"),
    path("downgrades/<uuid:public_id>/", falling_views.downgrade, name="downgrade"),
    path("repositories/<str:owner>/<str:name>/downgrade/", falling_views.make_downgrade, name="make_downgrade"),
]
