"""`POST /github/webhook`."""

import json
from typing import Any

import pytest
from django.test import Client, override_settings

from apps.core.models import Wakeup
from apps.relay import tasks
from apps.relay.models import Delivery, Dispatch
from tests.factories.listing import listed
from tests.relay.downstream import HEAD_SHA, PAYLOAD, refusal, send_webhook, sign

pytestmark = pytest.mark.django_db


def stored() -> list[tuple[Any, ...]]:
    return list(Delivery.objects.values_list("delivery_id", "event", "action", "state", "pr_number", "head_sha"))


@pytest.mark.parametrize("path", ["/github/webhook", "/github/webhook/"])
def test_a_delivery_is_stored_and_answered_before_anything_is_sent(client: Client, path: str) -> None:
    raw = json.dumps(PAYLOAD).encode()
    headers = {"X-GitHub-Event": "pull_request", "X-GitHub-Delivery": "d-7", "X-Hub-Signature-256": sign(raw)}
    response = client.post(path, raw, content_type="application/json", headers=headers)
    assert (response.status_code, response.json()) == (202, {"ok": True, "delivery_id": "d-7", "status": "accepted"})
    assert stored() == [("d-7", "pull_request", "opened", "received", 184233, HEAD_SHA)]
    assert Delivery.objects.get().body.encode() == raw
    key = str(Delivery.objects.get().pk)
    assert list(Wakeup.objects.order_by("pk").values_list("topic", "key")) == [
        ("delivery_received", key),
        ("graph_pending", "graph"),
        ("delivery_for_checks", key),
    ]


def test_a_redelivery_is_a_duplicate_and_changes_nothing(client: Client) -> None:
    send_webhook(client, PAYLOAD, delivery_id="d-7")
    before = list(Delivery.objects.values())
    response = send_webhook(client, PAYLOAD | {"action": "closed"}, delivery_id="d-7")
    assert (response.status_code, response.json()["status"]) == (200, "duplicate")
    assert list(Delivery.objects.values()) == before


def test_a_push_keeps_its_ref_and_commit(client: Client) -> None:
    body = {"ref": "refs/heads/main", "after": HEAD_SHA, "repository": {"full_name": "pytorch/pytorch"}}
    assert send_webhook(client, body, event="push").status_code == 202
    assert list(Delivery.objects.values_list("event", "ref", "head_sha", "pr_number")) == [
        ("push", "refs/heads/main", HEAD_SHA, None)
    ]


def test_another_action_is_remembered_without_its_body(client: Client) -> None:
    response = send_webhook(client, PAYLOAD | {"action": "edited"})
    assert (response.status_code, response.json()["status"]) == (200, "ignored")
    assert list(Delivery.objects.values_list("state", "body")) == [("ignored", "")]
    assert not Wakeup.objects.exists()


@pytest.mark.parametrize(
    ("body", "event"),
    [
        (PAYLOAD, "issues"),
        ({"zen": "Keep it logically awesome."}, "ping"),
        (PAYLOAD | {"repository": {"full_name": "demo-fork/pytorch"}}, "pull_request"),
        (PAYLOAD | {"repository": "pytorch/pytorch"}, "pull_request"),
    ],
)
def test_what_is_not_ours_is_ignored_and_not_kept(client: Client, body: Any, event: str) -> None:
    response = send_webhook(client, body, event=event)
    assert (response.status_code, response.json()) == (200, {"ok": True, "delivery_id": "d-1", "status": "ignored"})
    assert stored() == []


def test_the_upstream_repository_is_compared_without_case(client: Client) -> None:
    body = PAYLOAD | {"repository": {"full_name": "PyTorch/PyTorch"}}
    assert send_webhook(client, body).status_code == 202


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        ("", (400, "signature_missing", "X-Hub-Signature-256")),
        ("sha256=" + "0" * 64, (401, "signature_wrong", "X-Hub-Signature-256")),
        (sign(json.dumps(PAYLOAD).encode(), "another secret"), (401, "signature_wrong", "X-Hub-Signature-256")),
        ("sha1=abc", (401, "signature_wrong", "X-Hub-Signature-256")),
        ("ü", (401, "signature_wrong", "X-Hub-Signature-256")),
    ],
)
def test_a_body_without_its_signature_is_refused(client: Client, signature: str, expected: Any) -> None:
    assert refusal(send_webhook(client, PAYLOAD, signature=signature)) == expected
    assert stored() == []


def test_no_signature_fits_a_hub_without_a_secret(client: Client) -> None:
    with override_settings(GITHUB_WEBHOOK_SECRET=""):
        response = send_webhook(client, PAYLOAD, signature=sign(json.dumps(PAYLOAD).encode(), ""))
    assert refusal(response) == (401, "signature_wrong", "X-Hub-Signature-256")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'"text"',
        b'{"a":' * 100_000,
        b"[" * 100_000,
        b"1" * 5_000,
    ],
)
def test_a_signed_body_that_is_no_json_object_is_malformed(client: Client, raw: bytes) -> None:
    assert refusal(send_webhook(client, raw)) == (400, "malformed", None)


@pytest.mark.parametrize("delivery_id", ["", "x" * 101, "a b", "ü", "d/1"])
def test_a_delivery_needs_an_id(client: Client, delivery_id: str) -> None:
    assert refusal(send_webhook(client, PAYLOAD, delivery_id=delivery_id)) == (400, "malformed", "X-GitHub-Delivery")


def test_hostile_facts_are_stored_as_text_or_not_at_all(client: Client) -> None:
    request = PAYLOAD["pull_request"] | {"title": "a\x00b\ud800c" + "x" * 400, "number": "12", "head": ["no"]}
    assert send_webhook(client, PAYLOAD | {"pull_request": request}).status_code == 202
    title = ("a\ufffdb\ufffdc" + "x" * 400)[:300]
    assert list(Delivery.objects.values_list("title", "pr_number", "head_sha", "ref")) == [(title, None, "", "")]


@pytest.mark.parametrize("number", [0, -1, 2**63, True, 1.5, None, []])
def test_a_number_that_no_pull_request_has_is_none(client: Client, number: Any) -> None:
    body = PAYLOAD | {"number": number, "pull_request": PAYLOAD["pull_request"] | {"number": number}}
    assert send_webhook(client, body).status_code == 202
    assert Delivery.objects.get().pr_number is None


@pytest.mark.parametrize("method", ["get", "put", "delete", "patch"])
def test_only_post_is_answered(client: Client, method: str) -> None:
    response = getattr(client, method)("/github/webhook")
    assert refusal(response) == (405, "method", None)
    assert response.headers["Allow"] == "POST"


def test_the_task_makes_dispatches_for_who_takes_part(client: Client) -> None:
    listed(
        {
            "kestrel-demo/torch-kestrel": 2,
            "pallas-demo/torch-pallas": 1,
            "night-demo/torch-night": (2, {"events": ["nightly"]}),
        }
    )
    send_webhook(client, PAYLOAD)
    key = Wakeup.objects.get(topic="delivery_received").key
    tasks.fan_out_deliveries([key])
    tasks.fan_out_deliveries([key])
    assert list(Dispatch.objects.order_by("repository__full_name").values_list("repository__full_name", "state")) == [
        ("kestrel-demo/torch-kestrel", "pending"),
        ("pallas-demo/torch-pallas", "pending"),
    ]
    assert stored()[0][3] == "fanned_out"
    assert set(Wakeup.objects.filter(topic="dispatch_pending").values_list("key", flat=True)) == {
        str(pk) for pk in Dispatch.objects.values_list("pk", flat=True)
    }
