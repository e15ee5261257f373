"""The breaker: when it opens and closes, who cannot open it, and how far a compromised repository gets."""

import datetime
import json
import sys
from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.accounts.services import grant_role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.models import Wakeup
from apps.gate import breaking, selectors
from apps.gate.models import BreakerTrip
from apps.policies.policy import NUMBERS
from apps.relay.models import Delivery
from tests.factories.jobs import dispatch
from tests.factories.listing import TESTS, member_of, user
from tests.factories.pages import Page
from tests.gate.field import KESTREL, PLACE, Field, hours, main_sha

UNRELATED = NUMBERS["breaker_pull_requests"]


def pull(field: Field, number: int, *, author: str = "", at: float = 0) -> str:
    """A pull request of an author (default: one of their own). Returns its head."""
    sha = f"{number:02x}" * 20
    field.sends(number=number, sha=sha, at=at)
    body = {"pull_request": {"user": {"login": author or f"author-{number}"}}}
    Delivery.objects.filter(head_sha=sha).update(body=json.dumps(body))
    return sha


def troubled(field: Field, count: int, conclusion: str = "failure", *, first: int = 20, **values: Any) -> list[str]:
    """So many pull requests on which Kestrel fails alone (with one red test), or ends otherwise."""
    shas = []
    author, at = values.pop("author", ""), values.pop("at", 0.5)
    for number in range(first, first + count):
        shas.append(sha := pull(field, number, author=author))
        if conclusion == "failure":
            field.fails({"test_a": f"boom {number}"}, number=number, sha=sha, at=at, run_id=f"{number}")
        else:
            field.says(conclusion, number=number, sha=sha, at=at, **values)
    return shas


def test_it_opens_where_it_fails_across_unrelated_pull_requests(gate_field: Field) -> None:
    shas = troubled(gate_field, UNRELATED - 1)
    assert (breaking.sweep(now=hours(1)), gate_field.told(number=20, sha=shas[0])[0]) == (0, "fail")
    troubled(gate_field, 1, first=40)
    assert breaking.sweep(now=hours(1.1)) == 1
    trip = BreakerTrip.objects.get()
    assert (trip.kind, trip.why, trip.opened_at) == (
        "pull_requests",
        "It alone blocked 4 unrelated pull requests in 6 h.",
        hours(1.1),
    )
    verdict, told = gate_field.told(1.2, number=20, sha=shas[0])
    assert (verdict, [one[:2] for one in told]) == ("pass", [("informational", "passes")])
    # As of before it had opened, nothing is different.
    assert gate_field.told(1, number=20, sha=shas[0])[0] == "fail"
    body = body_of(Event.objects.latest("seq"))
    assert (body["action"], body["actor"]["kind"], body["is_decision"]) == ("breakertrip.opened", "hub", True)
    assert body["after"] == {"kind": "pull_requests", "pull_requests": [20, 21, 22, 40], "policy": 0}
    assert Wakeup.objects.filter(topic="breaker_changed", key=str(gate_field.kestrel.pk)).exists()
    assert breaking.sweep(now=hours(1.2)) == 0
    pk, day = gate_field.kestrel.pk, hours(1).date()
    assert selectors.trips_by_day([pk], since=day, until=day) == {pk: {day: 1}}
    later = day + datetime.timedelta(days=1)
    assert selectors.trips_by_day([pk], since=later, until=later) == {pk: {}}


@pytest.mark.parametrize(
    ("conclusion", "limit", "kind", "values"),
    [
        ("timed_out", "breaker_timeouts", "timeouts", {}),
        ("success", "breaker_contradictions", "contradictions", {"bucket": "contradicted"}),
        # As where the hub itself ends what fell silent: that is always after the wait for it.
        ("timed_out", "breaker_timeouts", "timeouts", {"at": 6.5}),
        ("success", "breaker_contradictions", "contradictions", {"bucket": "contradicted", "at": 6.5}),
    ],
)
def test_it_opens_where_it_times_out_or_contradicts_itself(
    gate_field: Field, conclusion: str, limit: str, kind: str, values: dict[str, Any]
) -> None:
    moment = hours(values.get("at", 0.5) + 0.5)
    troubled(gate_field, NUMBERS[limit] - 1, conclusion, **values)
    assert breaking.sweep(now=moment) == 0
    troubled(gate_field, 1, conclusion, first=40, **values)
    assert breaking.sweep(now=moment) == 1
    assert BreakerTrip.objects.get().kind == kind


def test_what_lies_longer_back_than_the_window_does_not_count(gate_field: Field) -> None:
    troubled(gate_field, UNRELATED)
    assert breaking.sweep(now=hours(0.7 + NUMBERS["breaker_window_hours"])) == 0


def test_one_author_alone_cannot_open_it(gate_field: Field) -> None:
    troubled(gate_field, UNRELATED * 2, author="mallory")
    troubled(gate_field, UNRELATED, "timed_out", first=60, author="mallory")
    assert breaking.sweep(now=hours(1)) == 0


def test_a_failure_that_another_platform_has_does_not_count_and_still_blocks_when_open(gate_field: Field) -> None:
    """A bad change fails on several platforms: neither its author nor the repository gets it through by the breaker."""
    bad = troubled(gate_field, UNRELATED)
    for number, sha in zip(range(20, 20 + UNRELATED), bad, strict=True):
        gate_field.reports({"test_a": f"boom {number}"}, repository=gate_field.fen, sha=sha)
    gate_field.reports({}, sha=main_sha(PLACE), at=-1)
    assert breaking.sweep(now=hours(1)) == 0
    # Even if others then open it.
    troubled(gate_field, UNRELATED, first=60)
    assert breaking.sweep(now=hours(1)) == 1
    assert {gate_field.told(1.1, number=20, sha=sha)[0] for sha in bad[:1]} == {"fail"}
    assert gate_field.told(1.1, number=60, sha=f"{60:02x}" * 20)[0] == "pass"


def test_a_head_that_was_mended_does_not_count(gate_field: Field) -> None:
    troubled(gate_field, UNRELATED)
    gate_field.sends(number=20, sha="ef" * 20, at=0.9)
    gate_field.says("success", number=20, sha="ef" * 20, at=0.9)
    assert breaking.sweep(now=hours(1.2)) == 0


def opened(field: Field) -> BreakerTrip:
    troubled(field, UNRELATED)
    assert breaking.sweep(now=hours(1)) == 1
    return BreakerTrip.objects.get()


NEEDED = NUMBERS["breaker_close_runs"]


def main_commit(field: Field, number: int, conclusion: str = "success", *, at: float, **values: Any) -> None:
    """A commit of main that Kestrel is sent at a time, and a job of it that ends a little later, or has not ended."""
    sha = f"{0xA0000 + number:05x}" * 8
    if not Delivery.objects.filter(head_sha=sha).exists():
        dispatch(field.kestrel, at=hours(at), event="push", pr_number=None, head_sha=sha, ref="refs/heads/main")
    field.says(
        conclusion, number=None, sha=sha, at=at + 0.01, event_type="push", **({"run_id": f"main-{number}"} | values)
    )


def test_it_closes_by_evidence_of_commits_of_main_that_it_was_sent_since(gate_field: Field) -> None:
    main_commit(gate_field, 0, at=-1)  # before it opened
    opened(gate_field)
    main_commit(gate_field, 1, "failure", at=1.5)
    for number in range(2, NEEDED + 1):
        main_commit(gate_field, number, at=2 + number / 10)
    gate_field.says("success", at=5, number=20, sha="14" * 20)  # a pull request's
    main_commit(gate_field, 50, at=4, job_name="trivial")  # not the check that opened it
    assert breaking.sweep(now=hours(6)) == 0
    main_commit(gate_field, 90, at=5)
    main_commit(gate_field, 91, "", at=5.5)  # still runs
    assert breaking.sweep(now=hours(6)) == 1
    trip = BreakerTrip.objects.get()
    assert (trip.closed_at, trip.closed_by, trip.closed_why) == (
        hours(6),
        "evidence",
        f"It passed {NEEDED} commits of main in a row that it was sent since.",
    )
    # What opened it lies before, and opens it no second time.
    assert breaking.sweep(now=hours(6.1)) == 0


def test_runs_that_a_repository_begins_itself_are_no_evidence(gate_field: Field) -> None:
    opened(gate_field)
    about: dict[str, Any] = {"number": None, "dispatch": None}
    for run in range(2 * NEEDED):
        for event in ("nightly", "push"):
            gate_field.says(
                "success", sha=main_sha(PLACE - run % 3), at=2, event_type=event, run_id=f"{event}-{run}", **about
            )
    for again in range(2 * NEEDED):
        main_commit(gate_field, 1, at=2, run_id=f"7{again}")  # the same commit, over and over
    assert breaking.sweep(now=hours(6)) == 0


def test_a_second_trip_within_some_days_closes_by_a_decision_alone(gate_field: Field, client: Client) -> None:
    opened(gate_field)
    for number in range(NEEDED):
        main_commit(gate_field, number, at=1.5 + number / 10)
    assert breaking.sweep(now=hours(3)) == 1
    troubled(gate_field, UNRELATED, first=60, at=4)
    assert breaking.sweep(now=hours(5)) == 1
    for number in range(NEEDED, 2 * NEEDED):
        main_commit(gate_field, number, at=6 + number / 10)
    assert breaking.sweep(now=hours(8)) == 0
    second = BreakerTrip.objects.get(closed_at=None)
    said = Page(client.get(f"/breakers/{second.public_id}/")).facts["about"]["Closed"]
    assert said == "by a maintainer's decision alone: another trip was 7 days before it, or less"


def test_a_maintainer_of_another_organisation_closes_it(gate_field: Field, client: Client) -> None:
    trip = opened(gate_field)
    where = f"/breakers/{trip.public_id}/"
    assert Page(client.get("/breakers/")).tables["list"][0][:3] == (KESTREL, trip.why, "■ open: blocks nothing")
    assert trip.why in Page(client.get("/status/")).text
    assert trip.why in Page(client.get(f"/platforms/{gate_field.kestrel.platform.slug}/")).text
    assert client.post(where, {"reason": "Fixed."}).status_code == 403
    own = member_of(gate_field.kestrel.platform)
    grant_role(user=own, role=Role.MAINTAINER, actor=TESTS, now=hours(1))
    client.force_login(own)
    assert "speaks for" in client.post(where, {"reason": "Fixed."}).content.decode()
    client.force_login(user(Role.MAINTAINER))
    assert client.post(where, {"reason": "Fixed."}).headers["Location"] == where
    assert "Fixed." in Page(client.get(where)).facts["about"]["Closed"]
    assert "closed already" in client.post(where, {"reason": "Again."}).content.decode()
    assert gate_field.asks(30_000, number=20, sha="14" * 20).answer.verdict == "fail"


def test_a_compromised_repository_blocks_so_many_an_hour(gate_field: Field, capsys: pytest.CaptureFixture[str]) -> None:
    """It fails on every pull request, each of another author, one every ten minutes; the hub sweeps in between."""
    blocked = 0
    for number in range(20, 20 + 3 * UNRELATED):
        at = (number - 20) / 6
        sha = pull(gate_field, number, at=at)
        gate_field.fails({"test_a": f"boom {number}"}, number=number, sha=sha, at=at, run_id=f"{number}")
        breaking.sweep(now=hours(at + 0.3))
        blocked += gate_field.told(at + 0.35, number=number, sha=sha)[0] == "fail"
    window = NUMBERS["breaker_window_hours"]
    with capsys.disabled():
        sys.stdout.write(
            f"\nA compromised blocking repository blocks {blocked} pull requests, then nothing; below its breaker it "
            f"blocks those of {UNRELATED - 1} authors in {window} h: {(UNRELATED - 1) / window:.1f} an hour.\n"
        )
    assert blocked == UNRELATED - 1
    assert BreakerTrip.objects.filter(closed_at=None).count() == 1


def test_a_compromised_repository_that_lies_about_main_gains_one_more_round(
    gate_field: Field, capsys: pytest.CaptureFixture[str]
) -> None:
    """It fails on every pull request and answers each commit of main with a success: two a pull request, for a day."""
    blocked = 0
    for number in range(20, 20 + 4 * 24):
        at = (number - 20) / 4
        sha = pull(gate_field, number, at=at)
        gate_field.fails({"test_a": f"boom {number}"}, number=number, sha=sha, at=at, run_id=f"{number}")
        for commit in (2 * number, 2 * number + 1):
            main_commit(gate_field, commit, at=at)
        breaking.sweep(now=hours(at + 0.2))
        blocked += gate_field.told(at + 0.21, number=number, sha=sha)[0] == "fail"
    with capsys.disabled():
        sys.stdout.write(f"\nOne that lies about main as well blocks {blocked} pull requests in 24 h, and no more.\n")
    # Twice what stays below the breaker, and the one that was answered just before it closed.
    assert blocked == 2 * (UNRELATED - 1) + 1
    assert [trip.closed_by for trip in BreakerTrip.objects.order_by("opened_at")] == ["evidence", ""]
