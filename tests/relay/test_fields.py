"""The callback's body: every field by name, and a corpus of hostile ones."""

import datetime
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.errors import Problem
from apps.relay import fields
from apps.relay.enums import JobStatus
from apps.relay.policy import Counts, Report

# As the official reporter sends it: ids as text, schema_version, the dispatched payload echoed.
OFFICIAL = {
    "event_type": "pull_request",
    "delivery_id": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    "payload": {"action": "opened", "pull_request": {"head": {"sha": "0" * 40}}},
    "workflow": {
        "schema_version": "1",
        "status": "completed",
        "conclusion": "failure",
        "name": "CI",
        "url": "https://github.com/o/r/actions/runs/123",
        "run_id": "123",
        "run_attempt": "2",
        "job_name": "build-cuda",
        "check_run_id": "456",
        "started_at": None,
        "completed_at": "2026-11-30T15:03:00Z",
        "test_results": {"passed": 42, "failed": 3, "skipped": 5, "total": 50},
        "artifact_url": "https://example.org/a.zip",
    },
}
NOON = datetime.datetime(2026, 11, 30, 15, 3, tzinfo=datetime.UTC)


def body(**workflow: Any) -> bytes:
    return json.dumps(OFFICIAL | {"workflow": OFFICIAL["workflow"] | workflow}).encode()  # type: ignore[operator]


def test_the_official_reporters_body_is_read_whole() -> None:
    callback = fields.read(body())
    assert callback == fields.Callback(
        event_type="pull_request",
        delivery_id="72d3162e-cc78-11e3-81ab-4c9367dc0958",
        run_id="123",
        run_attempt=2,
        workflow="CI",
        job_name="build-cuda",
        leg="456",
        check_run_id="456",
        url="https://github.com/o/r/actions/runs/123",
        artifact_url="https://example.org/a.zip",
        head_sha="",
        report=Report(JobStatus.COMPLETED, "failure", Counts(42, 3, 5, 50), None, NOON),
        body_digest=callback.body_digest,
    )


def test_ids_may_come_as_numbers() -> None:
    texts = fields.read(body(run_id="123", run_attempt="2", check_run_id="456", leg=""))
    numbers = fields.read(body(run_id=123, run_attempt=2, check_run_id=456))
    assert (numbers.run_id, numbers.run_attempt, numbers.check_run_id, numbers.leg) == ("123", 2, "456", "456")
    assert (texts.run_id, texts.run_attempt, texts.check_run_id, texts.leg) == ("123", 2, "456", "456")


def test_what_is_left_out_has_its_default() -> None:
    raw = json.dumps({"delivery_id": "d", "workflow": {"status": "in_progress", "name": "CI", "run_id": 7}}).encode()
    callback = fields.read(raw)
    assert callback == fields.Callback(
        "", "d", "7", 1, "CI", "", "", "", "", "", "", Report(JobStatus.IN_PROGRESS), callback.body_digest
    )


@pytest.mark.parametrize(
    ("results", "counts"),
    [
        ({"passed": 1, "failed": 2, "skipped": 3}, Counts(1, 2, 3, 6)),
        ({"passed": "1", "failed": "0"}, Counts(1, 0, None, 1)),
        ({"total": 9}, Counts(None, None, None, 9)),
        ({}, Counts()),
        (None, Counts()),
    ],
)
def test_a_missing_total_is_the_sum_and_nothing_is_not_zero(results: Any, counts: Counts) -> None:
    assert fields.read(body(test_results=results)).report.counts == counts


def test_a_declared_leg_goes_before_the_check_run() -> None:
    assert fields.read(body(leg="cuda-12")).leg == "cuda-12"


@pytest.mark.parametrize("name", ["9: a/b", "🦅" * 300, "<script>alert(1)</script>", "a\nb", "%s %(x)s {}", "'; --"])
def test_any_text_is_a_job_name(name: str) -> None:
    assert fields.read(body(job_name=name)).job_name == name


HOSTILE: list[tuple[str, dict[str, Any], str, str]] = [
    ("status", {"status": "queued"}, "workflow.status", "saw 'queued', send one of in_progress, completed."),
    ("status missing", {"status": None}, "workflow.status", "is missing, send in_progress or completed."),
    ("status empty", {"status": ""}, "workflow.status", "is missing, send in_progress or completed."),
    ("status list", {"status": []}, "workflow.status", "saw a list, send a string."),
    ("end without conclusion", {"conclusion": None}, "workflow.conclusion", ""),
    ("start with conclusion", {"status": "in_progress"}, "workflow.conclusion", ""),
    ("conclusion", {"conclusion": "great"}, "workflow.conclusion", ""),
    ("conclusion number", {"conclusion": 1}, "workflow.conclusion", "saw 1, send a string."),
    ("run_id word", {"run_id": "abc"}, "workflow.run_id", ""),
    ("run_id fraction", {"run_id": 1.5}, "workflow.run_id", "saw a fraction, send a string."),
    ("run_id truth", {"run_id": True}, "workflow.run_id", "saw true, send a string."),
    ("run_id negative", {"run_id": -1}, "workflow.run_id", ""),
    ("run_id other digits", {"run_id": "١٢"}, "workflow.run_id", ""),
    ("run_id long", {"run_id": "1" * 21}, "workflow.run_id", "21 characters, send at most 20."),
    ("run_id huge", {"run_id": 10**30}, "workflow.run_id", ""),
    ("run_id missing", {"run_id": None}, "workflow.run_id", "is missing, send decimal digits."),
    ("run_id object", {"run_id": {}}, "workflow.run_id", "saw an object, send a string."),
    ("attempt huge", {"run_attempt": 10**12}, "workflow.run_attempt", ""),
    ("attempt zero", {"run_attempt": 0}, "workflow.run_attempt", "saw 0, send a whole number from 1 on."),
    ("attempt word", {"run_attempt": "two"}, "workflow.run_attempt", ""),
    ("attempt list", {"run_attempt": [1]}, "workflow.run_attempt", ""),
    ("name missing", {"name": None}, "workflow.name", "is missing, send text."),
    ("name number", {"name": 7}, "workflow.name", "saw 7, send a string."),
    ("job_name 12 KB", {"job_name": "x" * 12_000}, "workflow.job_name", "12000 characters, send at most 300."),
    ("job_name NUL", {"job_name": "a\x00b"}, "workflow.job_name", "holds U+0000, which is not text. Leave it out."),
    ("job_name surrogate", {"job_name": "a\ud800"}, "workflow.job_name", ""),
    ("workflow surrogate", {"name": "\udfff"}, "workflow.name", "holds U+DFFF, which is not text. Leave it out."),
    ("url script", {"url": "javascript:alert(1)"}, "workflow.url", ""),
    ("url data", {"url": "data:text/html,x"}, "workflow.url", ""),
    ("url broken", {"url": "https://[::1"}, "workflow.url", ""),
    ("url without host", {"url": "https://"}, "workflow.url", ""),
    ("url with space", {"url": "https://a.example/ b"}, "workflow.url", ""),
    ("artifact script", {"artifact_url": "javascript:alert(1)"}, "workflow.artifact_url", ""),
    ("time word", {"completed_at": "yesterday"}, "workflow.completed_at", ""),
    ("time without zone", {"completed_at": "2026-11-30T15:03:00"}, "workflow.completed_at", ""),
    ("time year 0", {"completed_at": "0000-01-01T00:00:00Z"}, "workflow.completed_at", ""),
    ("time before year 1", {"completed_at": "0001-01-01T00:00:00+14:00"}, "workflow.completed_at", ""),
    ("time number", {"completed_at": 1790000000}, "workflow.completed_at", ""),
    ("started list", {"started_at": []}, "workflow.started_at", ""),
    ("results list", {"test_results": []}, "workflow.test_results", "saw a list, send an object."),
    ("count negative", {"test_results": {"failed": -1}}, "workflow.test_results.failed", ""),
    ("count fraction", {"test_results": {"failed": 0.5}}, "workflow.test_results.failed", ""),
    ("count huge", {"test_results": {"passed": 2**31}}, "workflow.test_results.passed", ""),
    ("count truth", {"test_results": {"passed": True}}, "workflow.test_results.passed", ""),
    (
        "counts overflow together",
        {"test_results": {"passed": 2**31 - 1, "failed": 1}},
        "workflow.test_results.total",
        "",
    ),
    ("check_run_id list", {"check_run_id": [1]}, "workflow.check_run_id", "saw a list, send a string."),
    ("leg long", {"leg": "x" * 201}, "workflow.leg", "201 characters, send at most 200."),
]


@pytest.mark.parametrize(("change", "field", "words"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_a_hostile_field_is_refused_by_name(change: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(Problem) as caught:
        fields.read(body(**change))
    assert (caught.value.code, caught.value.field) == ("malformed", field)
    assert caught.value.detail.startswith(f"{field}: ")
    if words:
        assert caught.value.detail == f"{field}: {words}"


TOP: list[tuple[str, bytes, str | None]] = [
    ("empty", b"", None),
    ("not JSON", b"{", None),
    ("not UTF-8", b'{"delivery_id": "\xff"}', None),
    ("list", b"[]", None),
    ("null", b"null", None),
    ("NaN", b'{"delivery_id": NaN}', None),
    ("Infinity", b'{"delivery_id": -Infinity}', None),
    ("100,000 lists deep", b"[" * 100_000, None),
    ("100,000 objects deep", b'{"a":' * 100_000, None),
    ("a number of 5,000 digits", b'{"delivery_id": ' + b"1" * 5_000 + b"}", None),
    ("no delivery_id", json.dumps(OFFICIAL | {"delivery_id": None}).encode(), "delivery_id"),
    ("delivery_id list", json.dumps(OFFICIAL | {"delivery_id": []}).encode(), "delivery_id"),
    ("delivery_id long", json.dumps(OFFICIAL | {"delivery_id": "x" * 201}).encode(), "delivery_id"),
    ("workflow list", json.dumps(OFFICIAL | {"workflow": []}).encode(), "workflow"),
    ("workflow text", json.dumps(OFFICIAL | {"workflow": "CI"}).encode(), "workflow"),
    ("no workflow", json.dumps(OFFICIAL | {"workflow": None}).encode(), "workflow.status"),
    ("event unknown", json.dumps(OFFICIAL | {"event_type": "issues"}).encode(), "event_type"),
    ("event list", json.dumps(OFFICIAL | {"event_type": []}).encode(), "event_type"),
]


@pytest.mark.parametrize(("raw", "field"), [row[1:] for row in TOP], ids=[row[0] for row in TOP])
def test_a_body_that_is_no_callback_is_malformed(raw: bytes, field: str | None) -> None:
    with pytest.raises(Problem) as caught:
        fields.read(raw)
    assert (caught.value.code, caught.value.field) == ("malformed", field)


def test_a_body_over_the_limit_is_too_large() -> None:
    with pytest.raises(Problem) as caught:
        fields.read(b" " * (fields.BODY_MAX_BYTES + 1))
    assert caught.value.code == "too_large"


@pytest.mark.parametrize("payload", [None, [], "text", 7, {"head_sha": []}, {"head_sha": "no"}, {"a": [{}] * 9}])
def test_the_echoed_payload_is_never_a_reason_to_refuse(payload: Any) -> None:
    assert fields.read(json.dumps(OFFICIAL | {"payload": payload}).encode()).head_sha == ""


@pytest.mark.parametrize("event", ["nightly", "periodic"])
def test_a_nightly_callback_is_a_completed_one_with_its_commit(event: str) -> None:
    nightly = OFFICIAL | {"event_type": event, "payload": {"head_sha": "A" * 40}}
    assert fields.read(json.dumps(nightly).encode()).head_sha == "a" * 40
    started = nightly | {"workflow": {"status": "in_progress", "name": "CI", "run_id": "1"}}
    with pytest.raises(Problem) as caught:
        fields.read(json.dumps(started).encode())
    assert caught.value.field == "workflow.status"


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=10,
)
_paths = [row.path.split(".") for row in fields.FIELDS]


def read_or_refuse(raw: bytes) -> str:
    try:
        fields.read(raw)
    except Problem as problem:
        return problem.code
    return "read"


@given(st.sampled_from(_paths), _json)
def test_any_value_in_any_field_is_read_or_refused(path: list[str], value: Any) -> None:
    document = json.loads(json.dumps(OFFICIAL))
    node = document
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = value
    assert read_or_refuse(json.dumps(document).encode()) in ("read", "malformed")


@given(st.binary(max_size=300) | _json.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    assert read_or_refuse(raw) in ("read", "malformed")
