"""The listing as a file: `manage.py allowlist export` and `GET /allowlist.yml`."""

import hashlib
import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accelhub.env import BASE_DIR
from apps.platforms.allowlist import dump, parse
from apps.platforms.selectors import listing
from tests.factories.listing import listed
from tests.platforms.test_allowlist import UPSTREAM

pytestmark = pytest.mark.django_db
URL = "/allowlist.yml"

LISTING: dict[str, int | tuple[int, dict[str, Any]]] = {
    "z/late": 1,
    "B/second": (1, {"oncalls": ["alice", "bob"]}),
    "a/first": (1, {"events": ["nightly"]}),
    "c/xpu": (3, {"device": "xpu", "oncalls": ["no"]}),
    "d/npu": (3, {"device": "npu", "oncalls": ["carol", "dave"], "events": ["pull_request"]}),
}
TEXT = """\
L1:
  - a/first:
      events: [nightly]
  - B/second: alice, bob
  - z/late
L2:
L3:
  npu:
    d/npu:
      oncalls: [carol, dave]
      events: [pull_request]
  xpu:
    c/xpu: ["no"]
L4:
"""


def export(name: str) -> str:
    out = io.StringIO()
    call_command("allowlist", "export", name, stdout=out)
    return out.getvalue()


def test_the_listing_is_written_in_one_order_however_it_came() -> None:
    listed(LISTING)
    assert export("-") == TEXT
    listed(dict(reversed(list(LISTING.items()))))
    assert export("-") == TEXT


def test_what_is_exported_can_be_imported_and_changes_nothing(tmp_path: Path) -> None:
    upstream = tmp_path / "upstream.yml"
    upstream.write_text(UPSTREAM)
    call_command("allowlist", "import", str(upstream), stdout=io.StringIO())
    file = tmp_path / "allowlist.yml"
    assert export(str(file)) == f"{file}: 10 entries written\n"
    out = io.StringIO()
    call_command("allowlist", "import", str(file), stdout=out)
    assert out.getvalue() == "10 entries read, 0 changed\n"
    assert set(parse(file.read_text()).entries) == set(parse(UPSTREAM).entries) == set(listing())


def test_the_example_of_the_guide_is_written_as_the_hub_writes() -> None:
    guide = (BASE_DIR / "docs" / "allowlist.md").read_text()
    example = guide.partition("```yaml\n")[2].partition("```")[0]
    assert dump(parse(example).entries) == example


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"^.*/nowhere/a\.yml: No such file or directory\.$"):
        export(f"{tmp_path}/nowhere/a.yml")


def test_it_is_published(client: Client) -> None:
    listed(LISTING)
    answer = client.get(URL)
    assert (answer.status_code, answer.content.decode()) == (200, TEXT)
    assert {name: answer.headers[name] for name in ("Content-Type", "ETag", "Cache-Control")} == {
        "Content-Type": "application/yaml; charset=utf-8",
        "ETag": f'"{hashlib.sha256(TEXT.encode()).hexdigest()}"',
        "Cache-Control": "public, max-age=60",
    }
    assert "Cookie" not in answer.headers.get("Vary", "")


def test_who_has_it_is_told_so_until_it_changes(client: Client) -> None:
    listed({"a/b": 1})
    etag = client.get(URL).headers["ETag"]
    known = client.get(URL, headers={"if-none-match": f'"other", {etag}'})
    assert (known.status_code, known.content, known.headers["ETag"]) == (304, b"", etag)
    listed({"a/b": 2})
    assert client.get(URL, headers={"if-none-match": etag}).content == b"L1:\nL2:\n  - a/b\nL3:\nL4:\n"


def test_an_empty_list_is_one_too(client: Client) -> None:
    assert client.get(URL).content == b"L1:\nL2:\nL3:\nL4:\n"
    assert (client.head(URL).status_code, client.post(URL).status_code) == (200, 405)
