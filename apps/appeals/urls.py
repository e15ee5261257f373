"""Addresses of this room."""

from django.urls import path

from apps.appeals import fairness_views, views

app_name = "appeals"
urlpatterns = [
    path("appeals/", views.appeals, name="appeals"),
    path("appeals/new/", views.new, name="new"),
    path("fairness/", fairness_views.fairness, name="fairness"),
    path("appeals/<uuid:public_id>/", views.appeal, name="appeal"),
]
