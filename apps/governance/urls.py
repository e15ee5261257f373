from django.urls import path

from apps.governance import evaluation_views, policy_views, views

app_name = "governance"
urlpatterns = [
    path("policy/versions/", policy_views.policy_versions, name="policy_versions"),
    path("policy/versions/<int:number>/", policy_views.policy_version, name="policy_version"),
    path("policy/drafts/<uuid:public_id>/", policy_views.policy_draft, name="policy_draft"),
    path("repositories/<str:owner>/<str:name>/evaluation/", evaluation_views.evaluation, name="evaluation"),
    path("register/", views.register, name="register"),
    path("proposals/<uuid:public_id>/", views.proposal, name="proposal"),
    path("proposals/<uuid:public_id>/edit/", views.edit, name="edit"),
    path("proposals/<uuid:public_id>/accept/", views.accept, name="accept"),
    path("proposals/<uuid:public_id>/return/", views.give_back, name="return"),
    path("proposals/<uuid:public_id>/withdraw/", views.withdraw, name="withdraw"),
]
