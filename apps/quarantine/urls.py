"""Pages of flaky tests."""

from django.urls import path

from apps.quarantine import views

app_name = "quarantine"
urlpatterns = [
    path("quarantines/", views.quarantines, name="quarantines"),
    path("quarantines/<uuid:public_id>/", views.quarantine, name="quarantine"),
    path("platforms/<slug:slug>/quarantines/new/", views.propose, name="propose"),
]
