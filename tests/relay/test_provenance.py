"""Provenance: the dispatch's token that callbacks bring back, and OIDC tokens that speak for one body only."""

import datetime
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accelhub.env import HubEnv, former_secret_keys
from apps.core.clock import now
from apps.relay import outbox, services
from apps.relay.models import Callback, Delivery, Dispatch, Job, Rejection
from apps.relay.payload import client_payload
from tests.factories.listing import listed
from tests.factories.pages import Page
from tests.relay.downstream import PAYLOAD, Downstream, answer, refusal, send_webhook

pytestmark = pytest.mark.django_db
Make = Callable[..., Downstream]
KESTREL, FEN = "kestrel-demo/torch-kestrel", "fen-demo/torch-fen"
APPLIED = (200, {"ok": True, "status": "applied", "job": True})
DUPLICATE = (200, {"ok": True, "status": "duplicate", "job": True})
IGNORED = (200, {"ok": True, "status": "ignored"})
FOUR_DAYS = datetime.timedelta(days=4)


def send(client: Client, delivery_id: str = "d-1") -> None:
    """A delivery, dispatched by the hub itself to everyone listed now."""
    send_webhook(client, PAYLOAD, delivery_id=delivery_id)
    services.fan_out(delivery_pk=Delivery.objects.get(delivery_id=delivery_id).pk, now=now())
    for pk in Dispatch.objects.filter(delivery__delivery_id=delivery_id).values_list("pk", flat=True):
        outbox.send_dispatch(dispatch_pk=pk, now=now(), chance=0)


@pytest.fixture
def kestrel(downstream: Make, client: Client) -> Downstream:
    made = downstream(KESTREL)
    downstream(FEN)
    listed({KESTREL: 2, FEN: 2})
    send(client)
    return made


def dispatched(made: Downstream, delivery_id: str = "d-1") -> dict[str, Any]:
    """The client_payload that GitHub took for this repository."""
    found = [d.client_payload for d in made.github.dispatches if d.repository == made.full_name]
    return next(payload for payload in found if payload["delivery_id"] == delivery_id)


def echo(made: Downstream, payload: dict[str, Any] | None = None, **workflow: Any) -> dict[str, Any]:
    """A body as the official action makes it: the client_payload it was started with, and `workflow` beside it."""
    said = dispatched(made) if payload is None else payload
    return said | {"workflow": made.body(**workflow)["workflow"]}


def aged(made: Downstream) -> dict[str, Any]:
    """The client_payload as it would have been sent four days ago."""
    dispatch = Dispatch.objects.get(delivery__delivery_id="d-1", repository__full_name=made.full_name)
    return client_payload(dispatch, now=now() - FOUR_DAYS)


def labels() -> list[str]:
    return list(Job.objects.order_by("pk").values_list("provenance", flat=True))


# --- the dispatch's token ---------------------------------------------------------------------------------------


def test_an_echoed_token_confirms_the_dispatch_for_every_job_and_twice(kestrel: Downstream) -> None:
    for name, conclusion in itertools.product(("build", "test"), (None, "success")):
        assert answer(kestrel.post(echo(kestrel, job_name=name, conclusion=conclusion))) == APPLIED
    assert labels() == ["confirmed", "confirmed"]
    page = Page(kestrel.client.get(f"/jobs/{Job.objects.first().public_id}/"))  # type: ignore[union-attr]
    assert page.facts["about"]["Provenance"] == "dispatched by the hub, confirmed by its token"


def test_without_the_token_a_callback_is_taken_and_labelled(kestrel: Downstream) -> None:
    assert answer(kestrel.start()) == APPLIED
    assert labels() == ["not_echoed"]
    page = Page(kestrel.client.get(f"/jobs/{Job.objects.get().public_id}/"))
    assert page.facts["about"]["Provenance"] == "▲ the dispatch's token was not echoed"


def test_what_one_callback_has_confirmed_another_cannot_take_back(kestrel: Downstream) -> None:
    kestrel.post(echo(kestrel))
    kestrel.end()
    kestrel.start(job_name="test")
    kestrel.post(echo(kestrel, job_name="test", conclusion="success"))
    kestrel.end(job_name="late")
    kestrel.post(echo(kestrel, job_name="late"))
    assert labels() == ["confirmed", "confirmed", "confirmed"]


def test_an_expired_token_is_taken_on_a_re_run_and_labelled(kestrel: Downstream) -> None:
    body = echo(kestrel, aged(kestrel), run_attempt="2")
    assert answer(kestrel.post(body, token=kestrel.token(run_attempt="2"))) == APPLIED
    assert labels() == ["expired"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda kestrel, fen: "x",
        lambda kestrel, fen: dispatched(kestrel)["dispatch_token"][:-1] + "?",
        lambda kestrel, fen: dispatched(fen)["dispatch_token"],
        lambda kestrel, fen: dispatched(kestrel, "d-2")["dispatch_token"],
    ],
    ids=["garbage", "tampered", "another repository's", "another delivery's"],
)
@pytest.mark.parametrize("level", [1, 2])
def test_a_wrong_token_is_refused_and_counted(kestrel: Downstream, client: Client, spoil: Any, level: int) -> None:
    listed({KESTREL: level, FEN: 2})
    send(client, "d-2")
    fen = Downstream(FEN, kestrel.github, client, "1")
    body = echo(kestrel) | {"dispatch_token": spoil(kestrel, fen)}
    assert refusal(kestrel.post(body)) == (403, "dispatch_token_wrong", "dispatch_token")
    assert (Job.objects.count(), Callback.objects.count()) == (0, 0)
    assert list(Rejection.objects.values_list("code", "repository__full_name")) == [("dispatch_token_wrong", KESTREL)]


def test_a_token_of_another_hub_is_wrong(kestrel: Downstream, settings: Any) -> None:
    ours = settings.SECRET_KEY
    settings.SECRET_KEY = "another hub's key"
    payload = dispatched(kestrel) | {"dispatch_token": aged(kestrel)["dispatch_token"]}
    settings.SECRET_KEY = ours
    assert refusal(kestrel.post(echo(kestrel, payload))) == (403, "dispatch_token_wrong", "dispatch_token")


@pytest.mark.parametrize("line_end", ["", "\n"])
def test_a_token_on_its_way_while_the_secret_key_is_rotated_is_still_confirmed(
    kestrel: Downstream, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line_end: str
) -> None:
    # The key may have come from a file with a line end; so may the list.
    settings.SECRET_KEY = "the key that signed it" + line_end
    send(kestrel.client, "d-2")
    (tmp_path / "former").write_text(f"one before,{settings.SECRET_KEY}\n")
    monkeypatch.setenv("ACCELHUB_SECRET_KEY_FALLBACKS_FILE", str(tmp_path / "former"))
    monkeypatch.setattr(HubEnv.ENVIRON, "files_cache", {})
    settings.SECRET_KEY_FALLBACKS = former_secret_keys()
    settings.SECRET_KEY = "a fresh key"
    assert answer(kestrel.post(echo(kestrel, dispatched(kestrel, "d-2")))) == APPLIED
    assert labels() == ["confirmed"]


@pytest.mark.parametrize("value", [7, {}, ["x"], "x" * 1_001, "a\x00"])
def test_a_token_that_is_no_text_is_malformed(kestrel: Downstream, value: Any) -> None:
    assert refusal(kestrel.post(echo(kestrel) | {"dispatch_token": value})) == (400, "malformed", "dispatch_token")


def test_a_nightly_has_no_dispatch_to_prove(kestrel: Downstream) -> None:
    body = kestrel.body("f" * 40, conclusion="success") | {"event_type": "nightly", "dispatch_token": "whatever"}
    assert answer(kestrel.post(body)) == APPLIED
    assert labels() == [""]


# --- one OIDC token, one body -----------------------------------------------------------------------------------


def test_the_same_token_with_the_same_body_is_a_duplicate(kestrel: Downstream) -> None:
    start, end = kestrel.token(), kestrel.token()
    for token, body in ((start, kestrel.body()), (end, kestrel.body(conclusion="success"))):
        assert [answer(kestrel.post(body, token=token)) for _ in range(2)] == [APPLIED, DUPLICATE]
    before = [*Job.objects.values(), *Callback.objects.values()]
    assert answer(kestrel.post(kestrel.body(), token=start)) == DUPLICATE
    assert [*Job.objects.values(), *Callback.objects.values()] == before


def test_the_same_token_with_another_body_is_refused(kestrel: Downstream) -> None:
    token = kestrel.token()
    kestrel.post(kestrel.body(), token=token)
    before = [*Job.objects.values(), *Callback.objects.values()]
    for body in (kestrel.body(conclusion="success"), kestrel.body(job_name="another"), kestrel.body("d-9")):
        assert refusal(kestrel.post(body, token=token)) == (409, "token_reused", "jti")
    assert [*Job.objects.values(), *Callback.objects.values()] == before
    assert list(Rejection.objects.values_list("code", "count", "repository__full_name")) == [
        ("token_reused", 3, KESTREL)
    ]


def test_a_refused_callback_does_not_use_up_its_token(kestrel: Downstream) -> None:
    token = kestrel.token()
    assert refusal(kestrel.post(kestrel.body(run_id="x"), token=token)) == (400, "malformed", "workflow.run_id")
    assert refusal(kestrel.post(kestrel.body("d-9"), token=token)) == (403, "never_dispatched", "delivery_id")
    assert answer(kestrel.post(kestrel.body(), token=token)) == APPLIED


def test_a_conflicting_end_is_refused_again_with_its_token(kestrel: Downstream) -> None:
    kestrel.end("failure")
    token = kestrel.token()
    for _ in range(2):
        response = kestrel.post(kestrel.body(conclusion="success"), token=token)
        assert refusal(response) == (409, "completion_conflict", "workflow.conclusion")
    assert refusal(kestrel.post(kestrel.body(job_name="x"), token=token)) == (409, "token_reused", "jti")
    assert list(Callback.objects.order_by("pk").values_list("answer", flat=True)) == ["applied", "conflict"]


def test_at_l1_a_token_speaks_for_one_body_too(kestrel: Downstream) -> None:
    listed({KESTREL: 1, FEN: 2})
    token = kestrel.token()
    assert [answer(kestrel.post(kestrel.body(), token=token)) for _ in range(2)] == [IGNORED, IGNORED]
    assert refusal(kestrel.post(kestrel.body(job_name="x"), token=token)) == (409, "token_reused", "jti")
    listed({KESTREL: 2, FEN: 2})
    # What was answered once is answered so again; a fresh token tells it publicly.
    assert answer(kestrel.post(kestrel.body(), token=token)) == IGNORED
    assert answer(kestrel.start()) == APPLIED
