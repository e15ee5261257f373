"""An upload on its way to the hub."""

import re
from dataclasses import dataclass
from typing import Any

from accelhub_client.console import Progress, clean
from accelhub_client.exits import Stop
from accelhub_client.multipart import Multipart, Part
from accelhub_client.refusals import sentence
from accelhub_client.retries import retried
from accelhub_client.tokens import Tokens
from accelhub_client.transport import Address, Answer, exchange

PATH = "/api/v1/reports/"
RECEIVED, DUPLICATE, IGNORED = "received", "duplicate", "ignored"
REPORT_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Taken:
    """The hub's answer. `report` and `receipt` are '' where the upload was ignored."""

    status: str
    report: str = ""
    receipt: str = ""


def send(hub: Address, meta: dict[str, Any], parts: list[Part], tokens: Tokens) -> Taken:
    """Upload files. The same again is harmless: the hub answers `duplicate`. Each attempt has a token of its own.

    Raises Stop `refused`, `unavailable` or `no_token`.
    """
    progress = Progress("Uploading", sum(part.length for part in parts))
    body = Multipart(meta, parts, progress.advance)

    def ask() -> Answer:
        token = tokens()
        progress.restart()
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": body.content_type,
            "Accept": "application/json, application/problem+json",
        }
        try:
            return exchange("POST", hub.at(PATH), headers, body)
        finally:
            progress.end()

    return retried("The upload", ask, _read)


def _read(answer: Answer) -> Taken:
    if 300 <= answer.status < 400:
        there = clean(answer.headers.get("Location", ""))
        raise Stop("refused", f"The hub redirects to {there}. An upload does not follow: give the hub's own --url.")
    if answer.status >= 400:
        raise Stop("refused", sentence(answer))
    said = answer.json()
    if said.get("status") == IGNORED:
        return Taken(IGNORED)
    report = said.get("id")
    if (
        said.get("status") not in (RECEIVED, DUPLICATE)
        or not isinstance(report, str)
        or not REPORT_ID.fullmatch(report)
    ):
        raise Stop("unavailable", f"HTTP {answer.status}, but no receipt of a hub. Is --url the hub's address?")
    return Taken(said["status"], report, clean(said.get("receipt", "")))
