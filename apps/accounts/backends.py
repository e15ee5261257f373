"""How people sign in."""

from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend


class HubBackend(ModelBackend):
    """Username and password. A demo account is refused, also in a running session, once demo mode is off."""

    def user_can_authenticate(self, user: Any) -> bool:
        return super().user_can_authenticate(user) and (settings.DEMO or not user.is_demo)
