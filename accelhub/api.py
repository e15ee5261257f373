"""Routes of the API, version 1."""

from django.urls import path

from apps.platforms.api import LevelView
from apps.relay.api import DispatchList, RejectionsView

app_name = "api"
urlpatterns = [
    path("dispatches/", DispatchList.as_view(), name="dispatches"),
    path("repositories/<str:owner>/<str:name>/level/", LevelView.as_view(), name="level"),
    path("rejections/", RejectionsView.as_view(), name="rejections"),
]
