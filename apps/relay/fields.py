"""The callback's body: one table of fields, and the reader that applies it.

Source: docs/protocol.md, "Callback". Every id may come as a string or a number. A field that does not fit is refused
by name, with what was seen and what to send; nothing a client sends gets past this to fail in the database.
"""

import datetime
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from apps.core.errors import Problem
from apps.core.text import UNSTORABLE, storable
from apps.relay.enums import JobStatus
from apps.relay.policy import BUCKETS, DISPATCHED_EVENTS, UNDISPATCHED_EVENTS, Counts, Report

BODY_MAX_BYTES = 1_048_576
TIME_MAX = 40
_INT32 = 2_147_483_647
_DECIMAL = re.compile(r"[0-9]{1,20}", re.ASCII)
_SHA = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Callback:
    """A callback's body, read and bounded. Ids are text; '' means not sent."""

    event_type: str
    delivery_id: str
    run_id: str
    run_attempt: int
    workflow: str
    job_name: str
    leg: str
    check_run_id: str
    url: str
    artifact_url: str
    head_sha: str
    report: Report
    body_digest: str
    dispatch_token: str = ""
    is_leg_declared: bool = False
    # Of a forwarded callback only: nothing of the hub's own says which pull request it is about.
    pr_number: int | None = None


def read(raw: bytes) -> Callback:
    """Read a callback's body. Raises Problem `malformed` that names the field, or `too_large`."""
    if len(raw) > BODY_MAX_BYTES:
        raise Problem("too_large", f"The body has {len(raw)} bytes, at most {BODY_MAX_BYTES} are read.")
    return read_object(json_object(raw), body_digest=hashlib.sha256(raw).hexdigest())


def read_object(body: dict[str, Any], *, body_digest: str) -> Callback:
    """Read a callback's body that is parsed already. Raises Problem `malformed` that names the field."""
    values = {row.path: row.read(body) for row in FIELDS}
    status = JobStatus(values["workflow.status"])
    conclusion = values["workflow.conclusion"]
    if status is JobStatus.COMPLETED and not conclusion:
        raise _refuse("workflow.conclusion", "null", f"one of {_listed(BUCKETS)} when status is completed")
    if status is JobStatus.IN_PROGRESS and conclusion:
        raise _refuse("workflow.conclusion", conclusion, "null while status is in_progress")
    if values["event_type"] in UNDISPATCHED_EVENTS and status is JobStatus.IN_PROGRESS:
        raise _refuse("workflow.status", status.value, f"completed: {values['event_type']} sends one final callback")
    counts = _counts(values)
    return Callback(
        event_type=values["event_type"],
        delivery_id=values["delivery_id"],
        run_id=values["workflow.run_id"],
        run_attempt=values["workflow.run_attempt"],
        workflow=values["workflow.name"],
        job_name=values["workflow.job_name"],
        leg=values["workflow.leg"] or values["workflow.check_run_id"],
        check_run_id=values["workflow.check_run_id"],
        url=values["workflow.url"],
        artifact_url=values["workflow.artifact_url"],
        head_sha=_commit(values),
        dispatch_token=values["dispatch_token"],
        report=Report(status, conclusion, counts, values["workflow.started_at"], values["workflow.completed_at"]),
        body_digest=body_digest,
        is_leg_declared=bool(values["workflow.leg"]),
    )


def _commit(values: dict[str, Any]) -> str:
    """The commit that a nightly or periodic run is about: its payload's, else its delivery id where that is one."""
    if values["payload.head_sha"] or values["event_type"] not in UNDISPATCHED_EVENTS:
        return str(values["payload.head_sha"])
    return str(_sha("delivery_id", values["delivery_id"], 40))


def _counts(values: dict[str, Any]) -> Counts:
    passed, failed, skipped, total = (
        values[f"workflow.test_results.{name}"] for name in ("passed", "failed", "skipped", "total")
    )
    parts = [part for part in (passed, failed, skipped) if part is not None]
    if total is None and parts:
        total = sum(parts)
        if total > _INT32:
            raise _refuse("workflow.test_results.total", total, f"counts whose sum is at most {_INT32}")
    return Counts(passed, failed, skipped, total)


def json_object(raw: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises Problem `malformed`."""
    try:
        body = json.loads(raw.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise Problem("malformed", f"The body is not UTF-8 at byte {error.start}.") from None
    except RecursionError:
        raise Problem("malformed", "The body is nested too deeply.") from None
    except ValueError as error:
        raise Problem("malformed", f"The body is not JSON: {error}.") from None
    if not isinstance(body, dict):
        raise Problem("malformed", f"The body is {_kind(body)}, send a JSON object.")
    return body


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


# --- readers of one value ---------------------------------------------------------------------------------------
# Each takes (path, value, cap) with a value that is not None, and returns the stored form or raises Problem.

Reader = Callable[[str, Any, int], Any]


def _text(path: str, value: Any, cap: int) -> str:
    if not isinstance(value, str):
        raise _refuse(path, value, "a string")
    if len(value) > cap:
        raise Problem("malformed", f"{path}: {len(value)} characters, send at most {cap}.", path)
    if found := UNSTORABLE.search(value):
        raise Problem("malformed", f"{path}: holds U+{ord(found[0]):04X}, which is not text. Leave it out.", path)
    return value


def _id(path: str, value: Any, cap: int) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = _spell(path, value)
    return _text(path, value, cap).strip()


def _number_id(path: str, value: Any, cap: int) -> str:
    text = _id(path, value, cap)
    if not _DECIMAL.fullmatch(text):
        raise _refuse(path, text, "the run's number, decimal digits only")
    return text.lstrip("0") or "0"


def _integer(path: str, value: Any, cap: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        value = _spell(path, value)
    text = value.strip() if isinstance(value, str) else ""
    if not _DECIMAL.fullmatch(text) or int(text) > cap:
        raise _refuse(path, value, f"a whole number from 0 to {cap}")
    return int(text)


def _attempt(path: str, value: Any, cap: int) -> int:
    number = _integer(path, value, cap)
    if number < 1:
        raise _refuse(path, value, "a whole number from 1 on")
    return number


def _time(path: str, value: Any, cap: int) -> datetime.datetime | None:
    text = _text(path, value, cap).strip()
    if not text:
        return None
    try:
        moment = datetime.datetime.fromisoformat(text)
        return moment.astimezone(datetime.UTC) if moment.tzinfo else _no_zone(path, text)
    except (ValueError, OverflowError):
        raise _refuse(path, text, "a time like 2026-01-31T23:59:59Z") from None


def _no_zone(path: str, text: str) -> datetime.datetime:
    raise _refuse(path, text, "a time with its zone, like 2026-01-31T23:59:59Z")


def _url(path: str, value: Any, cap: int) -> str:
    text = _text(path, value, cap).strip()
    if text:
        try:
            parts = urlsplit(text)
            is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
        except ValueError:
            is_web = False
        if not is_web or not text.isprintable() or " " in text:
            raise _refuse(path, text, "an https address")
    return text


def _choice(*words: str) -> Reader:
    def reader(path: str, value: Any, cap: int) -> str:
        text = _text(path, value, cap).strip()
        if text and text not in words:
            raise _refuse(path, text, f"one of {_listed(words)}")
        return text

    return reader


def _sha(path: str, value: Any, cap: int) -> str:
    # The echoed payload is the upstream's business: what is not a commit is simply not one.
    return sha(value)


def sha(value: Any) -> str:
    """A commit's 40 hexadecimal digits; '' for anything else."""
    text = value.lower() if isinstance(value, str) else ""
    return text if _SHA.fullmatch(text) else ""


def time(path: str, value: Any) -> datetime.datetime | None:
    """A time with its zone, in UTC; None for an empty one. Raises Problem `malformed` that names `path`."""
    return _time(path, value, TIME_MAX)


@dataclass(frozen=True)
class Field:
    """One row: `path` into the body; `cap` in characters (text) or as the largest number; `absent` when not sent."""

    path: str
    reader: Reader
    cap: int
    kind: str
    is_required: bool = False
    absent: Any = ""

    def read(self, body: dict[str, Any]) -> Any:
        """This field's value. Raises Problem when it is required and missing, or does not fit."""
        value: Any = body
        *parents, name = self.path.split(".")
        seen = ""
        for parent in parents:
            seen = f"{seen}.{parent}" if seen else parent
            value = value.get(parent)
            if value is None:
                break
            if not isinstance(value, dict):
                if seen == "payload":
                    return self.absent
                raise _refuse(seen, value, "an object")
        value = value.get(name) if isinstance(value, dict) else None
        if value is not None and value != "":
            value = self.reader(self.path, value, self.cap)
        if value is None or value == "":
            if self.is_required:
                raise Problem("malformed", f"{self.path}: is missing, send {self.kind}.", self.path)
            return self.absent
        return value


FIELDS: tuple[Field, ...] = (
    Field("event_type", _choice(*DISPATCHED_EVENTS, *UNDISPATCHED_EVENTS), 40, "the dispatched event's name"),
    Field("delivery_id", _id, 200, "text", is_required=True),
    Field("dispatch_token", _text, 1_000, "the dispatch's token, as its client_payload carried it"),
    Field("payload.head_sha", _sha, 40, "a commit, read for nightly and periodic only"),
    Field("workflow.status", _choice(*JobStatus.values), 40, "in_progress or completed", is_required=True),
    Field("workflow.conclusion", _choice(*BUCKETS), 40, "GitHub's conclusion"),
    Field("workflow.name", _text, 300, "text", is_required=True),
    Field("workflow.url", _url, 2000, "a web address"),
    Field("workflow.run_id", _number_id, 20, "decimal digits", is_required=True),
    Field("workflow.run_attempt", _attempt, 1_000_000, "a number from 1 on", absent=1),
    Field("workflow.job_name", _text, 300, "text"),
    Field("workflow.leg", _id, 200, "text that names a matrix leg"),
    Field("workflow.check_run_id", _id, 100, "text"),
    Field("workflow.started_at", _time, 40, "a time with its zone", absent=None),
    Field("workflow.completed_at", _time, 40, "a time with its zone", absent=None),
    Field("workflow.test_results.passed", _integer, _INT32, "a count", absent=None),
    Field("workflow.test_results.failed", _integer, _INT32, "a count", absent=None),
    Field("workflow.test_results.skipped", _integer, _INT32, "a count", absent=None),
    Field("workflow.test_results.total", _integer, _INT32, "a count, else their sum", absent=None),
    Field("workflow.artifact_url", _url, 2000, "a web address"),
)


def _refuse(path: str, seen: Any, instead: str) -> Problem:
    return Problem("malformed", f"{path}: saw {_shown(seen)}, send {instead}.", path)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        clean = storable(value)
        return repr(clean if len(clean) <= 60 else clean[:60] + "…")
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int):
        return str(value) if abs(value) < 10**20 else "a number of over 20 digits"
    return _kind(value)


def _spell(path: str, value: int) -> str:
    if abs(value) >= 10**20:
        raise _refuse(path, value, "a number of at most 20 digits")
    return str(value)


def _kind(value: Any) -> str:
    return {dict: "an object", list: "a list", float: "a fraction", str: "text", int: "a number"}.get(
        type(value), "null" if value is None else "a truth value"
    )


def _listed(words: Any) -> str:
    return ", ".join(words)


# For other tables of fields, whose values are read like these.
read_text, read_id, read_number_id, read_attempt, read_choice = _text, _id, _number_id, _attempt, _choice
refuse = _refuse
