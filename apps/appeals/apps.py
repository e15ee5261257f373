from django.apps import AppConfig


class AppealsConfig(AppConfig):
    name = "apps.appeals"
