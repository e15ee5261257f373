from django.urls import path

from apps.relay import limit_views

app_name = "relay_pages"
urlpatterns = [
    path("repositories/<str:owner>/<str:name>/limits/", limit_views.limits, name="limits"),
]
