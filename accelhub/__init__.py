"""Wiring of the hub: settings, URLs, Celery, system checks, embedded services. No domain word lives here."""

from accelhub.celery import app as celery_app

__all__ = ["celery_app"]
