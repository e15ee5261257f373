"""The address at which today's relay knows its dashboard."""

from django.urls import re_path

from apps.relay import observer

app_name = "crcr"
urlpatterns = [re_path(r"^results/?$", observer.results, name="results")]
