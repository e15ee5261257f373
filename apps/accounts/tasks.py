"""Background tasks of accounts."""

from celery import shared_task
from social_django.models import Nonce

from apps.accounts.backends import GitHubBackend
from apps.accounts.sessions import SessionStore
from apps.core.clock import now

SIGN_IN_SECONDS = GitHubBackend.STATE_LIFETIME


@shared_task
def forget_the_expired() -> int:
    """Delete sessions that have run out, and the marks of sign-ins that nobody finished. Returns how many marks."""
    SessionStore.clear_expired()
    return Nonce.objects.filter(timestamp__lt=now().timestamp() - SIGN_IN_SECONDS).delete()[0]
