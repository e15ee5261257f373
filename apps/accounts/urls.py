from django.urls import path

from apps.accounts import views

app_name = "accounts"
urlpatterns = [
    path("accounts/login/", views.login, name="login"),
    path("accounts/logout/", views.logout, name="logout"),
    path("accounts/github/", views.github, name="github"),
    path("accounts/github/callback/", views.github_callback, name="github_callback"),
]
