"""Addresses of this room."""

from django.urls.resolvers import URLPattern

urlpatterns: list[URLPattern] = []
