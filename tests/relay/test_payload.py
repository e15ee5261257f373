"""client_payload: whole while GitHub takes it, else cut to what downstreams read, and marked."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.core.clock import now
from apps.relay import outbox, services
from apps.relay.models import Delivery, Dispatch
from apps.relay.payload import LIMIT_BYTES, fitted, size_of
from apps.simulator.standin import GitHubStandIn
from tests.factories.listing import listed
from tests.relay.downstream import HEAD_SHA, PAYLOAD, Downstream, send_webhook

KESTREL = "kestrel-demo/torch-kestrel"
SHAPES = [
    ("pull_request", PAYLOAD),
    ("push", {"ref": "refs/heads/main", "after": HEAD_SHA, "repository": {"full_name": "pytorch/pytorch"}}),
]


def made(body: dict[str, Any], event: str = "pull_request") -> dict[str, Any]:
    return {"event_type": event, "delivery_id": "d-1", "payload": body}


def filled(body: dict[str, Any], size: int) -> dict[str, Any]:
    """The body with a description that makes its client_payload exactly so large."""
    body = copy.deepcopy(body) | {"description": ""}
    return body | {"description": "x" * (size - size_of(made(body)))}


@pytest.mark.parametrize(("event", "body"), SHAPES)
def test_what_fits_to_the_byte_stays_whole(event: str, body: dict[str, Any]) -> None:
    whole = made(filled(body, LIMIT_BYTES - (len(event) - len("pull_request"))), event)
    assert len(json.dumps(whole).encode()) == LIMIT_BYTES
    assert fitted(whole) is whole


@pytest.mark.parametrize(("event", "body"), SHAPES)
def test_one_byte_more_is_cut_to_what_downstreams_read_and_says_so(event: str, body: dict[str, Any]) -> None:
    whole = made(filled(body, LIMIT_BYTES + 1 - (len(event) - len("pull_request"))), event)
    assert fitted(whole) == {
        "event_type": event,
        "delivery_id": "d-1",
        "payload": body | {"trimmed_by_accelhub": {"bytes": LIMIT_BYTES + 1, "limit": LIMIT_BYTES}},
    }


def test_characters_count_as_they_are_sent() -> None:
    """An é is six bytes on the wire: a body that looks small enough is not."""
    whole = made(PAYLOAD | {"description": "é" * 11_000})
    assert len(json.dumps(whole, ensure_ascii=False).encode()) < LIMIT_BYTES < size_of(whole)
    assert "description" not in fitted(whole)["payload"]


def test_what_stands_beside_is_counted_and_stays() -> None:
    whole = made(filled(PAYLOAD, LIMIT_BYTES)) | {"token": "t" * 100}
    cut = fitted(whole)
    assert (cut["token"], "description" in cut["payload"]) == ("t" * 100, False)


def test_what_is_null_or_of_another_kind_stays_null() -> None:
    body = copy.deepcopy(PAYLOAD) | {"filler": "x" * LIMIT_BYTES}
    body["pull_request"]["head"]["repo"] = None  # the fork was deleted
    body["pull_request"]["labels"] = "none"
    kept = fitted(made(body))["payload"]["pull_request"]
    assert (kept["head"], kept["labels"]) == ({"sha": HEAD_SHA, "ref": "fold", "repo": None}, None)


@pytest.mark.django_db
def test_github_takes_the_cut_one_with_title_and_labels_intact(
    downstream: Callable[..., Downstream], client: Client, github: GitHubStandIn
) -> None:
    downstream(KESTREL)
    listed({KESTREL: 1})
    body = copy.deepcopy(PAYLOAD)
    body["pull_request"] |= {
        "title": "Ein „langer“ Titel 🚀",
        "body": "ü" * 200_000,
        "labels": [{"name": f"label {number}", "description": "y" * 500} for number in range(100)],
    }
    send_webhook(client, body)
    services.fan_out(delivery_pk=Delivery.objects.get().pk, now=now())
    assert outbox.send_dispatch(dispatch_pk=Dispatch.objects.get().pk, now=now(), chance=0) == "sent"
    got = github.dispatches[0].client_payload["payload"]
    assert got["pull_request"]["title"] == "Ein „langer“ Titel 🚀"
    assert got["pull_request"]["labels"] == [{"name": f"label {number}"} for number in range(100)]
    assert got["trimmed_by_accelhub"]["bytes"] > 1_200_000
