"""Somebody who minds the flaky tests of the demo: what the hub proposed from the history's reports is decided on, as it
would have been back then (X-AccelHub-Clock), by a demo account with a session as a browser has one."""

import datetime
import logging
import re
from typing import Any

import requests

from apps.simulator.characters import Character
from apps.simulator.junit import mended_test
from apps.simulator.loopback import CLOCK_HEADER, one_line, send, session

log = logging.getLogger(__name__)

ACCOUNT = "demo-maintainer"  # and its password: everyone may read both
# How long the hub's proposals lie before somebody decides.
DECIDED_AFTER = datetime.timedelta(hours=6)
# One is put in force for so long and not renewed; two so recently that they are in force now.
SHORT = datetime.timedelta(days=10)
RECENT = datetime.timedelta(days=9)
MENDED = datetime.timedelta(days=14)
YESTERDAY = datetime.timedelta(days=1)
# What happens later than so long ago happens now: the hub takes a pretended time only where it is past for certain.
PRESENT = datetime.timedelta(minutes=2)
# One runs out, one is in force, one may go, and one is left for the visitor to decide.
PROPOSALS_NEEDED = 4
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')


class Minder:
    """Decides once on a platform's proposals. `tend` is called again until it says that there is nothing left to do."""

    def __init__(self, hub_url: str, character: Character) -> None:
        self._hub_url = hub_url
        self._character = character
        self._slug = character.name.lower().replace(" ", "-")

    def tend(self, *, now: datetime.datetime) -> bool:
        """Look once. Returns whether it is done: decided now, or by somebody before. Raises requests.RequestException
        and Refused."""
        listed = self._listed()
        if any(one["state"] != "proposed" for one in listed):
            return True
        mended = self._mended(listed)
        others = [one for one in listed if one is not mended]
        if len(listed) < PROPOSALS_NEEDED or mended is None or _decided_at(others[0]) + SHORT > now:
            return False
        first, second = others[:2]
        with session() as signed_in:
            token = self._sign_in(signed_in)
            at = _decided_at(first)
            self._act(signed_in, token, first, "put_in_force", at, expires_at=(at + SHORT).isoformat())
            self._act(signed_in, token, second, "put_in_force", max(_decided_at(second), now - RECENT))
            held = self._act(signed_in, token, mended, "put_in_force", max(_decided_at(mended), now - MENDED))
            words = "It passes in every run on main since the kernel was mended."
            self._act(signed_in, token, held, "propose_release", now - YESTERDAY, reason=words)
        return True

    def _listed(self) -> list[dict[str, Any]]:
        """The platform's quarantines, the oldest first."""
        answer = send("GET", f"{self._hub_url}/api/v1/quarantines/", params={"platform": self._slug, "limit": 100})
        return sorted(_checked(answer).json()["results"], key=lambda one: str(one["proposed_at"]))

    def _mended(self, listed: list[dict[str, Any]]) -> dict[str, Any] | None:
        """The one about the test that is mended, and no other."""
        name = mended_test(self._character)
        for one in listed:
            members = _checked(send("GET", f"{self._hub_url}/api/v1/quarantines/{one['id']}/")).json()["members"]
            if [member["name"] for member in members] == [name]:
                return one
        return None

    def _sign_in(self, over: requests.Session) -> str:
        """Returns what a page's forms carry against forgery."""
        url = f"{self._hub_url}/accounts/login/"
        page = _checked(_anew("GET", url, over))
        form = {"username": ACCOUNT, "password": ACCOUNT, "csrfmiddlewaretoken": _token_of(page)}
        _checked(_anew("POST", url, over, data=form))
        return _token_of(_checked(_anew("GET", f"{self._hub_url}/account/", over)))

    def _act(
        self,
        over: requests.Session,
        token: str,
        quarantine: dict[str, Any],
        verb: str,
        at: datetime.datetime,
        **said: str,
    ) -> dict[str, Any]:
        url = f"{self._hub_url}/api/v1/quarantines/{quarantine['id']}/{verb}/"
        headers = {"X-CSRFToken": token}
        if at < datetime.datetime.now(datetime.UTC) - PRESENT:
            headers[CLOCK_HEADER] = at.isoformat()
        answer = _anew("POST", url, over, json={"revision": quarantine["revision"], **said}, headers=headers)
        moved: dict[str, Any] = _checked(answer).json()
        return moved


class Refused(Exception):
    """The hub did not do what was asked."""


def _anew(method: str, url: str, over: requests.Session, **options: Any) -> requests.Response:
    """With the session's cookies, over a connection of its own, and no further: a server may close a kept one just as
    the next request goes out, and a POST is not sent twice."""
    over.close()
    return send(method, url, over=over, allow_redirects=False, **options)


def _checked(answer: requests.Response) -> requests.Response:
    if answer.status_code >= 400:
        raise Refused(one_line(answer))
    return answer


def _token_of(page: requests.Response) -> str:
    found = _TOKEN.search(page.text)
    if found is None:
        raise Refused(f"{page.url} has no form")
    return found[1]


def _decided_at(one: dict[str, Any]) -> datetime.datetime:
    return datetime.datetime.fromisoformat(one["proposed_at"]) + DECIDED_AFTER
