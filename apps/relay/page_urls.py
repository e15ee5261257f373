"""Pages of the relay: its two doors stand in urls.py."""

from django.urls import path

from apps.relay import dispatch_views

app_name = "outbox"
urlpatterns = [
    path("dispatches/", dispatch_views.dispatches, name="dispatches"),
]
