"""What fails for a while is tried again, each time with a token of its own; what does not is not."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.recorder import REPORT_ID, Client, Recorder, Says

UPLOAD = ("report", "upload", "test-reports", "--run-id", "7", "--job-name", "build")
PROBLEM = {"title": "Too many requests", "code": "rate_limited", "detail": "rate: 120 a minute."}


@pytest.fixture
def issuer() -> Iterator[Recorder]:
    """GitHub's address for tokens: each one differs from the one before."""
    made = Recorder()
    made.answers = [Says(200, {"value": f"token.number.{number}"}) for number in range(1, 9)]
    made.start()
    yield made
    made.stop()


def github(issuer: Recorder) -> dict[str, str]:
    return {
        "ACCELHUB_TOKEN": "",
        "ACTIONS_ID_TOKEN_REQUEST_URL": f"{issuer.url}/token?api-version=2.0",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "request-key",
    }


def test_a_hub_that_fails_is_asked_again_with_the_same_bytes_and_a_new_token(
    cli: Client, recorder: Recorder, issuer: Recorder
) -> None:
    recorder.answers = [Says(503, {"detail": "The hub cannot store files."}), Says(raw=b""), Says()]
    ended = cli(*UPLOAD, env=github(issuer))
    assert (ended.code, ended.out.splitlines()[0]) == (0, f"received: {REPORT_ID}")
    tokens = [asked.headers["authorization"] for asked in recorder.asked]
    assert tokens == ["Bearer token.number.1", "Bearer token.number.2", "Bearer token.number.3"]
    assert len({asked.body for asked in recorder.asked}) == 1
    assert "The upload: HTTP 503: The hub cannot store files. Attempt 2 of 6 in " in ended.err
    assert "The upload: RemoteDisconnected" in ended.err
    assert [asked.path for asked in issuer.asked] == ["/token?api-version=2.0&audience=pytorch-cross-repo-ci-relay"] * 3
    assert {asked.headers["authorization"] for asked in issuer.asked} == {"bearer request-key"}
    assert "token.number" not in ended.out + ended.err
    assert "request-key" not in ended.out + ended.err


def test_retry_after_is_waited_for(cli: Client, recorder: Recorder) -> None:
    recorder.answers = [Says(429, PROBLEM, {"Retry-After": "2"}), Says()]
    started = time.monotonic()
    ended = cli(*UPLOAD)
    assert ended.code == 0
    assert time.monotonic() - started >= 2
    assert "The upload: HTTP 429: rate: 120 a minute. Attempt 2 of 6 in 2.0 s.\n" in ended.err


def test_who_is_asked_to_wait_until_midnight_gives_up_at_once(cli: Client, recorder: Recorder) -> None:
    recorder.answers = [Says(429, PROBLEM, {"Retry-After": "40000"})]
    ended = cli(*UPLOAD)
    assert (ended.code, len(recorder.asked)) == (5, 1)
    assert ended.err.endswith("Gave up after 1 of 6 attempts. It asks to be left alone for 40000 s.\n")


def test_it_gives_up_after_six_attempts(cli: Client, recorder: Recorder) -> None:
    recorder.answers = [Says(502, b"<html>bad gateway</html>", {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"})]
    ended = cli(*UPLOAD)
    assert (ended.code, len(recorder.asked)) == (5, 6)
    assert "accelhub: The upload: HTTP 502. Gave up after 6 of 6 attempts." in ended.err


def test_a_hub_that_says_nothing_is_not_waited_for_forever(cli: Client, recorder: Recorder) -> None:
    recorder.answers = [Says(raw=b"H" * 1_000, drip=0.2), Says()]
    ended = cli(*UPLOAD, smaller="transport.ANSWER_SECONDS = 1.0")
    assert (ended.code, len(recorder.asked)) == (0, 2)


def test_a_hub_that_is_not_there_is_unavailable(cli: Client) -> None:
    ended = cli(*UPLOAD, "--url", "http://127.0.0.1:1", smaller="retries.ATTEMPTS = 1; retries._FIRST_WAIT = 0.01")
    assert ended.code == 5
    assert "ConnectionRefusedError" in ended.err


def test_a_refusal_is_said_as_the_hub_says_it_and_not_tried_again(cli: Client, recorder: Recorder) -> None:
    problem = {
        "title": "The report was uploaded otherwise",
        "code": "report_conflict",
        "detail": "report_key: shard 1 came with other bytes.",
        "field": "report_key",
        "next_step": "Give each run's report a key of its own.",
    }
    recorder.answers = [Says(409, problem, {"Content-Type": "application/problem+json"})]
    ended = cli(*UPLOAD)
    assert (ended.code, ended.out, len(recorder.asked)) == (3, "", 1)
    assert ended.err.split("accelhub: ")[1].splitlines() == [
        "HTTP 409 The report was uploaded otherwise (report_conflict)",
        "  seen: report_key: shard 1 came with other bytes.",
        "  field: report_key",
        "  next: Give each run's report a key of its own.",
    ]


def test_without_a_ci_there_is_no_token(cli: Client, recorder: Recorder) -> None:
    ended = cli(*UPLOAD, env={"ACCELHUB_TOKEN": ""})
    assert (ended.code, recorder.asked) == (4, [])
    assert "`permissions: id-token: write`" in ended.err


def test_github_that_gives_no_token_ends_it_before_anything_is_sent(
    cli: Client, recorder: Recorder, issuer: Recorder
) -> None:
    issuer.answers = [Says(403, {})]
    assert cli(*UPLOAD, env=github(issuer)).code == 4
    issuer.answers = [Says(200, {"value": "x\r\nX-Evil: 1"})]
    ended = cli(*UPLOAD, env=github(issuer))
    assert (ended.code, recorder.asked) == (4, [])
    assert "GitHub's OIDC token: is no token" in ended.err


def test_buildkites_agent_is_asked_for_a_token_with_the_pipelines_ids(
    cli: Client, recorder: Recorder, tmp_path: Path
) -> None:
    agent = tmp_path / "bin" / "buildkite-agent"
    agent.parent.mkdir()
    agent.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/argv\necho bk.token.$(wc -l < {tmp_path}/argv)\n')
    agent.chmod(0o755)
    recorder.answers = [Says(500, {}), Says()]
    buildkite = {"ACCELHUB_TOKEN": "", "BUILDKITE": "true", "PATH": f"{agent.parent}:/usr/bin:/bin"}
    ended = cli(*UPLOAD, "--audience", "hub", env=buildkite)
    assert ended.code == 0
    assert [asked.headers["authorization"] for asked in recorder.asked] == ["Bearer bk.token.1", "Bearer bk.token.2"]
    command = "oidc request-token --audience hub --claim organization_id,pipeline_id\n"
    assert (tmp_path / "argv").read_text() == command * 2
    assert "bk.token" not in ended.out + ended.err


def test_an_agent_that_fails_is_quoted(cli: Client, tmp_path: Path) -> None:
    agent = tmp_path / "buildkite-agent"
    agent.write_text("#!/bin/sh\necho no such job >&2\nexit 1\n")
    agent.chmod(0o755)
    ended = cli(*UPLOAD, env={"ACCELHUB_TOKEN": "", "BUILDKITE": "true", "PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert ended.code == 4
    assert "buildkite-agent gives no OIDC token: no such job" in ended.err
