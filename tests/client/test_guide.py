"""client/README.md prints the client's tables; client/action.yml runs it."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.client.recorder import CLIENT, JUNIT, REPORT_ID, Recorder
from tests.client.secrets import client_module

README = (CLIENT / "README.md").read_text()
ACTION: dict[str, Any] = yaml.safe_load((CLIENT / "action.yml").read_text())
(STEP,) = ACTION["runs"]["steps"]
ci, exits, questions, redaction = map(client_module, ("ci", "exits", "questions", "redaction"))


def table(first: str) -> list[list[str]]:
    """The rows of the README's table whose header begins so."""
    lines = README.split(f"| {first} ", 1)[1].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_the_guide_prints_every_field_and_where_it_comes_from() -> None:
    assert table("option") == [
        [f"`{field.option}`", f"`{field.name}`", field.github, field.buildkite, field.says] for field in ci.FIELDS
    ]


def test_the_guide_prints_every_exit_code() -> None:
    assert table("exit code") == [[str(code), says] for code, says in exits.EXITS.values()]


def test_the_guide_prints_every_question() -> None:
    assert table("command") == [[f"`accelhub {one.name}`", one.says] for one in questions.QUESTIONS]


def test_the_guide_prints_what_is_always_replaced() -> None:
    assert table("always replaced") == [[pattern.name] for pattern in redaction.DEFAULTS]
    assert ", ".join(redaction.OWN_SECRETS) in " ".join(README.split())


def run_action(step: Path, recorder: Recorder, tmp_path: Path, **inputs: str) -> "subprocess.CompletedProcess[str]":
    """The action's step as GitHub runs it, with `inputs` (dashes as underscores)."""

    def value(expression: str) -> str:
        (name,) = re.findall(r"^\$\{\{ inputs\.([a-z-]+) \}\}$", expression)
        default = str(ACTION["inputs"][name].get("default", ""))
        return inputs.get(name.replace("-", "_"), "" if "${{" in default else default)

    script = tmp_path / "step.sh"
    script.write_text(STEP["run"])
    environment = {name: value(expression) for name, expression in STEP["env"].items()}
    environment |= {"GITHUB_OUTPUT": str(tmp_path / "outputs"), "GITHUB_ACTION_PATH": str(CLIENT)}
    environment |= {"PATH": os.environ["PATH"], "ACCELHUB_TOKEN": "a.b.c", "ACCELHUB_URL": recorder.url}
    environment |= {"GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": "7", "GITHUB_JOB": "test"}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
    return subprocess.run(command, cwd=step, env=environment, capture_output=True, text=True, check=False)


def test_the_action_runs_the_client_with_its_inputs(step: Path, recorder: Recorder, tmp_path: Path) -> None:
    (step / "a b.xml").write_text(
        JUNIT.replace("test_a", "test_$HOME").replace('time="0.1"/>', ">box-1 ash</testcase>")
    )
    ended = run_action(
        step,
        recorder,
        tmp_path,
        paths="test-reports\na b.xml\n",
        redact="box-\\d+\n--ash|ash\n",
        variant='$(touch evil) "x"',
        check_run_id="456",
    )
    assert ended.returncode == 0, ended.stderr
    assert recorder.asked[0].meta == {
        "run_id": "7",
        "job_name": "test",
        "check_run_id": "456",
        "variant": '$(touch evil) "x"',
    }
    packed = recorder.asked[0].packed
    assert list(packed) == ["a b.xml", "test-reports/python-pytest/test_ops/a.xml"]
    assert ">*** ***</testcase>" in packed["a b.xml"]
    assert not (step / "evil").exists()
    assert (tmp_path / "outputs").read_text() == f"id={REPORT_ID}\nreceipt=https://hub/r/\nstatus=received\n"


def test_an_action_without_paths_fails_by_the_clients_code(step: Path, recorder: Recorder, tmp_path: Path) -> None:
    assert run_action(step, recorder, tmp_path, paths="nowhere/*.xml").returncode == 2


@pytest.mark.parametrize("field", ci.FIELDS, ids=lambda field: field.name)
def test_the_action_has_an_input_for_every_field_that_github_does_not_say(field: Any) -> None:
    name = field.option.removeprefix("--")
    assert (name in ACTION["inputs"]) == (field.name not in ("run_id", "run_attempt"))
    assert (f"option {field.option} " in STEP["run"]) == (name in ACTION["inputs"])
