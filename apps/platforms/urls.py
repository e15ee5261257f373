from django.urls import path

from apps.platforms import views

app_name = "platforms"
urlpatterns = [
    path("repositories/<str:owner>/<str:name>/level/", views.level, name="level"),
    path("platforms/<slug:slug>/name/", views.rename, name="rename"),
]
