"""Whom to ask, and about what: a hub, a report or a test, as the command line says it."""

import os
import re
from typing import Optional
from urllib.parse import urlsplit

from accelhub_client.exits import Stop
from accelhub_client.transport import Address, address
from accelhub_client.uploading import REPORT_ID

_TEST = re.compile(r"(?:^|/tests/)(\d{1,18})/?$")
# What stands before these in an address is where the hub itself stands.
_ROOMS = ("/reports/", "/tests/")


def hub(url: Optional[str]) -> Address:
    """The hub of `--url`, else of ACCELHUB_URL. Raises Stop `usage`."""
    found = url or os.environ.get("ACCELHUB_URL")
    if not found:
        raise Stop("usage", "--url: is missing, and ACCELHUB_URL too. Give the hub's address.")
    return address(found, "--url" if url else "ACCELHUB_URL")


def report(said: str, url: Optional[str]) -> tuple[Address, str]:
    """The hub and the report's id, of an id or of an address below a report's. Raises Stop `usage`."""
    found = REPORT_ID.search(urlsplit(said).path)
    if found is None:
        raise Stop("usage", f"{said[:100]}: holds no report's id. Give the id or the receipt's address.")
    return _hub_of(said, url), found[0]


def test(said: str, url: Optional[str]) -> tuple[Address, str]:
    """The hub and the test's number, of a number or of the address of a test's page. Raises Stop `usage`."""
    found = _TEST.search(urlsplit(said).path)
    if found is None:
        raise Stop("usage", f"{said[:100]}: is no test's number. `accelhub search` finds it by words of its name.")
    return _hub_of(said, url), found[1]


def _hub_of(said: str, url: Optional[str]) -> Address:
    """An API token goes to the hub that ACCELHUB_URL or --url names, whatever an address says."""
    if "://" not in said:
        return hub(url)
    there = address(said, "URL")
    path = min((there.path.partition(room)[0] for room in _ROOMS), key=len).removesuffix("/api/v1")
    base = Address(there.scheme, there.host, there.port, path)
    if os.environ.get("ACCELHUB_API_TOKEN") and base.origin != hub(url).origin:
        raise Stop("usage", f"{said[:100]}: is not the hub of ACCELHUB_URL, for which ACCELHUB_API_TOKEN is.")
    return base
