from django.urls import path

from apps.checks import views

app_name = "checks"
urlpatterns = [
    path("checks/", views.checks, name="checks"),
    path("checks/<uuid:public_id>/resend/", views.resend, name="resend"),
]
