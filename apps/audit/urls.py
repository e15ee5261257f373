from django.urls import path

from apps.audit import views

app_name = "audit"
urlpatterns = [
    path("decisions/", views.decisions, name="decisions"),
    path("decisions/<int:seq>/", views.decision, name="decision"),
]
