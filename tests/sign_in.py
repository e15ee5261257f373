"""People who sign in with GitHub, as their browsers do it: real redirects between a real hub and the stand-in."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

import pytest
import requests

from apps.simulator.standin import GitHubStandIn
from tests.live import Hub


@pytest.fixture
def github(settings: Any) -> Iterator[GitHubStandIn]:
    """A stand-in for GitHub that the hub is set up with, people and all."""
    standin = GitHubStandIn(app_id=settings.GITHUB_APP_ID, app_private_key=settings.GITHUB_APP_PRIVATE_KEY)
    with standin:
        settings.GITHUB_URL = settings.GITHUB_API_URL = standin.url
        settings.SOCIAL_AUTH_GITHUB_KEY = standin.oauth.client_id
        settings.SOCIAL_AUTH_GITHUB_SECRET = standin.oauth.client_secret
        yield standin


class Browser:
    """One browser on a hub: keeps cookies, and sends the form token that the page before gave it."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy and no netrc between two ports of loopback

    def get(self, path: str) -> requests.Response:
        """The answer to this request alone: redirects are the test's to follow."""
        return self._send("GET", path)

    def post(self, path: str, form: dict[str, str] | None = None) -> requests.Response:
        """Post a form with the token of a page that this browser may see."""
        page = self.get("/accounts/login/")
        if page.status_code == 302:  # signed in already
            page = self.get("/account/")
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
        assert token is not None
        given = {"csrfmiddlewaretoken": token[1]} | (form or {})
        return self._send("POST", path, given)

    def _send(self, method: str, path: str, form: dict[str, str] | None = None) -> requests.Response:
        url = urljoin(self._hub.url, path)
        answer = self._session.request(method, url, data=form, timeout=20, allow_redirects=False)
        self._session.close()  # the hub's server keeps no connection, and does not say so; cookies stay
        return answer

    def to_github(self, next_page: str = "") -> str:
        """Begin to sign in. Returns the address at GitHub that the browser is sent to."""
        answer = self.post("/accounts/github/", {"next": next_page})
        assert answer.status_code == 302
        return answer.headers["Location"]

    def from_github(self, address: str, login: str) -> str:
        """Be this user at GitHub. Returns the address at the hub that GitHub sends the browser back to."""
        answer = self.get(f"{address}&login={login}")
        assert answer.status_code == 302
        return answer.headers["Location"]

    def sign_in(self, login: str, next_page: str = "") -> requests.Response:
        """Sign in as this GitHub user. Returns the hub's answer to the browser that comes back."""
        return self.get(self.from_github(self.to_github(next_page), login))

    @property
    def name(self) -> str:
        """Who the hub says one is; empty for a visitor."""
        who = re.search(r'class="who"[^>]*>([^<]+)<', self.get("/policy/").text)
        return who[1] if who else ""

    @property
    def session_key(self) -> str:
        return next((c.value or "" for c in self._session.cookies if c.name.startswith("accelhub_session")), "")
