from django.urls import path

from apps.audit import views
from apps.audit.feed import DecisionFeed

app_name = "audit"
urlpatterns = [
    path("decisions/", views.decisions, name="decisions"),
    path("decisions/feed/", DecisionFeed(), name="feed"),
    path("decisions/export.jsonl", views.export_file, name="export"),
    path("decisions/checkpoints/", views.checkpoint_list, name="checkpoints"),
    path("decisions/checkpoints/<int:number>.json", views.checkpoint_file, name="checkpoint_file"),
    path("decisions/<int:seq>/", views.decision, name="decision"),
]
