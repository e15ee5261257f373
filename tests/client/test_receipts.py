"""`--wait` and `accelhub report status`: what became of an upload, from a server that may say anything."""

from pathlib import Path
from typing import Any

import pytest

from tests.client.recorder import REPORT_ID, Client, Recorder, Says

UPLOAD = ("report", "upload", "test-reports", "--run-id", "7", "--job-name", "build")
READY: dict[str, Any] = {
    "id": REPORT_ID,
    "state": "ready",
    "progress": 100,
    "reason": "",
    "counts": {"total": 3, "passed": 2, "failed": 1},
    "flags": ["shards_missing"],
    "shards": {"declared": 3, "missing": [2, 3]},
    "files": [
        {"name": "a.xml", "state": "parsed", "parsed": 3, "dropped": 0, "notes": []},
        {
            "name": "b.xml",
            "state": "partial",
            "parsed": 0,
            "dropped": 1,
            "notes": [{"code": "truncated", "count": 1, "says": "The file ends early."}],
        },
    ],
}
SHOWN = """state: ready
counts: total 3, passed 2, failed 1
flags: shards_missing
shards missing: 2, 3 of 3
files: 2, 1 of them with notes
  b.xml: partial, 0 parsed, 1 dropped
    truncated × 1: The file ends early.
"""


def test_wait_asks_until_the_report_is_ready_and_shows_it(cli: Client, recorder: Recorder) -> None:
    parsing = READY | {"state": "parsing", "progress": 40}
    recorder.answers = [Says(), Says(200, parsing), Says(500, {}), Says(200, READY)]
    ended = cli(*UPLOAD, "--wait")
    assert (ended.code, ended.out) == (0, f"received: {REPORT_ID}\nreceipt: https://hub/r/\n{SHOWN}")
    assert "The report is parsing, 40 %.\n" in ended.err
    assert [asked.path for asked in recorder.asked[1:]] == [f"/api/v1/reports/{REPORT_ID}/"] * 3
    assert not any("authorization" in asked.headers for asked in recorder.asked[1:])


@pytest.mark.parametrize("state", ["failed", "removed"])
def test_a_report_that_never_gets_ready_fails_the_step(cli: Client, recorder: Recorder, state: str) -> None:
    recorder.answers = [Says(), Says(200, {"state": state, "reason": "not a report", "counts": None})]
    ended = cli(*UPLOAD, "--wait")
    assert ended.code == 6
    assert f"state: {state}\nreason: not a report\n" in ended.out


def test_waiting_ends_in_time(cli: Client, recorder: Recorder) -> None:
    recorder.answers = [Says(), Says(200, {"state": "received", "progress": 0})]
    ended = cli(*UPLOAD, "--wait", "--wait-seconds", "0.5")
    assert ended.code == 7
    assert "The report is received, 0 % after 0 s." in ended.err


def test_status_takes_an_id_or_the_receipts_address(cli: Client, recorder: Recorder) -> None:
    recorder.answers = [Says(200, READY)]
    address = f"{recorder.url}/reports/{REPORT_ID}/"
    assert [cli("report", "status", said).out for said in (REPORT_ID, address)] == [SHOWN] * 2
    assert cli("report", "status", address, env={"ACCELHUB_URL": ""}).out == SHOWN
    assert {asked.path for asked in recorder.asked} == {f"/api/v1/reports/{REPORT_ID}/"}
    assert cli("report", "status", "latest").code == 2


def test_a_receipt_that_is_not_public_is_asked_for_with_an_api_token_of_this_hub_only(
    cli: Client, recorder: Recorder
) -> None:
    recorder.answers = [Says(200, READY)]
    env = {"ACCELHUB_API_TOKEN": "ahp_secret"}
    assert cli("report", "status", REPORT_ID, env=env).code == 0
    assert recorder.asked[0].headers["authorization"] == "Bearer ahp_secret"
    ended = cli("report", "status", f"https://elsewhere.example/reports/{REPORT_ID}/", env=env)
    assert (ended.code, len(recorder.asked)) == (2, 1)
    recorder.answers = [Says(404, {})]
    ended = cli("report", "status", REPORT_ID)
    assert ended.code == 3
    assert "set ACCELHUB_API_TOKEN" in ended.err


def test_redirects_stay_at_the_hub(cli: Client, recorder: Recorder) -> None:
    recorder.answers = [Says(302, {}, {"Location": "/there/"}), Says(200, READY)]
    assert cli("report", "status", REPORT_ID).code == 0
    assert recorder.asked[1].path == "/there/"
    once = "retries.ATTEMPTS = 1; retries._FIRST_WAIT = 0.0"
    for there in ("https://elsewhere.example/", "http://127.0.0.1:1/", "file:///etc/passwd", "/again/"):
        recorder.answers = [Says(302, {}, {"Location": there})]
        assert cli("report", "status", REPORT_ID, smaller=once).code == 5
    recorder.asked.clear()
    recorder.answers = [Says(307, {}, {"Location": "https://elsewhere.example/"})]
    ended = cli(*UPLOAD)
    assert (ended.code, len(recorder.asked)) == (3, 1)
    assert "The hub redirects to https://elsewhere.example/." in ended.err


@pytest.mark.parametrize(
    "says",
    [
        Says(200, b"[" * 100_000),
        Says(200, b"\xff\xfe"),
        Says(200, [1, 2]),
        Says(202, {"id": "../../etc", "status": "received"}),
        Says(202, {"id": REPORT_ID, "status": "fine"}),
        Says(200, b'"' + b"x" * 2_000_000 + b'"'),
    ],
)
def test_an_answer_that_is_none_of_a_hub_is_no_success(cli: Client, recorder: Recorder, says: Says) -> None:
    recorder.answers = [says]
    assert cli(*UPLOAD, smaller="retries._FIRST_WAIT = 0.0").code == 5


def test_what_a_hub_says_cannot_give_orders_to_terminal_or_ci(cli: Client, recorder: Recorder, tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    evil = "\n::set-env name=PATH::/evil\x1b[2J\u202e##[error]"
    recorder.answers = [
        Says(202, {"id": REPORT_ID, "status": "received", "receipt": f"https://hub/{evil}\nid=other"}),
        Says(
            200,
            {"state": "ready", "flags": [evil], "counts": {evil: evil}, "files": [{"name": evil, "notes": [{}]}, 1]},
        ),
    ]
    ended = cli(*UPLOAD, "--wait", "--outputs", outputs)
    assert ended.code == 0
    for sign in ("\x1b", "\u202e", "##["):
        assert sign not in ended.out + ended.err
    assert not any(line.lstrip().startswith("::") for line in ended.out.splitlines())
    assert len(outputs.read_text().splitlines()) == 3
    recorder.answers = [Says(400, {"title": evil, "detail": {"a": evil}, "code": 7})]
    ended = cli(*UPLOAD)
    assert ended.code == 3
    assert "\x1b" not in ended.err
    assert not any(line.lstrip().startswith("::") for line in ended.err.splitlines())
