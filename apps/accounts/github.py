"""What the pages know of a visitor's GitHub: whether it is offered, and the token of whoever came through it.

The token lives as long as the session and is sealed with the hub's key: a copy of the database opens nothing on GitHub.
"""

import base64
import hashlib
import logging

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from apps.accounts.models import User
from apps.core.github import GitHubRefused, GitHubUnavailable, GitHubUser

log = logging.getLogger(__name__)

_TOKEN = "github_token"  # noqa: S105  its place in the session


def is_offered() -> bool:
    """Whether one can sign in with GitHub here."""
    return bool(settings.SOCIAL_AUTH_GITHUB_KEY and settings.SOCIAL_AUTH_GITHUB_SECRET)


def with_github_form(response: HttpResponse) -> HttpResponse:
    """Let a form of this page lead on to GitHub: browsers hold redirects to `form-action` too."""
    response._csp_update = {"form-action": [settings.GITHUB_URL]}  # type: ignore[attr-defined]
    return response


def keep_token(request: HttpRequest, token: str) -> None:
    request.session[_TOKEN] = _cipher().encrypt(token.encode()).decode()


def kept_token(request: HttpRequest) -> str:
    """The user's token; empty when they did not come through GitHub."""
    try:
        return _cipher().decrypt(request.session.get(_TOKEN, "").encode()).decode()
    except InvalidToken:  # none, or sealed with another key
        return ""


def _cipher() -> MultiFernet:
    """Seals with the secret key, and opens what a former one has sealed."""
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    digests = (hashlib.sha256(b"accelhub github token\n" + key.encode()).digest() for key in keys)
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])


def is_in_maintainer_team(user: User, token: str) -> bool | None:
    """Whether GitHub has the user in ACCELHUB_MAINTAINER_TEAM. None: it could not be asked."""
    organisation, _, team = settings.MAINTAINER_TEAM.partition("/")
    if not team:
        return False
    try:
        github = GitHubUser(api_url=settings.GITHUB_API_URL, token=token)
        return github.is_in_team(organisation=organisation, team=team, login=user.github_login)
    except (GitHubUnavailable, GitHubRefused) as error:
        log.warning("team of %s not known: %s", user, error)
        return None
