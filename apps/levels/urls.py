"""Addresses of this room."""

from django.urls.resolvers import URLPattern

app_name = "levels"

urlpatterns: list[URLPattern] = []
