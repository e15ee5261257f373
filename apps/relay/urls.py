from django.urls import re_path

from apps.relay import views

app_name = "relay"
# The trailing slash is optional: a redirect would lose a POST's body.
urlpatterns = [
    re_path(r"^webhook/?$", views.webhook, name="webhook"),
    re_path(r"^callback/?$", views.callback, name="callback"),
]
