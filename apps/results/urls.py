"""Pages of reports: their door and their API stand in accelhub/api.py."""

from django.urls import path

from apps.results import compare_views, history_views, report_rooms, report_views

app_name = "reports"
urlpatterns = [
    path("reports/<uuid:public_id>/", report_views.report, name="report"),
    path("reports/<uuid:public_id>/findings/", report_rooms.findings, name="findings"),
    path("reports/<uuid:public_id>/skips/", report_rooms.skips, name="skips"),
    path("reports/<uuid:public_id>/missing/", report_rooms.missing, name="missing"),
    path("backlog/", history_views.backlog, name="backlog"),
    path("tests/", history_views.tests, name="tests"),
    path("compare/", compare_views.compare, name="compare"),
    path("reports/<uuid:public_id>/raw/<str:sha256>/", report_views.raw, name="raw"),
    path("reports/<uuid:public_id>/remove/", report_views.remove, name="remove"),
]
