"""What an upload says about itself: one table of fields, read as a callback's are. docs/reports.md prints it."""

from dataclasses import dataclass
from typing import Any

from apps.core.errors import Problem
from apps.relay.fields import (
    Field,
    json_object,
    read_attempt,
    read_choice,
    read_id,
    read_number_id,
    read_text,
    refuse,
    sha,
)
from apps.relay.policy import DISPATCHED_EVENTS, UNDISPATCHED_EVENTS
from apps.results.quotas import META_MAX_BYTES, SHARDS_MAX

DEFAULT_VARIANT = "default"


@dataclass(frozen=True)
class Meta:
    """An upload's `meta`, read and bounded. '' means not sent.

    `report_key` groups shards: declared, else what tells this job apart from all others of its repository.
    """

    delivery_id: str
    event_type: str
    head_sha: str
    run_id: str
    run_attempt: int
    workflow: str
    job_name: str
    leg: str
    check_run_id: str
    report_key: str
    shard: int
    shards: int
    variant: str
    torch_version: str
    hardware: str
    platform: str


def _commit(path: str, value: Any, cap: int) -> str:
    found = sha(read_text(path, value, cap))
    if not found:
        raise refuse(path, value, "a commit: 40 hexadecimal digits")
    return found


def _word(path: str, value: Any, cap: int) -> str:
    """Text that names something: on one line, without white space around it."""
    text: str = read_id(path, value, cap)
    if not text.isprintable():
        raise refuse(path, text, "text on one line")
    return text


FIELDS: tuple[Field, ...] = (
    Field("delivery_id", read_id, 200, "the dispatch's delivery_id; leave it out for a nightly"),
    Field("event_type", read_choice(*DISPATCHED_EVENTS, *UNDISPATCHED_EVENTS), 40, "the event's name"),
    Field("head_sha", _commit, 40, "the upstream commit under test; read where no delivery names it"),
    Field("run_id", read_number_id, 20, "the CI run's number", is_required=True),
    Field("run_attempt", read_attempt, 1_000_000, "a number from 1 on", absent=1),
    Field("workflow", _word, 300, "the workflow's name, as its callbacks say it"),
    Field("job_name", _word, 300, "the job's name, as its callbacks say it", is_required=True),
    Field("leg", _word, 200, "the matrix leg, where the callbacks declare one"),
    Field("check_run_id", read_id, 100, "the job's check run"),
    Field("report_key", _word, 200, "text that the shards of one report share, another for every run"),
    Field("shard", read_attempt, SHARDS_MAX, f"which shard it is, from 1 to {SHARDS_MAX}", absent=1),
    Field("shards", read_attempt, SHARDS_MAX, f"how many there are, from 1 to {SHARDS_MAX}", absent=1),
    Field("variant", _word, 100, "default, inductor, slow, a tier …", absent=DEFAULT_VARIANT),
    Field("torch_version", _word, 100, "text"),
    Field("hardware", _word, 200, "text"),
    Field("platform", _word, 80, "upstream's own jobs: the in-tree platform's slug, where a workflow tests several"),
)


def read(raw: bytes) -> Meta:
    """Read an upload's meta. Raises Problem `malformed` that names the field, or `too_large`."""
    if len(raw) > META_MAX_BYTES:
        raise Problem("too_large", f"meta: has {len(raw)} bytes, at most {META_MAX_BYTES} are read.", "meta")
    values = {row.path: row.read(_object(raw)) for row in FIELDS}
    if values["shard"] > values["shards"]:
        raise refuse("shard", values["shard"], f"a number from 1 to shards, which is {values['shards']}")
    if not values["report_key"]:
        leg = values["leg"] or values["check_run_id"]
        parts = (values["workflow"], values["job_name"], leg)
        values["report_key"] = " / ".join((f"run {values['run_id']}.{values['run_attempt']}", *filter(None, parts)))
    return Meta(**values)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        return json_object(raw)
    except Problem as problem:
        raise Problem(problem.code, problem.detail.replace("The body", "meta"), "meta") from None
