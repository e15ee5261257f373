from django.urls import path

from apps.public import components, directory, health, status, test_history, views

app_name = "public"
urlpatterns = [
    path("", views.overview, name="overview"),
    path("platforms/", directory.platforms, name="platforms"),
    path("platforms/<slug:slug>/", views.platform, name="platform"),
    path("pr/<int:number>/", views.pull_request, name="pull_request"),
    path("commit/<str:sha>/", views.commit, name="commit"),
    path("tests/<int:number>/", test_history.test, name="test"),
    path("jobs/<uuid:public_id>/", views.job, name="job"),
    path("rejections/", directory.rejections, name="rejections"),
    path("staff/health/", health.health, name="health"),
    path("staff/components/", components.components, name="components"),
    path("docs/first-callback/", views.first_callback, name="first_callback"),
    path("status/", status.status, name="status"),
    path("policy/metrics/", views.metrics_table, name="metrics"),
    path("policy/", views.policy, name="policy"),
]
