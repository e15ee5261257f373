"""docs/reporter-example.sh sends what the reporter sends: the same body that the simulator's reporter builds."""

import datetime
import json
import os
import subprocess
from pathlib import Path

import pytest

from apps.simulator.characters import CHARACTERS
from apps.simulator.reporter import callback_body
from apps.simulator.standin import GitHubStandIn
from tests.simulator.tiny_hub import SECRET, TinyHub

SCRIPT = Path(__file__).parents[2] / "docs" / "reporter-example.sh"


def run(data_dir: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"ACCELHUB_DATA_DIR": str(data_dir)}
    return subprocess.run([SCRIPT], env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def data_dir(github: GitHubStandIn, tiny_hub: TinyHub, tmp_path: Path) -> Path:
    for character in CHARACTERS:
        github.add_repository(character.full_name)
    facts = {"port": github.port, "webhook_secret": SECRET, "base_url": tiny_hub.url}
    (tmp_path / "demo.json").write_text(json.dumps(facts))
    return tmp_path


def test_both_callbacks_are_the_reporters(data_dir: Path, tiny_hub: TinyHub) -> None:
    done = run(data_dir)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("(HTTP 200)") == 2
    [(event, delivery_id, _)] = tiny_hub.webhooks
    assert event == "pull_request"
    assert [body["workflow"]["status"] for _, body in tiny_hub.callbacks] == ["in_progress", "completed"]
    assert len({claims["jti"] for claims, _ in tiny_hub.callbacks}) == 2
    for claims, body in tiny_hub.callbacks:
        workflow = body["workflow"]
        moment = workflow["started_at"] or workflow["completed_at"]
        assert body == callback_body(
            {name: value for name, value in body.items() if name != "workflow"},
            status=workflow["status"],
            conclusion="success",
            name="CI",
            url=f"https://github.com/{claims['repository']}/actions/runs/{claims['run_id']}",
            run_id=claims["run_id"],
            run_attempt=claims["run_attempt"],
            job_name="reporter-example",
            check_run_id=workflow["check_run_id"],
            at=datetime.datetime.fromisoformat(moment),
            test_results=workflow.get("test_results"),
            artifact_url=workflow.get("artifact_url"),
        )
        assert body["delivery_id"] == delivery_id
        assert {"event_type", "payload", "accelhub"} <= set(body)


def test_a_refusal_turns_the_script_red_and_shows_the_answer(data_dir: Path, tiny_hub: TinyHub) -> None:
    tiny_hub.answers = [403]
    done = run(data_dir)
    assert done.returncode == 22  # what curl --fail-with-body ends with
    assert "made_up" in done.stdout


def test_without_a_demo_it_says_how_to_start_one(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 1
    assert "make demo" in done.stderr
