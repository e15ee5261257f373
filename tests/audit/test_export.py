"""The log as a file: for anyone without what is private, for the operator with every body; and the proof of both."""

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from apps.audit import checkpoints, publishing, selectors
from apps.audit.chain import stamp
from apps.audit.models import Event, Head
from apps.audit.offline import examine
from apps.core.clock import now
from tests.environment import without_ours
from tests.factories.checkpoints import public_key, seed, signed
from tests.factories.events import event

ROOT = Path(__file__).parents[2]
ROUTES = pytest.mark.parametrize("address", ["/decisions/export.jsonl", "/api/v1/decisions/export.jsonl"])


@pytest.fixture
def three(db: None, settings: Settings) -> list[Event]:
    """Two decisions and an event that is none; the hub signs."""
    settings.CHECKPOINT_KEY = seed()
    return [event("one"), event("private to two", is_decision=False), event("three")]


def saved(client: Client, address: str = "/decisions/export.jsonl") -> bytes:
    answer = client.get(address)
    assert answer.status_code == 200
    return b"".join(answer)


@ROUTES
def test_anyone_gets_the_whole_log_but_for_private_bodies(
    client: Client, three: list[Event], address: str, settings: Settings
) -> None:
    content = saved(client, address)
    rows = [json.loads(line) for line in content.splitlines()]
    assert rows[0] == {
        "format": "accelhub-decision-log/1",
        "hub": settings.BASE_URL,
        "upstream": "pytorch/pytorch",
        "scope": "public",
        "at": rows[0]["at"],
    }
    one, two, three_ = three
    assert rows[1:4] == [
        {"seq": 1, "body": one.body, "previous_hash": one.previous_hash, "hash": one.hash},
        {"seq": 2, "withheld": True, "previous_hash": one.hash, "hash": two.hash},
        {"seq": 3, "body": three_.body, "previous_hash": two.hash, "hash": three_.hash},
    ]
    assert rows[4] == {"end": 3, "hash": three_.hash, "count": 3, "withheld": 1, "digest": rows[4]["digest"]}
    assert b"private to two" not in content
    found = examine(content.splitlines(keepends=True))
    assert (found.verified_to, found.withheld, found.finding) == (3, 1, "")


@ROUTES
def test_it_is_a_file_to_keep_and_nobodys_cache_holds_it(client: Client, three: list[Event], address: str) -> None:
    headers = client.get(address).headers
    assert (headers["Content-Type"], headers["Cache-Control"]) == ("application/jsonl", "no-store")
    assert headers["Content-Disposition"] == 'attachment; filename="accelhub-decisions.jsonl"'


@pytest.mark.django_db
def test_an_empty_log_is_a_whole_file(client: Client) -> None:
    found = examine(saved(client).splitlines(keepends=True))
    assert (found.verified_to, found.finding) == (0, "")


def test_it_is_one_moment_of_the_log_whatever_is_appended_meanwhile(
    client: Client, three: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selectors, "EXPORT_BATCH", 2)
    pieces = iter(client.get("/decisions/export.jsonl"))
    content = [next(pieces), next(pieces)]
    event("four")
    content += pieces
    found = examine(b"".join(content).splitlines(keepends=True))
    assert (found.verified_to, found.finding) == (3, "")


@pytest.mark.parametrize(("rows", "queries"), [(1, 3), (3, 3), (450, 5)])
def test_it_holds_few_events_in_memory_at_once(
    client: Client, rows: int, queries: int, db: None, django_assert_num_queries: Any
) -> None:
    for _ in range(rows):
        event()
    with django_assert_num_queries(queries):
        assert saved(client).count(b"\n") == rows + 2


def test_the_operators_export_has_every_body_and_is_theirs_alone(three: list[Event], tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    call_command("audit", "export", str(file))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert rows[0]["scope"] == "full"
    assert [row["body"] for row in rows[1:4]] == [each.body for each in three]
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]
    assert file.stat().st_mode & 0o777 == 0o600
    out = StringIO()
    call_command("audit", "export", "-", "--public", stdout=out)
    assert '"scope":"public"' in out.getvalue()
    assert examine([line.encode() for line in out.getvalue().splitlines(keepends=True)]).finding == ""
    with pytest.raises(CommandError) as caught:
        call_command("audit", "export", str(tmp_path / "nowhere" / "log.jsonl"))
    assert str(caught.value) == f"{tmp_path}/nowhere/log.jsonl: cannot be written (No such file or directory)."


@pytest.mark.parametrize("public", [True, False])
def test_whoever_kept_a_checkpoint_proves_what_came_later(
    three: list[Event], tmp_path: Path, public: bool, settings: Settings
) -> None:
    """The proof runs with no environment of ours: no database, no settings, no secrets."""
    made = publishing.make(now=now())
    (tmp_path / "kept.json").write_text(made.file)
    later = event("four")
    call_command("audit", "export", str(tmp_path / "log.jsonl"), *(["--public"] if public else []))
    done = proved(tmp_path, "--export", "log.jsonl", "--checkpoint", "kept.json", "--public-key", public_key())
    withheld = 1 if public else 0
    assert (done.stdout.splitlines(), done.stderr, done.returncode) == (
        [
            f"4 events of {settings.BASE_URL}, {withheld} of them withheld, chain sound, head {later.hash}",
            f"Nothing up to event 3 was changed since checkpoint 1 of {stamp(made.at)}, key {made.key_id}",
        ],
        "",
        0,
    )
    assert not (tmp_path / "data").exists()


def proved(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = without_ours(os.environ) | {"ACCELHUB_DATA_DIR": str(folder / "data")}
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "audit", "verify", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def verify(*words: str) -> str:
    """What the command refuses with; empty where it does not."""
    try:
        call_command("audit", "verify", *words, stdout=StringIO())
    except CommandError as error:
        return str(error)
    return ""


@pytest.fixture
def kept(three: list[Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, ours, with an export and a checkpoint of it."""
    (tmp_path / "kept.json").write_text(publishing.make(now=now()).file)
    call_command("audit", "export", str(tmp_path / "log.jsonl"), "--public")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_export_alone_proves_no_more_than_that_it_fits_itself(kept: Path, capsys: Any) -> None:
    call_command("audit", "verify", "--export", "log.jsonl")
    assert (
        capsys.readouterr().out.splitlines()[-1].startswith("Without a checkpoint that was kept, this proves no more")
    )


def test_every_way_to_be_wrong_ends_with_a_sentence(kept: Path) -> None:
    head = Head.objects.get().hash
    log, checkpoint = (kept / "log.jsonl").read_text(), json.loads((kept / "kept.json").read_text())
    given = ("--export", "log.jsonl", "--checkpoint")
    assert verify(*given, "kept.json") == ""

    (kept / "cut.jsonl").write_text(log[:-1])
    (kept / "forged.json").write_text(json.dumps(checkpoint | {"text": checkpoint["text"].replace(head, "f" * 64)}))
    (kept / "other.json").write_text(json.dumps(checkpoint | {"text": "{}"}))
    assert verify("--export", "cut.jsonl") == (
        "Broken after event 3: line 5 stops in its middle: the export was cut short after event 3."
    )
    assert verify(*given, "forged.json") == "forged.json was changed: its signature does not fit its text."
    assert verify(*given, "other.json") == "other.json is no checkpoint of the format accelhub-checkpoint/1."
    assert verify(*given, "log.jsonl") == "log.jsonl is no checkpoint: it has no `text` and `signature`."
    assert verify(*given, "gone.json").startswith("gone.json: cannot be read (")
    assert verify("--export", "gone.jsonl") == "gone.jsonl: cannot be read (No such file or directory)."
    about = "--checkpoint and --public-key are about an export: give --export FILE too."
    assert verify("--checkpoint", "kept.json") == verify("--public-key", public_key()) == about

    ours, other = checkpoints.key_id(public_key()), checkpoints.key_id(public_key("another"))
    assert verify(*given, "kept.json", "--public-key", public_key("another")) == (
        f"Checkpoint 1 is signed by the key {ours}, not by {other}: it is another hub's, or of another key of this one."
    )
    assert verify(*given, "kept.json", "--public-key", "x") == (
        "--public-key is neither a public key in PEM nor 32 bytes in base64."
    )
    (kept / "key.txt").write_text(f"{public_key()}\n")
    assert verify(*given, "kept.json", "--public-key", "key.txt") == ""


def test_checkpoints_that_do_not_belong_together_are_refused(kept: Path, settings: Settings) -> None:
    event("four")
    (kept / "second.json").write_text(publishing.make(now=now()).file)
    call_command("audit", "export", "log.jsonl", "--public")
    both = ("--export", "log.jsonl", "--checkpoint", "second.json", "--checkpoint")
    assert verify(*both, "kept.json") == ""
    other = signed(number=1, seq=1)
    (kept / "other.json").write_text(checkpoints.file_of(other.text, other.signature))
    assert verify(*both, "other.json") == (
        "The checkpoints do not belong together: checkpoint 2 does not follow checkpoint 1: its `previous` is another."
    )
