"""Wiring of the hub: settings, URLs, Celery, system checks, embedded services, the demo's seed. No rule lives here."""

from accelhub.celery import app as celery_app

__all__ = ["celery_app"]
