from django.urls import path

from apps.console import account, operations, people, relay, repositories, transfers, views

app_name = "console"
urlpatterns = [
    path("console/", views.console, name="console"),
    path("console/operations/", operations.operations, name="operations"),
    path("console/repositories/", repositories.repositories, name="repositories"),
    path("console/relay/", relay.relay, name="relay"),
    path("account/", account.account, name="account"),
    path("transfers/<uuid:public_id>/", transfers.transfer, name="transfer"),
    path("people/", people.people, name="people"),
    path("people/organisations/", people.organisations, name="organisations"),
    path("people/<uuid:public_id>/", people.person, name="person"),
]
