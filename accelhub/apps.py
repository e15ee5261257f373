"""The wiring as a Django app: it brings `manage.py up` and the system checks."""

from django.apps import AppConfig


class AccelHubConfig(AppConfig):
    name = "accelhub"

    def ready(self) -> None:
        from django.apps import apps
        from django.contrib.admin import autodiscover
        from django.db.models.signals import post_migrate, pre_migrate

        from accelhub import checks, kind  # noqa: F401  checks registers the system checks
        from accelhub.celery import BEAT
        from apps.core import rounds

        core = apps.get_app_config("core")
        pre_migrate.connect(kind.before_migrate, sender=core)
        post_migrate.connect(kind.after_migrate, sender=core)

        rounds.schedule(BEAT)
        autodiscover()  # each app's admin.py puts its models into the hub's own site
