from django.urls import path

from apps.platforms import allowlist_views, calendar_views, member_views, participation_views, pipeline_views, views

app_name = "platforms"
urlpatterns = [
    path("allowlist/", allowlist_views.allowlist, name="allowlist"),
    path("allowlist.yml", allowlist_views.published, name="allowlist_file"),
    path("repositories/<str:owner>/<str:name>/level/", views.level, name="level"),
    path("repositories/<str:owner>/<str:name>/participation/", participation_views.participation, name="participation"),
    path("platforms/<slug:slug>/name/", views.rename, name="rename"),
    path("platforms/<slug:slug>/calendar/", calendar_views.calendar, name="calendar"),
    path("platforms/<slug:slug>/members/", member_views.members, name="members"),
    path("repositories/<str:owner>/<str:name>/claim/", member_views.claim, name="claim"),
    path("invitations/<str:code>/", member_views.invitation, name="invitation"),
    path("pipelines/", pipeline_views.mapping, name="pipelines"),
]
