"""How people sign in: with a password kept here, or through GitHub."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from social_core.backends.github import GithubOAuth2
from social_core.backends.oauth import BaseOAuth2PKCE
from social_core.exceptions import AuthProviderError, AuthResponseError

from apps.accounts.models import User
from apps.accounts.services import account_of_github
from apps.core.clock import now
from apps.core.github import UserIdentity


class HubBackend(ModelBackend):
    """Username and password, where that is allowed. Every session is its, so each request asks it who may go on.

    A demo account is refused, also in a running session, once demo mode is off.
    """

    def authenticate(self, request: Any, username: Any = None, password: Any = None, **kwargs: Any) -> Any:
        return super().authenticate(request, username, password, **kwargs) if settings.LOCAL_SIGN_IN else None

    def user_can_authenticate(self, user: Any) -> bool:
        return super().user_can_authenticate(user) and (settings.DEMO or not user.is_demo)


class GitHubBackend(BaseOAuth2PKCE, GithubOAuth2):
    """GitHub's web flow with state and PKCE, at the addresses that settings name.

    `user_token` holds the user's token once GitHub has given it. It is never stored with the account.
    """

    name = "github"
    user_token = ""

    def authorization_url(self) -> str:
        return f"{settings.GITHUB_URL}/login/oauth/authorize"

    def access_token_url(self) -> str:
        return f"{settings.GITHUB_URL}/login/oauth/access_token"

    def api_url(self) -> str:
        return f"{settings.GITHUB_API_URL}/"

    def do_auth(self, access_token: str, *args: Any, **kwargs: Any) -> Any:
        self.user_token = access_token
        return super().do_auth(access_token, *args, **kwargs)

    def user_data(self, access_token: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """`GET /user`, with the verified primary address as `email`: GitHub also lists addresses that nobody proved."""
        data: dict[str, Any] = self._user_data(access_token)
        try:
            addresses = self._user_data(access_token, "/emails")
        except (AuthProviderError, AuthResponseError):  # not granted: they sign in without one
            addresses = []
        return data | {"email": _primary(addresses)}


def _primary(addresses: Any) -> str:
    rows = addresses if isinstance(addresses, list) else []
    return next((str(row["email"]) for row in rows if row.get("primary") and row.get("verified")), "")


def account_of_response(details: Mapping[str, Any], uid: str, **kwargs: Any) -> dict[str, Any]:
    """The pipeline's last step: whose account this is. `uid` is GitHub's numeric id."""
    identity = UserIdentity(str(details["username"]), int(uid))
    user: User = account_of_github(identity=identity, email=str(details.get("email") or ""), now=now())
    return {"user": user}
