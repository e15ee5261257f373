"""The wiring as a Django app: it brings `manage.py up` and the system checks."""

from django.apps import AppConfig


class AccelHubConfig(AppConfig):
    name = "accelhub"

    def ready(self) -> None:
        from accelhub import checks  # noqa: F401  registers the system checks
