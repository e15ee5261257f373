"""Signed checkpoints: made once a day or by hand, chained, kept for good, published with the key."""

import datetime
import json
from io import StringIO
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client
from pytest_django import Settings

from apps.audit import checkpoints, publishing, services
from apps.audit.chain import GENESIS, stamp
from apps.audit.checkpoints import CheckpointError
from apps.audit.models import Checkpoint
from apps.audit.tasks import make_checkpoint
from apps.core.clock import now
from tests.environment import private_key
from tests.factories.checkpoints import key, public_key, seed, signed
from tests.factories.events import event
from tests.factories.jobs import days_ago
from tests.factories.pages import Page, problem

pytestmark = pytest.mark.django_db
NOON = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)


@pytest.fixture
def signing(settings: Settings) -> Settings:
    settings.CHECKPOINT_KEY = seed()
    return settings


def numbers() -> list[tuple[int, int]]:
    return list(Checkpoint.objects.order_by("number").values_list("number", "seq"))


# --- keys -------------------------------------------------------------------------------------------------------


def test_a_key_is_read_from_pem_and_from_base64() -> None:
    pem = key().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public_pem = (
        key().public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    for text in (pem.decode(), seed(), f"{seed()}\n"):
        assert checkpoints.public_key_of(checkpoints.read_private_key(text)) == public_key()
    for text in (public_pem.decode(), public_key(), f" {public_key()}\n"):
        assert checkpoints.read_public_key(text) == public_key()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", "is neither an Ed25519 key in PEM nor 32 bytes in base64"),
        ("c2hvcnQ=", "is neither an Ed25519 key in PEM nor 32 bytes in base64"),
        ("schlüssel", "is neither an Ed25519 key in PEM nor 32 bytes in base64"),
        ("-----BEGIN PRIVATE KEY-----\nx", "is neither an Ed25519 key in PEM nor 32 bytes in base64"),
        (private_key(), "is a key of another kind than Ed25519"),
    ],
)
def test_what_is_no_key_is_refused_without_repeating_it(text: str, said: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        checkpoints.read_private_key(text)
    assert (str(caught.value), caught.value.__cause__) == (said, None)


def test_a_signature_of_another_key_does_not_fit() -> None:
    good, other = signed(), signed("another hub")
    assert checkpoints.read(good.text, good.signature) == good
    for text, signature in ((good.text, other.signature), (good.text + " ", good.signature), (good.text, "?")):
        with pytest.raises(CheckpointError) as caught:
            checkpoints.read(text, signature)
        assert str(caught.value) == "was changed: its signature does not fit its text"


@pytest.mark.parametrize("value", [None, 5, [], "[]", "{}", "null", '{"format":"accelhub-checkpoint/2"}'])
def test_what_is_no_checkpoint_is_refused(value: Any) -> None:
    with pytest.raises(CheckpointError) as caught:
        checkpoints.read(value, "")
    assert str(caught.value) == "is no checkpoint of the format accelhub-checkpoint/1"


# --- making -----------------------------------------------------------------------------------------------------


def test_one_says_where_the_log_stands_and_is_signed(signing: Settings) -> None:
    one = event("one")
    made = publishing.make(now=NOON)
    read = checkpoints.read_file(made.file)
    assert json.loads(read.text) == {
        "format": "accelhub-checkpoint/1",
        "number": 1,
        "at": stamp(NOON),
        "hub": signing.BASE_URL,
        "upstream": "pytorch/pytorch",
        "seq": 1,
        "hash": one.hash,
        "export_digest": read.export_digest,
        "previous": GENESIS,
        "public_key": public_key(),
    }
    assert (made.number, made.at, made.seq, made.hash, made.key_id) == (1, NOON, 1, one.hash, read.key_id)


def test_each_names_the_one_before(signing: Settings) -> None:
    event()
    first = publishing.make(now=NOON)
    event()
    second = publishing.make(now=NOON)
    assert second.previous == checkpoints.read_file(first.file).digest
    assert services.verify(now=now()).finding == ""


def test_the_days_is_made_once_and_by_hand_one_whenever_the_log_has_grown(signing: Settings) -> None:
    assert publishing.make_daily(now=NOON) is None  # an empty log
    event()
    for moment in (NOON, NOON + DAY / 3, NOON + DAY / 2):
        publishing.make_daily(now=moment)
    assert numbers() == [(1, 1), (2, 1)]  # the third is of the next day
    assert publishing.make(now=NOON + DAY / 2).number == 2
    event()
    assert publishing.make(now=NOON + DAY / 2).number == 3
    publishing.make_daily(now=NOON + DAY / 2)
    assert numbers() == [(1, 1), (2, 1), (3, 2)]


def test_the_task_says_what_it_did(signing: Settings, caplog: pytest.LogCaptureFixture) -> None:
    assert make_checkpoint() == "no checkpoint"
    event()
    assert make_checkpoint() == make_checkpoint() == "checkpoint 1, to event 1"
    assert caplog.record_tuples == []


def test_without_a_key_there_are_none(settings: Settings) -> None:
    settings.CHECKPOINT_KEY = ""
    event()
    assert (make_checkpoint(), numbers()) == ("no checkpoint", [])
    with pytest.raises(CommandError) as caught:
        call_command("audit", "checkpoint")
    assert str(caught.value) == (
        "No checkpoint: ACCELHUB_CHECKPOINT_KEY is not set: set it, or ACCELHUB_CHECKPOINT_KEY_FILE."
    )


def test_by_hand(signing: Settings) -> None:
    with pytest.raises(CommandError, match=r"No checkpoint: the log holds no event yet\."):
        call_command("audit", "checkpoint")
    event()
    for _ in range(2):
        out = StringIO()
        call_command("audit", "checkpoint", stdout=out)
        assert out.getvalue() == f"checkpoint 1 to event 1, key {checkpoints.key_id(public_key())}\n"


def tamper(table: str, *statements: str) -> None:
    """Change a table as a superuser who switches its guards off."""
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        for statement in statements:
            cursor.execute(statement)
        cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def test_a_broken_log_gets_no_checkpoint(signing: Settings, caplog: pytest.LogCaptureFixture) -> None:
    event()
    event()
    tamper("audit_event", "DELETE FROM audit_event WHERE seq = 1")
    said = "the log is broken after event 0: event 1 is missing: the next one stored is 2"
    assert (make_checkpoint(), numbers()) == (said, [])
    assert [record.getMessage() for record in caplog.records] == [f"no checkpoint of the audit log: {said}"]


# --- kept for good ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["origin", "replica"])
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE audit_checkpoint SET seq = 1", "the audit log is append-only: UPDATE on audit_checkpoint is refused"),
        ("DELETE FROM audit_checkpoint", "the audit log is append-only: DELETE on audit_checkpoint is refused"),
        ("TRUNCATE audit_checkpoint", "the audit log is append-only: TRUNCATE on audit_checkpoint is refused"),
        (
            "INSERT INTO audit_checkpoint SELECT 3, at, seq, hash, previous, public_key, text, signature "
            "FROM audit_checkpoint",
            "checkpoint 3 does not follow checkpoint 1",
        ),
        (
            "INSERT INTO audit_checkpoint SELECT 2, at, seq, hash, previous, public_key, text, signature "
            "FROM audit_checkpoint",
            "checkpoint 2 does not follow checkpoint 1",
        ),
        (
            "INSERT INTO audit_checkpoint SELECT 2, at, seq, repeat('f', 64), encode(sha256(convert_to(text, 'UTF8')), "
            "'hex'), public_key, text, signature FROM audit_checkpoint",
            "checkpoint 2 names no event of the log",
        ),
        (
            "INSERT INTO audit_checkpoint SELECT 2, at, seq - 1, hash, encode(sha256(convert_to(text, 'UTF8')), "
            "'hex'), public_key, text, signature FROM audit_checkpoint",
            "checkpoint 2 does not follow checkpoint 1",
        ),
    ],
)
def test_postgresql_lets_nothing_in_but_the_next(signing: Settings, statement: str, words: str, role: str) -> None:
    event()
    event()
    publishing.make(now=NOON)
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL session_replication_role = {role}")
        with pytest.raises(IntegrityError) as caught, transaction.atomic():
            cursor.execute(statement)
    assert str(caught.value).splitlines()[0] == words
    assert numbers() == [(1, 2)]


ANEW = (
    "UPDATE audit_event SET body = replace(body, 'two', 'owt') WHERE seq = 2",
    "UPDATE audit_event SET hash = encode(sha256(convert_to(previous_hash || E'\\n' || body, 'UTF8')), 'hex') "
    "WHERE seq = 2",
    "UPDATE audit_event SET previous_hash = (SELECT hash FROM audit_event WHERE seq = 2) WHERE seq = 3",
    "UPDATE audit_event SET hash = encode(sha256(convert_to(previous_hash || E'\\n' || body, 'UTF8')), 'hex') "
    "WHERE seq = 3",
    "ALTER TABLE audit_head DISABLE TRIGGER USER",
    "UPDATE audit_head SET hash = (SELECT hash FROM audit_event WHERE seq = 3)",
    "ALTER TABLE audit_head ENABLE TRIGGER USER",
)


@pytest.mark.parametrize(
    ("table", "statements", "verified_to", "finding"),
    [
        (
            "audit_event",
            ANEW,
            1,
            "checkpoint 2 names event 3 with another hash: it or one before it was rewritten, or cut off",
        ),
        (
            "audit_checkpoint",
            ["UPDATE audit_checkpoint SET text = replace(text, 'pytorch', 'torchpy') WHERE number = 2"],
            1,
            "checkpoint 2 was changed: its signature does not fit its text",
        ),
        (
            "audit_checkpoint",
            ["UPDATE audit_checkpoint SET at = at - interval '1 day' WHERE number = 2"],
            1,
            "checkpoint 2 was changed: a column does not repeat its text",
        ),
        (
            "audit_checkpoint",
            ["DELETE FROM audit_checkpoint WHERE number = 1"],
            0,
            "checkpoint 1 is missing: the next one is 2",
        ),
    ],
)
def test_the_hubs_own_proof_holds_the_log_against_its_checkpoints(
    signing: Settings, table: str, statements: list[str], verified_to: int, finding: str
) -> None:
    event("one")
    publishing.make(now=NOON)
    event("two")
    event("three")
    publishing.make(now=NOON)
    assert services.verify(now=now()).finding == ""
    tamper(table, *statements)
    found = services.verify(now=now())
    assert (found.verified_to, found.finding) == (verified_to, finding)


def test_a_new_key_goes_on_where_the_former_one_ended(signing: Settings) -> None:
    event()
    publishing.make(now=NOON)
    signing.CHECKPOINT_KEY = seed("the next key")
    event()
    publishing.make(now=NOON)
    assert services.verify(now=now()).finding == ""
    keys = [checkpoints.key_id(public_key(name)) for name in ("the next key", "a hub")]
    assert [row.key_id for row in Checkpoint.objects.all()] == keys


# --- published --------------------------------------------------------------------------------------------------


def test_the_page_gives_the_key_and_every_checkpoint(client: Client, signing: Settings) -> None:
    one = event()
    publishing.make(now=days_ago(2))
    event()
    publishing.make(now=now())
    page = Page(client.get("/decisions/checkpoints/"))
    key_id = checkpoints.key_id(public_key())
    assert page.facts["use"]["Public key"] == f"{public_key()} Ed25519, base64; its id is {key_id}"
    assert [row[0] for row in page.tables["checkpoints"]] == ["#2", "#1"]
    assert page.tables["checkpoints"][1] == ("#1", "2 d ago", "1", one.hash[:7], key_id, "checkpoint-000001.json")
    assert {"/decisions/export.jsonl", "/decisions/checkpoints/1.json"} <= set(page.links)


def test_without_a_key_the_page_says_so(client: Client, settings: Settings) -> None:
    settings.CHECKPOINT_KEY = ""
    page = Page(client.get("/decisions/checkpoints/"))
    assert page.facts["use"]["Public key"] == "none is configured: this hub signs no checkpoints"
    assert "This hub signs no checkpoints" in page.text
    settings.CHECKPOINT_KEY = seed()
    assert "Checkpoints appear here" in Page(client.get("/decisions/checkpoints/")).text


def test_one_is_a_file_to_keep(client: Client, signing: Settings) -> None:
    event()
    made = publishing.make(now=NOON)
    answer = client.get("/decisions/checkpoints/1.json")
    assert (answer.content.decode(), answer.headers["Content-Type"]) == (made.file, "application/json")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="checkpoint-000001.json"'
    assert client.get("/decisions/checkpoints/2.json").status_code == 404


def test_programs_read_them_newest_first(client: Client, signing: Settings) -> None:
    for _ in range(3):
        event()
        publishing.make(now=NOON)
    first = client.get("/api/v1/decisions/checkpoints/", {"limit": "2"}).json()
    rest = client.get(first["next"]).json()
    assert [row["number"] for row in first["results"] + rest["results"]] == [3, 2, 1]
    made = Checkpoint.objects.get(pk=1)
    assert rest["results"] == [
        json.loads(made.text)
        | {
            "key_id": made.key_id,
            "text": made.text,
            "signature": made.signature,
            "url": f"{signing.BASE_URL}/decisions/checkpoints/1.json",
        }
    ]
    # What somebody kept of the API serves as well as the file.
    assert checkpoints.read_file(json.dumps(rest["results"][0])) == checkpoints.read_file(made.file)
    status, _, body = problem(client.get("/api/v1/decisions/checkpoints/", {"cursor": "x"}))
    assert (status, body["code"], body["field"]) == (400, "malformed", "cursor")


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(
    ("address", "queries"), [("/decisions/checkpoints/", 2), ("/api/v1/decisions/checkpoints/", 1)]
)
def test_it_asks_as_often_for_one_row_as_for_three(
    client: Client, signing: Settings, rows: int, address: str, queries: int, django_assert_num_queries: Any
) -> None:
    for _ in range(rows):
        event()
        publishing.make(now=NOON)
    with django_assert_num_queries(queries):
        assert client.get(address).status_code == 200
