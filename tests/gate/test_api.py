"""`GET /api/v1/gate/` and the gate's answer on the pages of pull requests and commits."""

from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from apps.core.clock import now
from tests.factories.pages import Page, problem, problem_body
from tests.gate.field import HEAD, KESTREL, NUMBER, PLACE, Field, hours, main_sha


def get(client: Client, **query: Any) -> Any:
    return client.get("/api/v1/gate/", query)


def test_the_answer_as_programs_read_it(gate_field: Field, client: Client) -> None:
    gate_field.sends()
    gate_field.fails({"test_a": "boom"})
    gate_field.reports({}, sha=main_sha(PLACE), at=-1)
    answer = get(client, pr=NUMBER).json()
    test = {
        "kind": "test",
        "label": "TestX.test_a",
        "url": f"{settings.BASE_URL}/tests/{gate_field.test('test_a').pk}/",
    }
    base = {
        "kind": "commit",
        "label": f"base {main_sha(PLACE)[:12]}",
        "url": f"{settings.BASE_URL}/commit/{main_sha(PLACE)}/",
    }
    hashed = answer["inputs_hash"]
    assert answer == {
        "verdict": "fail",
        "sha": HEAD,
        "pr": NUMBER,
        "at": answer["at"],
        "policy": 0,
        "inputs_hash": hashed,
        "requirements": [
            {
                "type": "unsatisfied",
                "effect": "blocks",
                "repository": KESTREL,
                "level": "L4",
                "outcome": "",
                "sentence": "1 new failure of 1 red test.",
                "rows": [test, base],
                "rows_total": 2,
            }
        ],
        "stored": {"at": answer["at"], "verdict": "fail", "inputs_hash": hashed},
    }
    assert len(hashed) == 64
    assert get(client, sha=HEAD[:12]).json()["inputs_hash"] == hashed


def test_when_replays_what_was_said_then(gate_field: Field, client: Client) -> None:
    gate_field.sends()
    said = gate_field.asks(0.4)
    gate_field.says("success")
    answer = get(client, pr=NUMBER, when=hours(0.45).isoformat()).json()
    assert (answer["verdict"], answer["inputs_hash"]) == ("pending", said.inputs_hash)
    assert answer["stored"]["inputs_hash"] == said.inputs_hash
    assert get(client, pr=NUMBER).json()["verdict"] == "pass"


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ({}, "sha", "sha, pr: neither is there, send one of them."),
        ({"sha": "xyz"}, "sha", "sha: saw 'xyz', send 7 to 40 hexadecimal characters."),
        ({"pr": "0"}, "pr", "pr: saw '0', send the number of a pull request."),
        ({"pr": "9" * 30}, "pr", f"pr: saw '{'9' * 20}', send the number of a pull request."),
        ({"pr": "7", "when": "soon"}, "when", "when: saw 'soon', send a time like 2026-11-30T14:00:00Z."),
        ({"pr": "7", "when": "2026-11-30"}, "when", "when: saw '2026-11-30', send a time like 2026-11-30T14:00:00Z."),
        (
            {"pr": "7", "when": "9000-01-01T00:00:00Z"},
            "when",
            "when: lies ahead, send a time that has passed, or none.",
        ),
    ],
)
def test_what_cannot_be_read_is_named(gate_field: Field, client: Client, query: Any, field: str, words: str) -> None:
    assert problem(get(client, **query)) == problem_body("malformed", words, field)


def test_what_the_hub_was_not_told_of_is_not_found(gate_field: Field, client: Client) -> None:
    gate_field.sends()
    status, _, body = problem(get(client, pr=8))
    assert (status, body["code"]) == (404, "not_found")
    assert get(client, pr=NUMBER, when=hours(-1).isoformat()).status_code == 404


@pytest.mark.parametrize("path", [f"/pr/{NUMBER}/", f"/commit/{HEAD[:9]}/"])
def test_the_page_says_it_with_reasons(gate_field: Field, client: Client, path: str) -> None:
    gate_field.sends(gate_field.kestrel, gate_field.fen)
    gate_field.fails({"test_a": "boom"})
    page = Page(client.get(path))
    assert page.tables["gate"] == [
        (
            "■ unsatisfied",
            "kestrel/torch L4",
            "1 red test of which the base is unknown: blocks, by policy. 1 row test TestX.test_a",
        ),
        ("○ informational", "fen/torch L3", "Nothing heard; L3 never blocks."),
    ]
    assert f"/tests/{gate_field.test('test_a').pk}/" in page.links


def test_the_newest_head_is_the_one_that_counts(gate_field: Field, client: Client) -> None:
    gate_field.sends()
    gate_field.fails({"test_a": "boom"})
    gate_field.sends(sha="ef" * 20, at=2)
    gate_field.says("success", sha="ef" * 20, at=3)
    answer = get(client, pr=NUMBER).json()
    assert (answer["sha"], answer["verdict"]) == ("ef" * 20, "pass")
    assert get(client, sha=HEAD).json()["verdict"] == "fail"
    assert answer["at"] <= now().isoformat()
