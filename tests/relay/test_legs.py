"""Legs that share a job's name, at `POST /github/callback`: kept apart, joined, superseded one by one."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.relay.models import Callback, Job
from apps.relay.selectors import with_superseded
from tests.factories.listing import listed
from tests.factories.pages import Page
from tests.relay.downstream import Downstream, answer, refusal
from tests.relay.test_callback import APPLIED, DUPLICATE, KESTREL, dispatch

pytestmark = pytest.mark.django_db


@pytest.fixture
def kestrel(downstream: Callable[..., Downstream], client: Client) -> Downstream:
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    dispatch(client)
    return made


def legs() -> list[tuple[Any, ...]]:
    return list(Job.objects.order_by("pk").values_list("leg", "check_run_id", "status", "flags"))


def test_an_end_of_an_unseen_check_run_joins_the_only_open_leg(kestrel: Downstream) -> None:
    kestrel.start(check_run_id="1")
    assert answer(kestrel.end(check_run_id="2")) == APPLIED
    assert legs() == [("1", "2", "completed", ["joined"])]
    # Told again, by either check run, it is the same job.
    assert answer(kestrel.end(check_run_id="2")) == DUPLICATE
    assert answer(kestrel.end(check_run_id="1")) == DUPLICATE
    assert answer(kestrel.start(check_run_id="2")) == DUPLICATE
    assert refusal(kestrel.end("failure", check_run_id="2")) == (409, "completion_conflict", "workflow.conclusion")
    assert len(legs()) == 1


def test_an_end_without_a_check_run_joins_too(kestrel: Downstream) -> None:
    kestrel.start(check_run_id="1")
    assert answer(kestrel.end(check_run_id=None)) == APPLIED
    assert legs() == [("1", "1", "completed", ["joined"])]
    assert answer(kestrel.end(check_run_id=None)) == DUPLICATE


def test_with_two_legs_open_an_unseen_end_is_a_leg_of_its_own(kestrel: Downstream) -> None:
    kestrel.start(check_run_id="1")
    kestrel.start(check_run_id="2")
    assert answer(kestrel.end(check_run_id="3")) == APPLIED
    assert answer(kestrel.end(check_run_id="1")) == APPLIED
    assert answer(kestrel.end(check_run_id="4")) == APPLIED
    assert legs() == [
        ("1", "1", "completed", []),
        ("2", "4", "completed", ["joined"]),
        ("3", "3", "completed", ["start_lost"]),
    ]


def test_nothing_joins_another_job_run_attempt_or_workflow(kestrel: Downstream) -> None:
    kestrel.start(check_run_id="1")
    kestrel.end(check_run_id="2", job_name="test")
    kestrel.end(check_run_id="2", name="Other")
    kestrel.post(
        kestrel.body(check_run_id="2", run_attempt="2", conclusion="success"), token=kestrel.token(run_attempt="2")
    )
    kestrel.post(kestrel.body(check_run_id="2", run_id="77", conclusion="success"), token=kestrel.token(run_id="77"))
    assert [(leg, flags) for leg, _, _, flags in legs()] == [("1", []), *[("2", ["start_lost"])] * 4]


def test_a_declared_leg_is_itself_and_joins_nothing(kestrel: Downstream) -> None:
    kestrel.start(check_run_id="1", leg="cuda-12")
    assert answer(kestrel.end(check_run_id="2", leg="cuda-13")) == APPLIED
    assert answer(kestrel.end(check_run_id="9", leg="cuda-12")) == APPLIED
    assert legs() == [("cuda-12", "9", "completed", []), ("cuda-13", "2", "completed", ["start_lost"])]


def test_a_start_joins_nothing(kestrel: Downstream) -> None:
    kestrel.start(check_run_id="1")
    kestrel.start(check_run_id="2")
    assert [leg for leg, *_ in legs()] == ["1", "2"]


def test_the_worst_leg_counts_where_one_word_says_it(kestrel: Downstream) -> None:
    kestrel.end(check_run_id="1")
    kestrel.end("failure", check_run_id="2")
    kestrel.end(check_run_id="3")
    row = Page(kestrel.client.get("/platforms/kestrel-demo-torch-kestrel/")).tables["jobs-head"][0]
    assert row[1] == "■ failure"


@pytest.mark.parametrize("name", ["123", "a:b:c", "a/b/c", "🦅🔥", "x" * 300, "<b>bold</b>", '"><script>x</script>'])
def test_any_job_name_is_kept_and_shown_as_text(kestrel: Downstream, name: str) -> None:
    assert [answer(kestrel.start(job_name=name)), answer(kestrel.end(job_name=name))] == [APPLIED, APPLIED]
    job = Job.objects.get()
    assert (job.job_name, job.conclusion) == (name, "success")
    page = Page(kestrel.client.get(f"/jobs/{job.public_id}/"))
    assert page.heading == f"CI / {name}"
    assert "<script>x" not in page.html


# --- superseding ------------------------------------------------------------------------------------------------


def attempt(made: Downstream, number: int, **ends: str) -> None:
    """Legs of one attempt: `a="failure"` is the leg `a<number>`, which failed."""
    for leg, conclusion in ends.items():
        body = made.body(conclusion=conclusion, check_run_id=f"{leg}{number}", run_attempt=str(number))
        assert answer(made.post(body, token=made.token(run_attempt=str(number)))) == APPLIED


def current() -> set[str]:
    return {job.leg for job in with_superseded(Job.objects.all()) if not job.is_superseded}  # type: ignore[attr-defined]


def test_a_re_run_of_the_failed_legs_leaves_the_green_ones_current(kestrel: Downstream) -> None:
    attempt(kestrel, 1, a="success", b="failure", c="success", d="cancelled")
    attempt(kestrel, 2, b="success", d="failure")
    assert current() == {"a1", "c1", "b2", "d2"}
    attempt(kestrel, 3, d="success")
    assert current() == {"a1", "c1", "b2", "d3"}


def test_legs_re_run_one_by_one_supersede_one_each(kestrel: Downstream) -> None:
    attempt(kestrel, 1, a="failure", b="failure")
    attempt(kestrel, 2, a="success")
    assert current() == {"b1", "a2"}
    attempt(kestrel, 3, b="success")
    assert current() == {"a2", "b3"}


def test_a_re_run_of_everything_supersedes_everything(kestrel: Downstream) -> None:
    attempt(kestrel, 1, a="success", b="failure", c="success")
    attempt(kestrel, 2, a="failure", b="failure", c="failure")
    assert current() == {"a2", "b2", "c2"}


def test_a_superseded_attempt_stays_reachable_and_a_re_run_did_not_queue(kestrel: Downstream) -> None:
    attempt(kestrel, 1, a="failure")
    attempt(kestrel, 2, a="success")
    first, second = Job.objects.order_by("pk")
    assert [kestrel.client.get(f"/jobs/{job.public_id}/").status_code for job in (first, second)] == [200, 200]
    assert second.queue_seconds is None
    listing = Page(kestrel.client.get("/platforms/kestrel-demo-torch-kestrel/?view=all")).tables["jobs-head"]
    assert {row[0].split()[0] for row in listing} == {"●", "superseded"} or len(listing) == 2
    assert Callback.objects.count() == 2
