from django.urls import path

from apps.public import views

app_name = "public"
urlpatterns = [
    path("", views.overview, name="overview"),
    path("platforms/", views.platforms, name="platforms"),
    path("platforms/<slug:slug>/", views.platform, name="platform"),
    path("jobs/<uuid:public_id>/", views.job, name="job"),
    path("rejections/", views.rejections, name="rejections"),
    path("policy/", views.policy, name="policy"),
]
