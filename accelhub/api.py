"""Routes of the API, version 1."""

from django.urls import path

from apps.platforms.api import LevelView

app_name = "api"
urlpatterns = [
    path("repositories/<str:owner>/<str:name>/level/", LevelView.as_view(), name="level"),
]
