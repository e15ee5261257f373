"""Upstream's webhooks: signed, complete, plausible in their order, and the same again for the same seed."""

import re
from collections import Counter
from typing import Any

from apps.simulator.upstream import MOST_OPEN, Event, Upstream, sign
from tests.simulator.tiny_hub import SECRET, TinyHub

UPSTREAM = "pytorch/pytorch"


def an_upstream(*, hub_url: str = "http://127.0.0.1:9", seed: int = 1, secret: str = SECRET) -> Upstream:
    return Upstream(hub_url=hub_url, webhook_secret=secret, repository=UPSTREAM, seed=seed)


def without_times(event: Event) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "", repr(event))


def test_a_signature_as_github_documents_it() -> None:
    # The example of GitHub's page on validating webhook deliveries.
    assert sign("It's a Secret to Everybody", b"Hello, World!") == (
        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    )


def test_the_fields_that_downstreams_use_are_there() -> None:
    upstream = an_upstream()
    event = upstream.opened()
    pull: dict[str, Any] = event.body["pull_request"]
    assert event.name == "pull_request"
    assert event.body["action"] == "opened"
    assert event.body["number"] == pull["number"] >= 900_000
    assert event.body["repository"]["full_name"] == UPSTREAM
    assert re.fullmatch(r"[0-9a-f]{40}", pull["head"]["sha"])
    assert re.fullmatch(r"[0-9a-f]{40}", pull["base"]["sha"])
    assert pull["base"]["ref"] == "main"
    assert re.fullmatch(r"demo-contributor-\d", pull["user"]["login"])
    assert pull["head"]["repo"]["full_name"] == f"{pull['user']['login']}/pytorch"
    assert pull["head"]["ref"]
    assert pull["title"]
    assert all(set(label) == {"name"} for label in pull["labels"])
    push = upstream.push("refs/tags/ciflow/trunk/900001")
    assert (push.name, push.body["ref"], push.body["deleted"]) == ("push", "refs/tags/ciflow/trunk/900001", False)
    assert {"after", "before", "base_ref", "head_commit"} <= set(push.body)


def test_a_pull_requests_life() -> None:
    upstream = an_upstream()
    upstream.opened()
    [pull] = upstream._open
    first = pull.head_sha
    update = upstream.synchronize(pull)
    assert (update.body["before"], update.body["after"]) == (first, update.body["pull_request"]["head"]["sha"])
    closed = upstream.closed(pull)
    assert closed.body["pull_request"]["state"] == "closed"
    reopened = upstream.reopened(pull)
    assert (reopened.body["action"], reopened.body["pull_request"]["state"]) == ("reopened", "open")


def test_main_moves_with_each_push() -> None:
    upstream = an_upstream()
    first, second = upstream.push(), upstream.push()
    assert second.body["before"] == first.body["after"]
    assert upstream.opened().body["pull_request"]["base"]["sha"] == second.body["after"]


def test_a_long_history_is_plausible_and_can_be_had_again() -> None:
    upstream, again = an_upstream(), an_upstream()
    is_open: set[int] = set()
    kinds: Counter[str] = Counter()
    deliveries = set()
    for _ in range(600):
        event = upstream.next_event()
        assert without_times(again.next_event()) == without_times(event)
        deliveries.add(event.delivery_id)
        kinds[event.body.get("action", event.name)] += 1
        if event.name == "push":
            continue
        number, action = event.body["number"], event.body["action"]
        assert (number in is_open) == (action in {"synchronize", "closed"})
        (is_open.discard if action == "closed" else is_open.add)(number)
        assert len(is_open) <= MOST_OPEN
    assert len(deliveries) == 600
    assert set(kinds) == {"opened", "synchronize", "closed", "reopened", "push"}
    assert kinds["synchronize"] > kinds["closed"]


def test_another_seed_is_another_history() -> None:
    assert an_upstream(seed=2).next_event().delivery_id != an_upstream(seed=1).next_event().delivery_id


def test_it_goes_on_where_it_stopped() -> None:
    upstream = an_upstream()
    for _ in range(40):
        upstream.next_event()
    again = an_upstream()
    again.restore(upstream.state())
    assert [without_times(again.next_event()) for _ in range(20)] == [
        without_times(upstream.next_event()) for _ in range(20)
    ]


def test_the_first_dozen_starts_jobs() -> None:
    upstream = an_upstream()
    events = [upstream.next_event() for _ in range(12)]
    assert sum(e.name == "push" or e.body["action"] != "closed" for e in events) >= 9


def test_a_webhook_arrives_signed(tiny_hub: TinyHub) -> None:
    event = an_upstream(hub_url=tiny_hub.url).push()
    assert an_upstream(hub_url=tiny_hub.url).send(event).status_code == 202
    assert tiny_hub.webhooks == [("push", event.delivery_id, event.body)]
    assert an_upstream(hub_url=tiny_hub.url, secret="other").send(event).status_code == 401


def test_events_name_themselves_in_one_line() -> None:
    upstream = an_upstream()
    assert re.fullmatch(r"pull_request #\d+ opened \(.*\)", str(upstream.opened()))
    assert str(upstream.push()).startswith("push refs/heads/main (")
