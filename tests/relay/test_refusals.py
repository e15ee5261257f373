"""Every refusal of a callback that is counted: its code, what it says, and that its row says who was refused."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from apps.core.errors import CODES
from apps.relay import limits
from apps.relay.forms import REASONS
from apps.relay.models import Callback, Job, Rejection
from tests.factories.listing import listed
from tests.relay.downstream import Downstream
from tests.relay.test_callback import KESTREL, dispatch

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Case:
    """`call` is refused with `code`; `says` are parts of its detail: the rule, and what was seen. `reason` is what it
    is counted by, where that is not the code's title; `is_proved`: the caller is known."""

    code: str
    call: Callable[[Downstream], Any]
    says: tuple[str, ...]
    reason: str
    field: str | None = None
    is_proved: bool = True


def _with(**claims: Any) -> Callable[[Downstream], Any]:
    return lambda made: made.post(made.body(), token=made.token(**claims))


def _conflict(made: Downstream) -> Any:
    made.end("failure")
    return made.end("success")


def _flood(made: Downstream) -> Any:
    for number in range(3):
        made.start(job_name=str(number))
    return made.start(job_name="one more")


def _other_body(made: Downstream) -> Any:
    token = made.token()
    made.post(made.body(), token=token)
    return made.post(made.body(job_name="x"), token=token)


CASES = (
    Case("token_missing", lambda made: made.post(made.body(), token=""), ("Bearer",), "no bearer token", None, False),
    Case("token_invalid", lambda made: made.post(made.body(), token="x.y.z"), ("JWT",), "not a JWT", None, False),
    Case("token_invalid", _with(aud="x"), ("aud", settings.OIDC_AUDIENCE), "audience", "aud", False),
    Case("token_expired", _with(exp=1), ("exp", "over"), "expired", "exp", False),
    Case(
        "identity_unknown",
        _with(repository_id=None),
        ("repository_id", "missing"),
        "claim repository_id",
        "repository_id",
        False,
    ),
    Case("identity_replaced", _with(repository_id="5002"), (KESTREL, "5001", "6001", "5002"), "", "repository_id"),
    Case("claims_contradict", _with(run_id="999"), ("run_id", "999"), "", "workflow.run_id"),
    Case(
        "never_dispatched",
        lambda made: made.post(made.body("d-9")),
        ("delivery_id", "d-9", KESTREL),
        "",
        "delivery_id",
    ),
    Case(
        "dispatch_token_wrong",
        lambda made: made.post(made.body() | {"dispatch_token": "x"}),
        ("dispatch_token", "signature", "Send the client_payload back"),
        "",
        "dispatch_token",
    ),
    Case("token_reused", _other_body, ("jti", "another body"), "", "jti"),
    Case("completion_conflict", _conflict, ("conclusion", "failure", "success"), "", "workflow.conclusion"),
    Case("rate_limited", _flood, ("3 callbacks", "minute", "Wait"), ""),
)


@pytest.fixture
def kestrel(downstream: Callable[..., Downstream], client: Client, monkeypatch: pytest.MonkeyPatch) -> Downstream:
    """Listed at L2, with one delivery dispatched to it and its ids pinned; three callbacks a minute are taken."""
    made = downstream(KESTREL, repository_id=5001, owner_id=6001)
    listed({KESTREL: 2})
    dispatch(client)
    made.start(job_name="pins it")
    Job.objects.all().delete()
    monkeypatch.setattr(limits, "LIMIT", dataclasses.replace(limits.LIMIT, name="of this test", per_minute=3))
    return made


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code} {case.reason}")
def test_a_refusal_says_rule_what_was_seen_and_what_to_do_and_is_counted(kestrel: Downstream, case: Case) -> None:
    response = case.call(kestrel)
    body, row = response.json(), CODES[case.code]
    detail = body.pop("detail")
    assert [part for part in case.says if part not in detail] == []
    assert (response.status_code, response.headers["Content-Type"]) == (row.status, "application/problem+json")
    expected = {
        "type": f"{settings.BASE_URL}/docs/errors/{case.code}",
        "title": row.title,
        "status": row.status,
        "code": case.code,
        "next_step": row.next_step,
    }
    assert body == expected | ({"field": case.field} if case.field else {})
    counted = Rejection.objects.values_list("code", "reason", "repository_claim", "repository__full_name", "count")
    who = (KESTREL, KESTREL) if case.is_proved else ("", None)
    assert list(counted) == [(case.code, case.reason or row.title, *who, 1)]


# Counted as well, and said by uploads alone: tests/results/test_upload.py.
OF_UPLOADS = {"report_conflict", "report_removed", "quota_used"}


def test_every_code_that_is_counted_has_a_case() -> None:
    assert {case.code for case in CASES} == set(REASONS) - OF_UPLOADS
    assert {CODES[code].status for code in REASONS} == {401, 403, 409, 429}


def test_a_body_that_does_not_fit_is_not_counted(kestrel: Downstream) -> None:
    assert kestrel.start(run_id="abc").status_code == 400
    assert (Rejection.objects.count(), Callback.objects.filter(answer="conflict").count()) == (0, 0)
