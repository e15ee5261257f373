"""Pages of flaky tests."""

from django.urls import path

from apps.quarantine import flake_views, interchange_views, regression_views, rule_views, upstream_views, views

app_name = "quarantine"
urlpatterns = [
    path("policy/flaky/", rule_views.change, name="rules"),
    path("flakes/", flake_views.flakes, name="flakes"),
    path("regressions/", regression_views.regression_list, name="regressions"),
    path("quarantines/", views.quarantines, name="quarantines"),
    path("quarantines/upstream/", upstream_views.upstream, name="upstream"),
    path("quarantines/<uuid:public_id>/", views.quarantine, name="quarantine"),
    path("platforms/<slug:slug>/quarantines/new/", views.propose, name="propose"),
    path("platforms/<slug:slug>/disabled-tests.json", interchange_views.disabled_tests, name="disabled_tests"),
    path("platforms/<slug:slug>/deselect.txt", interchange_views.deselect, name="deselect"),
]
