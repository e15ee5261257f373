"""The hourly task: what has run out is deleted, what is still good stays."""

import datetime

import pytest
from django.test import Client
from social_django.models import Nonce

from apps.accounts.models import UserSession
from apps.accounts.tasks import forget_the_expired
from apps.core.clock import now
from tests.factories.listing import user

pytestmark = pytest.mark.django_db


def test_sessions_and_sign_ins_that_ran_out_are_forgotten() -> None:
    old, good = Client(), Client()
    for browser in (old, good):
        browser.force_login(user())
    UserSession.objects.filter(pk=old.session.session_key).update(expire_date=now() - datetime.timedelta(seconds=1))
    for minutes, salt in ((31, "old"), (29, "good")):
        timestamp = int((now() - datetime.timedelta(minutes=minutes)).timestamp())
        Nonce.objects.create(server_url="social_core.oauth2.github", timestamp=timestamp, salt=salt)
    assert forget_the_expired() == 1
    assert list(Nonce.objects.values_list("salt", flat=True)) == ["good"]
    assert list(UserSession.objects.values_list("pk", flat=True)) == [good.session.session_key]
