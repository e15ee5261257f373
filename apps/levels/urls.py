"""Addresses of this room."""

from django.urls import path

from apps.levels import views

app_name = "levels"

urlpatterns = [
    path("promotions/", views.promotions, name="promotions"),
    path("promotions/<uuid:public_id>/", views.promotion, name="promotion"),
    path("promotions/<uuid:public_id>/evidence/<int:number>.json", views.evidence, name="evidence"),
    path("repositories/<str:owner>/<str:name>/promote/", views.promote, name="promote"),
]
