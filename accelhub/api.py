"""Routes of the API, version 1."""

from django.urls import path, re_path

from apps.platforms.api import LevelView
from apps.relay.api import DispatchList, RejectionsView
from apps.results.api import ReportView
from apps.results.upload_views import upload

app_name = "api"
urlpatterns = [
    path("dispatches/", DispatchList.as_view(), name="dispatches"),
    path("repositories/<str:owner>/<str:name>/level/", LevelView.as_view(), name="level"),
    # The trailing slash is optional: a redirect would lose a POST's body.
    re_path(r"^reports/?$", upload, name="upload"),
    path("reports/<uuid:public_id>/", ReportView.as_view(), name="report"),
    path("rejections/", RejectionsView.as_view(), name="rejections"),
]
