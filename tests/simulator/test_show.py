"""The whole show against a tiny hub: events in, dispatches out, callbacks back, a clean end, and a second evening."""

import datetime
import json
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management.base import CommandError

from apps.core.github import GitHubClient
from apps.simulator import show as show_module
from apps.simulator.characters import CHARACTERS, Character
from apps.simulator.management.commands import simulate
from apps.simulator.notebook import Notebook
from apps.simulator.show import (
    BURST_EVENTS,
    LOST_AFTER_EVENTS,
    LOST_EVENTS,
    NOTEBOOK_FILE,
    RENAME_AFTER_EVENTS,
    PortTaken,
    Show,
    Stage,
)
from apps.simulator.wire import Answer, Server
from tests.simulator.tiny_hub import APP_ID, AUDIENCE, SECRET, TinyHub, eventually


def free_port() -> int:
    server = Server(0, lambda request: Answer(204))
    server.end()
    return server.port


@pytest.fixture
def stage(app_key: str, tmp_path: Path) -> Iterator[tuple[Stage, TinyHub]]:
    port = free_port()
    hub = TinyHub(github_url=f"http://127.0.0.1:{port}", app_key=app_key)
    yield (
        Stage(
            hub_url=hub.url,
            port=port,
            app_id=APP_ID,
            app_private_key=app_key,
            webhook_secret=SECRET,
            audience=AUDIENCE,
            upstream="pytorch/pytorch",
            data_dir=tmp_path,
        ),
        hub,
    )
    hub.stop()


def test_events_become_callbacks_and_the_show_ends_by_itself(stage: tuple[Stage, TinyHub]) -> None:
    plan, hub = stage
    stop = threading.Event()
    Show(plan, stop=stop, seed=1, every=0.1, events=4, burst_pace=0.01, quiet=1.0).run()
    assert len(hub.webhooks) == 4
    seen = {body["delivery_id"] for _, body in hub.callbacks if body["event_type"] != "nightly"}
    assert seen == {delivery for _, delivery, body in hub.webhooks if body.get("action") != "closed"}
    # Buildkite's tokens name the pipeline, which here is called as its repository.
    named = {c.get("repository") or f"{c['organization_slug']}/{c['pipeline_slug']}" for c, _ in hub.callbacks}
    assert named == {c.full_name for c in CHARACTERS if c.silent_days is None}
    told = {(body["workflow"]["check_run_id"], body["workflow"]["status"]) for _, body in hub.callbacks}
    started, ended = ({run for run, word in told if word == status} for status in ("in_progress", "completed"))
    nights = {body["workflow"]["check_run_id"] for _, body in hub.callbacks if body["event_type"] == "nightly"}
    assert ended - started == nights
    assert len(ended) > 0.8 * len(started) > 0, "only a few machines die"
    notes = json.loads((plan.data_dir / NOTEBOOK_FILE).read_text())
    assert notes["pending"] == []
    assert notes["upstream"]["count"] == 4


def test_it_waits_for_the_hub_stops_at_once_and_goes_on_later(stage: tuple[Stage, TinyHub]) -> None:
    plan, hub = stage
    hub.ready = False
    stop = threading.Event()
    show = threading.Thread(target=Show(plan, stop=stop, seed=1, every=30, burst_pace=0.03).run)
    show.start()
    time.sleep(0.7)
    assert hub.webhooks == []
    hub.ready = True
    eventually(lambda: hub.callbacks)
    begin = time.monotonic()
    stop.set()
    show.join(5)
    assert time.monotonic() - begin < 2
    assert not show.is_alive()
    pending = json.loads((plan.data_dir / NOTEBOOK_FILE).read_text())["pending"]
    assert pending
    sent = {delivery for _, delivery, _ in hub.webhooks}

    Show(plan, stop=threading.Event(), seed=1, every=0.1, events=1, burst_pace=0.01, quiet=0.5).run()
    [new] = {delivery for _, delivery, _ in hub.webhooks} - sent
    reported = {(b["delivery_id"], b["workflow"]["job_name"], b["workflow"]["status"]) for _, b in hub.callbacks}
    for row in pending:
        if not row["job"]["reports_end"]:
            continue
        assert (row["job"]["client_payload"]["delivery_id"], row["job"]["job_name"], "completed") in reported
    assert any(delivery == new for delivery, _, _ in reported)


def test_a_rename_outlives_the_show(stage: tuple[Stage, TinyHub]) -> None:
    plan, hub = stage
    quick: dict[str, Any] = {"seed": 1, "every": 0.05, "burst_pace": 0.002, "quiet": 1.0}
    Show(plan, stop=threading.Event(), events=RENAME_AFTER_EVENTS + 3, **quick).run()
    assert json.loads((plan.data_dir / NOTEBOOK_FILE).read_text())["renamed"] is True
    [sable] = [c for c in CHARACTERS if c.renamed_to]
    names = names_of(sable, hub)
    assert list(dict.fromkeys(names)) == [sable.full_name, sable.renamed_to]
    Show(plan, stop=threading.Event(), events=4, **quick).run()
    assert set(names_of(sable, hub)[len(names) :]) == {sable.renamed_to}


def test_at_its_first_show_two_webhooks_get_lost_and_go_out_when_asked_for(
    stage: tuple[Stage, TinyHub], app_key: str
) -> None:
    plan, hub = stage
    stop = threading.Event()
    playing = threading.Thread(target=Show(plan, stop=stop, seed=1, every=30, burst_pace=0.002).run)
    playing.start()
    eventually(lambda: len(hub.webhooks) == BURST_EVENTS - LOST_EVENTS, seconds=20)
    client = GitHubClient(api_url=f"http://127.0.0.1:{plan.port}", app_id=APP_ID, private_key=app_key)
    logged, _ = client.hook_deliveries(since=datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=3))
    came = [delivery for _, delivery, _ in hub.webhooks]
    first = LOST_AFTER_EVENTS - 1
    lost = logged[::-1][first : first + LOST_EVENTS]
    assert [one for one in reversed(logged) if one.delivery_id not in came] == lost
    for one in lost:
        client.redeliver(one.github_id)
    eventually(lambda: {one.delivery_id for one in lost} <= {delivery for _, delivery, _ in hub.webhooks})
    stop.set()
    playing.join(5)
    assert not playing.is_alive()


def names_of(character: Character, hub: TinyHub) -> list[str]:
    """What its repository was called in each callback."""
    number = str(character.repository_id)
    return [claims["repository"] for claims, _ in hub.callbacks if claims.get("repository_id") == number]


def test_nights_fall_and_the_second_one_is_about_a_commit_that_upstream_does_not_know(
    stage: tuple[Stage, TinyHub], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, hub = stage
    monkeypatch.setattr(show_module, "NIGHT_EVERY_EVENTS", 3)
    Show(plan, stop=threading.Event(), seed=1, every=0.1, events=8, burst_pace=0.002, quiet=1.0).run()
    nightly = [body for _, body in hub.callbacks if body["event_type"] == "nightly"]
    runs = {body["workflow"]["run_id"]: body["payload"]["head_sha"] for body in nightly}
    pushed = {sha for event, _, body in hub.webhooks if event == "push" for sha in (body["before"], body["after"])}
    based = {body["pull_request"]["base"]["sha"] for event, _, body in hub.webhooks if event == "pull_request"}
    assert len(runs) == 3
    assert [commit in pushed | based for commit in runs.values()].count(False) == 1


def test_what_was_owed_survives_an_end_before_the_hub_was_ready(stage: tuple[Stage, TinyHub]) -> None:
    plan, hub = stage
    hub.ready = False
    owed = {
        "upstream": {"count": 7, "next_number": 900_009, "main_sha": "a", "open": [], "closed": []},
        "pending": [{}],
        "renamed": False,
    }
    Notebook(plan.data_dir / NOTEBOOK_FILE).write(owed)
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    Show(plan, stop=stop, seed=1, every=30).run()
    assert Notebook(plan.data_dir / NOTEBOOK_FILE).read() == owed | {"version": 1}


def test_a_history_is_told_beside_the_present_once(
    stage: tuple[Stage, TinyHub], caplog: pytest.LogCaptureFixture
) -> None:
    plan, hub = stage
    caplog.set_level(logging.INFO, "apps.simulator")
    quick: dict[str, Any] = {"seed": 1, "every": 0.1, "history_after": 0, "burst_pace": 0.01, "quiet": 0.5}
    Show(plan, stop=threading.Event(), events=2, history=1, **quick).run()
    assert {bool(clock) for clock in hub.clocks} == {True, False}
    assert caplog.text.count("History: complete") == 1
    history = json.loads((plan.data_dir / NOTEBOOK_FILE).read_text())["history"]
    assert (history["days"], history["next_day"]) == (1, 2)
    assert isinstance(history["owed"], list)  # whether any job still runs depends on the hour
    told, webhooks = sum(map(bool, hub.clocks)), len(hub.webhooks)
    assert len({delivery for _, delivery, _ in hub.webhooks}) == webhooks > 2
    # The live events are about pull requests that the history has opened, too.
    Show(plan, stop=threading.Event(), events=2, history=1, **quick).run()
    assert (sum(map(bool, hub.clocks)), len(hub.webhooks)) == (told, webhooks + 2)
    assert caplog.text.count("History: complete") == 1


def test_an_interrupted_history_goes_on(stage: tuple[Stage, TinyHub]) -> None:
    plan, hub = stage
    stop = threading.Event()
    show = threading.Thread(
        target=Show(plan, stop=stop, seed=1, every=30, history=60, history_after=0, burst_pace=0.01).run
    )
    show.start()
    eventually(lambda: sum(map(bool, hub.clocks)) > 100, seconds=30)
    stop.set()
    show.join(5)
    assert not show.is_alive()
    notes = json.loads((plan.data_dir / NOTEBOOK_FILE).read_text())
    assert 0 < notes["history"]["next_day"] < 60
    days = notes["history"]["days"] = notes["history"]["next_day"] + 1  # a short rest will do
    until = datetime.datetime.fromisoformat(notes["history"]["until"]) - datetime.timedelta(days=60 - days)
    notes["history"]["until"] = until.isoformat()
    Notebook(plan.data_dir / NOTEBOOK_FILE).write(notes)
    Show(plan, stop=threading.Event(), seed=1, every=0.1, events=1, burst_pace=0.01, quiet=0.5).run()
    after = json.loads((plan.data_dir / NOTEBOOK_FILE).read_text())["history"]
    assert after["next_day"] == days + 1
    told = [
        (body["workflow"]["check_run_id"], body["workflow"]["status"])
        for (_, body), clock in zip(hub.callbacks, hub.clocks, strict=True)
        if clock
    ]
    assert len(told) == len(set(told))


def test_a_hub_that_takes_no_history_is_shown_the_present(
    stage: tuple[Stage, TinyHub], caplog: pytest.LogCaptureFixture
) -> None:
    plan, hub = stage
    hub.takes_clock = False
    Show(
        plan,
        stop=threading.Event(),
        seed=1,
        every=0.1,
        events=2,
        history=3,
        history_after=0,
        burst_pace=0.01,
        quiet=0.5,
    ).run()
    assert "The hub takes no history: 400" in caplog.text
    assert hub.callbacks
    assert not any(hub.clocks)


def test_a_taken_port_is_said_and_leaves_the_other_ones_notes(stage: tuple[Stage, TinyHub]) -> None:
    plan, _ = stage
    other = Server(plan.port, lambda request: Answer(204))
    try:
        with pytest.raises(PortTaken, match=str(plan.port)):
            Show(plan, stop=threading.Event(), seed=1, every=30).run()
    finally:
        other.end()
    assert not (plan.data_dir / NOTEBOOK_FILE).exists()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 0, "pending": []}'])
def test_a_notebook_of_another_shape_starts_anew(tmp_path: Path, content: str) -> None:
    (tmp_path / "n.json").write_text(content)
    assert Notebook(tmp_path / "n.json").read() == {}


def test_the_notebook_is_private(tmp_path: Path) -> None:
    notebook = Notebook(tmp_path / "n.json")
    assert notebook.read() == {}
    notebook.write({"a": 1})
    assert notebook.read() == {"a": 1, "version": 1}
    assert (tmp_path / "n.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("demo", "api_url", "options", "message"),
    [
        (False, "http://127.0.0.1:1", {}, "ACCELHUB_DEMO"),
        (True, "https://api.github.com", {}, "not a port on 127.0.0.1"),
        (True, "http://127.0.0.1", {}, "not a port on 127.0.0.1"),
        (True, "http://127.0.0.1:1", {"every": 0.0}, "above zero"),
        (True, "http://127.0.0.1:1", {"events": 0}, "above zero"),
        (True, "http://127.0.0.1:1", {"history": -1}, "below zero"),
    ],
)
def test_the_command_refuses(
    monkeypatch: pytest.MonkeyPatch, demo: bool, api_url: str, options: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr(simulate, "settings", SimpleNamespace(DEMO=demo, GITHUB_API_URL=api_url))
    with pytest.raises(CommandError, match=message):
        simulate.Command().handle(**({"seed": 1, "every": 20.0, "events": None, "history": 0} | options))


def test_the_command_takes_its_stage_from_settings(
    monkeypatch: pytest.MonkeyPatch, stage: tuple[Stage, TinyHub]
) -> None:
    plan, hub = stage
    settings = SimpleNamespace(
        DEMO=True,
        GITHUB_API_URL=f"http://127.0.0.1:{plan.port}",
        BASE_URL=hub.url,
        GITHUB_APP_ID=APP_ID,
        GITHUB_APP_PRIVATE_KEY=plan.app_private_key,
        GITHUB_WEBHOOK_SECRET=SECRET,
        OIDC_AUDIENCE=AUDIENCE,
        UPSTREAM_REPO="pytorch/pytorch",
        DATA_DIR=plan.data_dir,
    )
    monkeypatch.setattr(simulate, "settings", settings)
    played: list[tuple[Any, ...]] = []

    class Noted(Show):
        def __init__(self, stage: Stage, **options: Any) -> None:
            played.append((stage, options["seed"], options["every"], options["events"], options["history"]))

        def run(self) -> None:
            raise PortTaken("Port 1 cannot be used")

    monkeypatch.setattr(simulate, "Show", Noted)
    monkeypatch.setattr("signal.signal", lambda *args: None)
    with pytest.raises(CommandError, match="running already"):
        simulate.Command().handle(seed=1, every=1.0, events=None, history=7)
    assert played == [(plan, 1, 1.0, None, 7)]
