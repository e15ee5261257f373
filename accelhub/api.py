"""Routes of the API, version 1."""

from django.urls import path

from apps.platforms.api import LevelView
from apps.relay.api import RejectionsView

app_name = "api"
urlpatterns = [
    path("repositories/<str:owner>/<str:name>/level/", LevelView.as_view(), name="level"),
    path("rejections/", RejectionsView.as_view(), name="rejections"),
]
