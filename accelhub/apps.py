"""The wiring as a Django app: it brings `manage.py up` and the system checks."""

from django.apps import AppConfig


class AccelHubConfig(AppConfig):
    name = "accelhub"

    def ready(self) -> None:
        from django.contrib.admin import autodiscover

        from accelhub import checks  # noqa: F401  registers the system checks

        autodiscover()  # each app's admin.py puts its models into the hub's own site
