"""`accelhub report upload`: what goes over the wire, by which name, and what it says about itself."""

import gzip
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.client.recorder import CLIENT, JUNIT, REPORT_ID, Client, Ended, Recorder, Says

HERE = ("--run-id", "7", "--job-name", "build")
NAME = "test-reports/python-pytest/test_ops/a.xml"


def test_a_folder_goes_as_one_archive_under_names_from_the_working_folder_on(
    cli: Client, recorder: Recorder, step: Path
) -> None:
    (step / "test-reports" / "log.jsonl").write_text('{"pytest_version": "9"}\n')
    (step / "test-reports" / "core.bin").write_bytes(b"no report")
    ended = cli("report", "upload", "test-reports", *HERE)
    assert ended == Ended(0, f"received: {REPORT_ID}\nreceipt: https://hub/r/\n", ended.err)
    (asked,) = recorder.asked
    assert (asked.method, asked.path) == ("POST", "/api/v1/reports/")
    assert asked.headers["authorization"] == "Bearer a.b.c"
    assert int(asked.headers["content-length"]) == len(asked.body)
    assert asked.packed == {"test-reports/log.jsonl": '{"pytest_version": "9"}\n', NAME: JUNIT}
    assert "Packed 2 reports into" in ended.err


def test_the_same_files_make_the_same_bytes(cli: Client, recorder: Recorder, step: Path) -> None:
    cli("report", "upload", "test-reports", *HERE)
    os.utime(step / NAME, (1, 1))
    cli("report", "upload", str(step / "test-reports"), "test-reports/**/*.xml", *HERE)
    first, second = (asked.parts[1] for asked in recorder.asked)
    assert first == second


def test_archives_go_as_they_are_beside_what_is_packed(cli: Client, recorder: Recorder, step: Path) -> None:
    with zipfile.ZipFile(step / "old.zip", "w") as archive:
        archive.writestr("x.xml", JUNIT)
    (step / "odd name.gz").write_bytes(gzip.compress(JUNIT.encode()))
    ended = cli("report", "upload", "old.zip", "odd name.gz", NAME, *HERE)
    assert ended.code == 0
    names = [(field, name) for field, name, _ in recorder.asked[0].parts]
    assert names == [("meta", ""), ("file", "reports.zip"), ("file", "old.zip"), ("file", "odd name.gz")]
    assert recorder.asked[0].parts[2][2] == (step / "old.zip").read_bytes()
    assert "old.zip goes as it is" in ended.err


def test_a_report_outside_the_working_folder_tells_nothing_of_this_machine(
    cli: Client, recorder: Recorder, tmp_path: Path
) -> None:
    away = tmp_path / "away" / "python-unittest" / "test_nn"
    away.mkdir(parents=True)
    (away / "b.xml").write_text(JUNIT)
    cli("report", "upload", away.parent, *HERE)
    assert list(recorder.asked[0].packed) == ["python-unittest/test_nn/b.xml"]


def test_reports_of_one_name_from_two_places_are_both_kept(cli: Client, recorder: Recorder, tmp_path: Path) -> None:
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "r.xml").write_text(JUNIT.replace("test_a", f"test_{place}"))
    cli("report", "upload", tmp_path / "one" / "r.xml", tmp_path / "two" / "r.xml", *HERE)
    assert [(name, "test_two" in text) for name, text in recorder.asked[0].packed.items()] == [
        ("2/r.xml", True),
        ("r.xml", False),
    ]


def test_on_a_terminal_there_is_a_bar(step: Path, recorder: Recorder) -> None:
    reading, writing = os.openpty()
    command = [sys.executable, "-I", "-S", "-B", str(CLIENT), "report", "upload", "test-reports", *HERE]
    env = {"ACCELHUB_URL": recorder.url, "ACCELHUB_TOKEN": "a.b.c"}
    ended = subprocess.run(command, cwd=step, env=env, stdout=subprocess.PIPE, stderr=writing, check=False)
    shown = os.read(reading, 65_536).decode()
    os.close(writing)
    os.close(reading)
    assert (ended.returncode, ended.stdout.splitlines()[0]) == (0, f"received: {REPORT_ID}".encode())
    assert "\rPacking [" + "#" * 30 + "] 100% of " in shown
    assert "\rUploading [" + "#" * 30 + "] 100% of " in shown


def test_much_is_told_by_quarters_where_there_is_no_terminal(cli: Client, step: Path) -> None:
    (step / "big.gz").write_bytes(b"\x1f\x8b" + bytes(12_000_000 - 2))
    said = cli("report", "upload", "big.gz", *HERE).err.splitlines()
    assert [line for line in said if line.startswith("Uploading")] == [
        f"Uploading: {share} % of 12.0 MB" for share in (25, 50, 75)
    ]


def test_links_below_a_folder_are_left_out_and_that_is_said(cli: Client, recorder: Recorder, step: Path) -> None:
    (step / "test-reports" / "link.xml").symlink_to("/etc/hostname")
    ended = cli("report", "upload", "test-reports", *HERE)
    assert list(recorder.asked[0].packed) == [NAME]
    assert "Left out 1 symbolic links" in ended.err


def test_github_actions_says_which_run_and_which_delivery_it_is(
    cli: Client, recorder: Recorder, tmp_path: Path
) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"client_payload": {"delivery_id": "d-1", "event_type": "pull_request"}}))
    github = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_RUN_ID": "123",
        "GITHUB_RUN_ATTEMPT": "2",
        "GITHUB_WORKFLOW": "CI",
        "GITHUB_JOB": "test",
        "GITHUB_EVENT_NAME": "repository_dispatch",
        "GITHUB_EVENT_PATH": str(event),
    }
    options = "--shard 2/5 --variant inductor --torch-version 2.10 --hardware N1 --check-run-id 456 --leg py3.12"
    cli("report", "upload", "test-reports", *options.split(), env=github)
    assert recorder.asked[0].meta == {
        "run_id": "123",
        "run_attempt": "2",
        "workflow": "CI",
        "job_name": "test",
        "leg": "py3.12",
        "check_run_id": "456",
        "delivery_id": "d-1",
        "event_type": "pull_request",
        "report_key": "run 123.2 / CI / test",
        "variant": "inductor",
        "torch_version": "2.10",
        "hardware": "N1",
        "shard": 2,
        "shards": 5,
    }


def test_an_event_of_the_repository_itself_is_no_dispatch(cli: Client, recorder: Recorder, tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"client_payload": {"delivery_id": "d-1"}}))
    github = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "push", "GITHUB_EVENT_PATH": str(event)}
    cli("report", "upload", "test-reports", *HERE, env=github)
    assert recorder.asked[0].meta == {"run_id": "7", "job_name": "build"}


def test_buildkite_says_build_attempt_and_which_of_its_parallel_jobs_it_is(cli: Client, recorder: Recorder) -> None:
    buildkite = {
        "BUILDKITE": "true",
        "BUILDKITE_BUILD_NUMBER": "88",
        "BUILDKITE_RETRY_COUNT": "1",
        "BUILDKITE_PIPELINE_SLUG": "torch-npu",
        "BUILDKITE_STEP_KEY": "tests",
        "BUILDKITE_PARALLEL_JOB": "0",
        "BUILDKITE_PARALLEL_JOB_COUNT": "3",
    }
    cli("report", "upload", "test-reports", "--delivery", "d-2", "--event", "push", env=buildkite)
    assert recorder.asked[0].meta == {
        "run_id": "88",
        "run_attempt": "2",
        "workflow": "torch-npu",
        "job_name": "tests",
        "delivery_id": "d-2",
        "event_type": "push",
        "report_key": "run 88.2 / torch-npu / tests",
        "shard": 1,
        "shards": 3,
    }


def test_a_dry_run_shows_what_would_be_sent_and_sends_nothing(cli: Client, recorder: Recorder) -> None:
    ended = cli("report", "upload", "test-reports", *HERE, "--dry-run", env={"ACCELHUB_TOKEN": "", "ACCELHUB_URL": ""})
    lines = ended.out.splitlines()
    assert (ended.code, lines[0], lines[2]) == (0, 'meta: {"run_id": "7", "job_name": "build"}', f"  {NAME}")
    assert lines[1].startswith("file: reports.zip, ")
    assert recorder.asked == []


def test_what_the_hub_ignores_does_not_fail_the_step(cli: Client, recorder: Recorder) -> None:
    recorder.answers = [Says(200, {"status": "ignored"})]
    ended = cli("report", "upload", "test-reports", *HERE)
    assert (ended.code, ended.out) == (0, "")
    assert "does not list this repository" in ended.err


def test_outputs_are_appended_for_the_steps_that_follow(cli: Client, tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    outputs.write_text("a=b\n")
    cli("report", "upload", "test-reports", *HERE, "--outputs", outputs)
    assert outputs.read_text() == f"a=b\nid={REPORT_ID}\nreceipt=https://hub/r/\nstatus=received\n"


@pytest.mark.parametrize(
    ("arguments", "env", "said"),
    [
        (("nowhere",), {}, "nowhere: there is no such file, and nothing that it matches."),
        (("empty",), {}, "empty: no report is below this folder. Looked for *.xml, *.jsonl, *.reportlog."),
        (("test-reports", "--shard", "6/5"), {}, "--shard: saw '6/5', give i/n, such as 2/5."),
        (("test-reports", "--redact", "("), {}, "--redact (: is no regular expression of Python"),
        (("test-reports", "--redact", "x*"), {}, "--redact x*: matches nothing at all, so everywhere."),
        (("test-reports",), {"ACCELHUB_URL": ""}, "--url: is missing, and ACCELHUB_URL too."),
        (
            ("test-reports", "--url", "http://hub.example"),
            {},
            "--url: saw 'http://hub.example'. A token travels by https only.",
        ),
        (("test-reports", "--url", "hub.example"), {}, "--url: saw 'hub.example', give an address such as"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_sent(
    cli: Client, recorder: Recorder, step: Path, arguments: tuple[str, ...], env: dict[str, str], said: str
) -> None:
    (step / "empty").mkdir()
    ended = cli("report", "upload", *arguments, *HERE, env=env)
    assert (ended.code, ended.out) == (2, "")
    assert f"accelhub: {said}" in ended.err
    assert recorder.asked == []


def test_outside_of_a_ci_the_run_must_be_named(cli: Client) -> None:
    ended = cli("report", "upload", "test-reports")
    assert (ended.code, ended.err) == (
        2,
        "accelhub: run_id: neither GitHub Actions nor Buildkite says it here. Give --run-id.\n",
    )
