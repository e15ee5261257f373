from django.urls import path

from apps.console import account, people, views

app_name = "console"
urlpatterns = [
    path("console/", views.console, name="console"),
    path("account/", account.account, name="account"),
    path("people/", people.people, name="people"),
    path("people/organisations/", people.organisations, name="organisations"),
    path("people/<uuid:public_id>/", people.person, name="person"),
]
