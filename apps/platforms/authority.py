"""Who owns the allowlist: this hub, or a file in the upstream repository (`ACCELHUB_ALLOWLIST_AUTHORITY`)."""

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

from django.conf import settings

HUB, FILE = "hub", "file"
AUTHORITIES = (HUB, FILE)

_NAME = r"[A-Za-z0-9._-]+"
_BLOB = re.compile(rf"/({_NAME}/{_NAME})/blob/([^/]+)/(.+)")
_CONTENTS = re.compile(rf"/repos/({_NAME}/{_NAME})/contents/(.+)")


@dataclass(frozen=True)
class FileAddress:
    """A file on a branch of a repository."""

    full_name: str
    branch: str
    path: str

    def __str__(self) -> str:
        return f"{self.full_name}/{self.path}"


def is_file() -> bool:
    """Whether the file is the authority: what is decided here takes effect when upstream merges it."""
    return settings.ALLOWLIST_AUTHORITY == FILE


def address() -> FileAddress:
    """Where the file lies. Raises ValueError like `read_address`; a system check has said so at start."""
    return read_address(settings.ALLOWLIST_URL, upstream=settings.UPSTREAM_REPO, api_url=settings.GITHUB_API_URL)


def read_address(url: str, *, upstream: str, api_url: str) -> FileAddress:
    """The file that a URL names: a page of github.com, or the configured API's contents with `?ref=`.

    Raises ValueError with a sentence that says what to write instead.
    """
    wanted = f"write https://github.com/{upstream}/blob/<branch>/<path>"
    if not url:
        raise ValueError(f"is not set: {wanted}.")
    parts, api = urlsplit(url), urlsplit(api_url)
    if (parts.scheme, parts.netloc) == ("https", "github.com") and (found := _BLOB.fullmatch(parts.path)):
        full_name, branch, path = found.groups()
    elif (parts.scheme, parts.netloc) == (api.scheme, api.netloc) and parts.path.startswith(api.path):
        found = _CONTENTS.fullmatch(parts.path.removeprefix(api.path))
        branch = parse_qs(parts.query).get("ref", [""])[0]
        if not found or not branch:
            raise ValueError(f"is {url}: {wanted}, or {api_url}/repos/{upstream}/contents/<path>?ref=<branch>.")
        full_name, path = found.groups()
    else:
        raise ValueError(f"is {url}: {wanted}.")
    if full_name.lower() != upstream.lower():
        raise ValueError(f"is {url}, a file of {full_name}: {wanted}.")
    return FileAddress(full_name, unquote(branch), unquote(path))
