"""Signing in through a stand-in: GitHub's OAuth web flow, and what a user's token may ask for.

The page that asks who one is replaces GitHub's own sign-in: whoever reaches loopback may be any of its fictional users.
"""

import base64
import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt

from apps.simulator import shapes
from apps.simulator.people import People, Person
from apps.simulator.wire import Answer, Refusal, Request

CODE_SECONDS = 600
USER_TOKEN_SECONDS = 8 * 3600
LOOPBACK = {"127.0.0.1", "localhost"}
PKCE_METHOD = "S256"


def client_of(app_id: str, app_private_key: str) -> tuple[str, str]:
    """The OAuth client's id and secret. Both follow from the App, so that a demo keeps one set of secrets."""
    secret = hashlib.sha256(b"stand-in OAuth client\n" + app_private_key.encode()).hexdigest()
    return f"standin-{app_id}", secret[:40]


@dataclass(frozen=True)
class UserToken:
    """A user's token, opened."""

    person: Person
    scopes: frozenset[str]


@dataclass(frozen=True)
class _Grant:
    """What a code stands for until it is exchanged."""

    person_id: int
    redirect_uri: str
    scopes: str
    challenge: str
    end: float


class OAuth:
    """The web flow and the routes that answer a user's token. Codes live in memory, tokens carry what they open."""

    def __init__(self, app_id: str, app_private_key: str, people: People, url: Callable[[], str]) -> None:
        """`url` gives the stand-in's base URL, which is known only once it listens."""
        self.client_id, self.client_secret = client_of(app_id, app_private_key)
        self.people = people
        self._url = url
        self._seal_key = hashlib.sha256(b"stand-in user tokens\n" + app_private_key.encode()).digest()
        self._lock = threading.Lock()
        self._grants: dict[str, _Grant] = {}
        self._revoked: set[int] = set()

    # --- the web flow -----------------------------------------------------------------------------------------

    def authorize(self, request: Request) -> Answer:
        """`GET /login/oauth/authorize`: asks whom to continue as; `login=` answers for them."""
        query = request.query
        target = query.get("redirect_uri", "")
        if not hmac.compare_digest(query.get("client_id", "").encode(), self.client_id.encode()):
            raise Refusal(404, "Not Found")
        if not _is_registered(target):
            raise Refusal(400, "The redirect_uri is not associated with this application.")
        if query.get("code_challenge") and query.get("code_challenge_method") != PKCE_METHOD:
            raise Refusal(400, "code_challenge_method must be S256")
        if query.get("deny"):
            denied = {"error": "access_denied", "error_description": "The user has denied your application access."}
            return _redirect(query["redirect_uri"], denied | _state(query))
        person = self.people.find(query["login"]) if query.get("login") else None
        if person is None:
            return Answer(200, html=self._page(query))
        return _redirect(query["redirect_uri"], {"code": self._code(person, query)} | _state(query))

    def access_token(self, request: Request) -> Answer:
        """`POST /login/oauth/access_token`. As on GitHub a refusal is a 200 with an `error`."""
        form = dict(parse_qsl(request.body.decode(errors="replace")))
        answer = self._exchange(form)
        if "json" in request.headers.get("accept", ""):
            return Answer(200, answer)
        return Answer(200, html=urlencode(answer))

    def _exchange(self, form: dict[str, str]) -> dict[str, str]:
        client = f"{form.get('client_id', '')} {form.get('client_secret', '')}"
        if not hmac.compare_digest(client.encode(), f"{self.client_id} {self.client_secret}".encode()):
            return _error("incorrect_client_credentials", "The client_id and/or client_secret passed are incorrect.")
        with self._lock:
            grant = self._grants.pop(form.get("code", ""), None)
        if grant is None or grant.end < time.time():
            return _error("bad_verification_code", "The code passed is incorrect or expired.")
        if form.get("redirect_uri", grant.redirect_uri) != grant.redirect_uri:
            return _error("redirect_uri_mismatch", "The redirect_uri MUST match the registered callback URL.")
        if grant.challenge and grant.challenge != challenge_of(form.get("code_verifier", "")):
            return _error("bad_verification_code", "The code_verifier does not fit the code_challenge.")
        return {
            "access_token": self.issue(grant.person_id, grant.scopes),
            "scope": grant.scopes,
            "token_type": "bearer",
        }

    def issue(self, person_id: int, scopes: str) -> str:
        """A user token (`gho_…`) with these scopes, separated by commas."""
        end = int(time.time()) + USER_TOKEN_SECONDS
        claims = {"aud": "user", "exp": end, "person": person_id, "scopes": scopes}
        return "gho_" + jwt.encode(claims, self._seal_key, algorithm="HS256")

    def revoke(self, login: str) -> None:
        """Refuse this user's tokens from now on, as after they took the access back. KeyError: unknown login."""
        person = self.people.find(login)
        if person is None:
            raise KeyError(login)
        self._revoked.add(person.id)

    def _code(self, person: Person, query: dict[str, str]) -> str:
        code = secrets.token_hex(10)
        end = time.time() + CODE_SECONDS
        grant = _Grant(person.id, query["redirect_uri"], query.get("scope", ""), query.get("code_challenge", ""), end)
        with self._lock:
            self._grants = {old: kept for old, kept in self._grants.items() if kept.end > time.time()}
            self._grants[code] = grant
        return code

    def _page(self, query: dict[str, str]) -> str:
        kept = {name: value for name, value in query.items() if name not in {"login", "deny"}}
        rows = "".join(
            f'<li><a href="?{escape(urlencode(kept | {"login": person.login}))}">{escape(person.login)}</a>'
            f"{': ' if person.about else ''}{escape(person.about)}</li>"
            for person in self.people.all()
        )
        no = escape(urlencode(kept | {"deny": "1"}))
        return (
            '<!doctype html><html lang="en"><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
            "<title>Stand-in for GitHub</title><h1>Continue as…</h1>"
            "<p>This is the demo's stand-in for GitHub. Nobody here exists, and no password is asked for.</p>"
            f'<ul>{rows}</ul><p><a href="?{no}">Cancel</a></p></html>'
        )

    # --- with a user's token ----------------------------------------------------------------------------------

    def token(self, credential: str) -> UserToken | None:
        """What a user's token opens; None for a credential of another kind. Raises Refusal 401."""
        if not credential.startswith("gho_"):
            return None
        try:
            claims = jwt.decode(
                credential.removeprefix("gho_"),
                self._seal_key,
                algorithms=["HS256"],
                audience="user",
                options={"require": ["exp"]},
            )
        except jwt.InvalidTokenError as error:
            raise Refusal(401, "Bad credentials") from error
        person = self.people.by_id(claims["person"])
        if person is None or person.id in self._revoked:
            raise Refusal(401, "Bad credentials")
        return UserToken(person, frozenset(filter(None, claims["scopes"].split(","))))

    def user(self, request: Request) -> Answer:
        """`GET /user`."""
        return Answer(200, shapes.user(self._required(request).person, self._url()) | {"email": None})

    def emails(self, request: Request) -> Answer:
        """`GET /user/emails`: with the scope `user:email`."""
        token = self._required(request)
        if not {"user", "user:email"} & token.scopes:
            raise Refusal(404, "Not Found")
        old = {"email": f"old-{token.person.email}", "primary": False, "verified": False, "visibility": None}
        return Answer(
            200, [old, {"email": token.person.email, "primary": True, "verified": True, "visibility": "private"}]
        )

    def public_user(self, request: Request, login: str) -> Answer:
        """`GET /users/{login}`: for anyone."""
        person = self.people.find(login)
        if person is None:
            raise Refusal(404, "Not Found")
        return Answer(200, shapes.user(person, self._url()))

    def membership(self, request: Request, org: str, team: str, login: str) -> Answer:
        """`GET /orgs/{org}/teams/{slug}/memberships/{login}`: with the scope `read:org`, for those who see the team."""
        token = self._required(request)
        person, name = self.people.find(login), f"{org}/{team}"
        is_seen = name in token.person.teams | token.person.pending and "read:org" in token.scopes
        if person is None or not is_seen or name not in person.teams | person.pending:
            raise Refusal(404, "Not Found")
        state = "active" if name in person.teams else "pending"
        url = f"{self._url()}{request.path}"
        return Answer(200, {"url": url, "role": "member", "state": state})

    def _required(self, request: Request) -> UserToken:
        token = self.token(request.bearer())
        if token is None:
            raise Refusal(401, "Requires authentication")
        return token


def challenge_of(verifier: str) -> str:
    """The S256 challenge of a PKCE verifier (RFC 7636)."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _is_registered(redirect_uri: str) -> bool:
    """Whether a hub on loopback may be where GitHub sends people back to."""
    if not redirect_uri.isprintable() or set(redirect_uri) & set("\\@ "):
        return False
    try:
        target = urlsplit(redirect_uri)
    except ValueError:
        return False
    return target.scheme == "http" and target.hostname in LOOPBACK


def _redirect(target: str, query: dict[str, str]) -> Answer:
    joint = "&" if urlsplit(target).query else "?"
    return Answer(302, headers={"Location": f"{target}{joint}{urlencode(query)}"})


def _state(query: dict[str, str]) -> dict[str, str]:
    return {"state": query["state"]} if "state" in query else {}


def _error(code: str, description: str) -> dict[str, Any]:
    return {"error": code, "error_description": description, "error_uri": "https://docs.github.com/apps"}
