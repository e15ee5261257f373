from django.urls import path

from apps.platforms import member_views, pipeline_views, views

app_name = "platforms"
urlpatterns = [
    path("repositories/<str:owner>/<str:name>/level/", views.level, name="level"),
    path("platforms/<slug:slug>/name/", views.rename, name="rename"),
    path("platforms/<slug:slug>/members/", member_views.members, name="members"),
    path("repositories/<str:owner>/<str:name>/claim/", member_views.claim, name="claim"),
    path("invitations/<str:code>/", member_views.invitation, name="invitation"),
    path("pipelines/", pipeline_views.mapping, name="pipelines"),
]
