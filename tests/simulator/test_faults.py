"""What a stand-in is told to get wrong, it gets wrong: so often, so badly, and with the same luck each time."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from apps.core.github import GitHubClient, GitHubUnavailable
from apps.simulator.standin import GitHubStandIn, Kind
from tests.simulator.tiny_hub import APP_ID, eventually

REPO = "fen-demo/torch-fen"
DISPATCHES = "/dispatches$"


@pytest.fixture
def told(github: GitHubStandIn) -> list[int]:
    """The numbers of the dispatches that reached their repository."""
    github.add_repository(REPO)
    numbers: list[int] = []
    github.on_dispatch = lambda dispatch: numbers.append(dispatch.number)
    return numbers


def send(client: GitHubClient, times: int = 1) -> list[tuple[str, float] | None]:
    """What each dispatch came to: None, or the error and the wait that is asked for."""
    outcomes: list[tuple[str, float] | None] = []
    for number in range(times):
        try:
            client.send_dispatch(REPO, event_type="push", client_payload={"n": number})
            outcomes.append(None)
        except GitHubUnavailable as error:
            outcomes.append((str(error), round(error.wait_seconds)))
    return outcomes


def test_some_are_slow(github: GitHubStandIn, client: GitHubClient, told: list[int]) -> None:
    github.spoil(DISPATCHES, Kind.SLOW, seconds=0.2)
    begin = time.monotonic()
    assert send(client) == [None]
    assert time.monotonic() - begin >= 0.2


def test_slowness_and_a_failure_go_together(github: GitHubStandIn, client: GitHubClient, told: list[int]) -> None:
    github.spoil(DISPATCHES, Kind.SLOW, seconds=0.2)
    github.spoil(DISPATCHES, Kind.FAIL)
    begin = time.monotonic()
    assert send(client, 2) == [("GitHub answered 502", 0), None]
    assert time.monotonic() - begin >= 0.2


@pytest.mark.parametrize("kind", [Kind.LIMIT, Kind.EXHAUST])
def test_rates_are_limited_with_githubs_headers(
    github: GitHubStandIn, client: GitHubClient, told: list[int], kind: Kind
) -> None:
    github.spoil(DISPATCHES, kind, seconds=90, times=2)
    outcomes = send(client, 3)
    assert [outcome and outcome[0] for outcome in outcomes] == ["GitHub's rate limit is reached"] * 2 + [None]
    assert all(outcome is None or 88 <= outcome[1] <= 91 for outcome in outcomes)
    assert [r.status for r in github.requests if r.path.endswith("/dispatches")] == [403, 403, 204]


def test_a_wait_may_be_a_date(github: GitHubStandIn, client: GitHubClient, told: list[int]) -> None:
    from email.utils import formatdate

    from apps.core.github import _asked_wait

    assert 55 <= _asked_wait({"retry-after": formatdate(time.time() + 60, usegmt=True)}) <= 61
    assert _asked_wait({"retry-after": formatdate(time.time() - 60, usegmt=True)}) == 0
    for unread in ("soon", "-1", "1.5", "٣", "9" * 13):
        assert _asked_wait({"retry-after": unread}) == 0
    assert _asked_wait({"x-ratelimit-remaining": "7", "x-ratelimit-reset": f"{time.time() + 60:.0f}"}) == 0


def test_what_is_dropped_was_not_done_and_what_is_lost_was(
    github: GitHubStandIn, client: GitHubClient, told: list[int]
) -> None:
    hung_up = ("GitHub did not answer: ConnectionError", 0)
    github.spoil(DISPATCHES, Kind.DROP)
    assert (send(client), len(github.dispatches)) == ([hung_up], 0)
    github.spoil(DISPATCHES, Kind.LOSE)
    assert (send(client), len(github.dispatches)) == ([hung_up], 1)
    eventually(lambda: told == [1])
    assert (send(client), len(github.dispatches)) == ([None], 2)


def test_a_duplicate_reaches_its_repository_twice(github: GitHubStandIn, client: GitHubClient, told: list[int]) -> None:
    github.spoil(DISPATCHES, Kind.DUPLICATE)
    assert send(client, 2) == [None, None]
    eventually(lambda: sorted(told) == [1, 1, 2])


def test_one_that_is_answered_late_was_done_before(
    github: GitHubStandIn, client: GitHubClient, told: list[int]
) -> None:
    github.spoil(DISPATCHES, Kind.LATE, seconds=0.5)
    with ThreadPoolExecutor() as pool:
        begin = time.monotonic()
        sending = pool.submit(send, client)
        eventually(lambda: told == [1])
        assert not sending.done()
        assert sending.result() == [None]
    assert time.monotonic() - begin >= 0.5
    assert (told, len(github.dispatches)) == ([1], 1)


def test_healing_forgets_shares_too(github: GitHubStandIn, client: GitHubClient, told: list[int]) -> None:
    github.spoil(DISPATCHES, Kind.FAIL, times=None)
    assert None not in send(client, 3)
    github.heal()
    assert send(client, 3) == [None] * 3


@pytest.fixture
def seeded(app_key: str, oidc_key: str) -> Iterator[list[GitHubStandIn]]:
    made = [
        GitHubStandIn(app_id=APP_ID, app_private_key=app_key, oidc_private_key=oidc_key, seed=seed).start()
        for seed in (1, 1, 2)
    ]
    yield made
    for standin in made:
        standin.stop()


def test_a_share_has_the_same_luck_with_the_same_seed(seeded: list[GitHubStandIn]) -> None:
    luck = []
    for standin in seeded:
        standin.spoil("jwks$", Kind.FAIL, times=None, share=0.3)
        url = f"{standin.url}/.well-known/jwks"
        luck.append([requests.get(url, timeout=5).status_code for _ in range(60)])
    assert luck[0] == luck[1] != luck[2]
    assert 8 <= luck[0].count(502) <= 30
