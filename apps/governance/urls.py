from django.urls import path

from apps.governance import evaluation_views, views

app_name = "governance"
urlpatterns = [
    path("repositories/<str:owner>/<str:name>/evaluation/", evaluation_views.evaluation, name="evaluation"),
    path("register/", views.register, name="register"),
    path("proposals/<uuid:public_id>/", views.proposal, name="proposal"),
    path("proposals/<uuid:public_id>/edit/", views.edit, name="edit"),
    path("proposals/<uuid:public_id>/accept/", views.accept, name="accept"),
    path("proposals/<uuid:public_id>/return/", views.give_back, name="return"),
    path("proposals/<uuid:public_id>/withdraw/", views.withdraw, name="withdraw"),
]
