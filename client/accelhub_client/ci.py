"""What an upload says about itself: one table. What is not said by an option comes from the CI's environment."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Optional

from accelhub_client.exits import Stop

Environment = Mapping[str, str]
Reader = Callable[[Environment], Optional[str]]
_PAYLOAD_MAX = 25 << 20  # bytes; GitHub's own bound of an event is far below


def _nobody(environment: Environment) -> Optional[str]:
    return None


def _variable(*names: str) -> Reader:
    """The first of these variables that is set."""
    return lambda environment: next((environment[name] for name in names if environment.get(name)), None)


def _dispatched(member: str) -> Reader:
    """A member of the dispatched client_payload; nothing in a run that no repository_dispatch started."""

    def read(environment: Environment) -> Optional[str]:
        said = client_payload(environment).get(member)
        return str(said) if isinstance(said, (str, int)) and said else None

    return read


def client_payload(environment: Environment) -> dict[str, Any]:
    """What the hub dispatched to this GitHub workflow; {} where it did not. Raises Stop `usage` for a damaged file."""
    path = environment.get("GITHUB_EVENT_PATH", "")
    if environment.get("GITHUB_EVENT_NAME") != "repository_dispatch" or not path:
        return {}
    try:
        with open(path, "rb") as file:
            event = json.loads(file.read(_PAYLOAD_MAX))
    except (OSError, ValueError, RecursionError) as error:
        raise Stop("usage", f"GITHUB_EVENT_PATH: {path} cannot be read: {error}.") from None
    payload = event.get("client_payload") if isinstance(event, dict) else None
    return payload if isinstance(payload, dict) else {}


def _attempt(environment: Environment) -> Optional[str]:
    count = environment.get("BUILDKITE_RETRY_COUNT") or "0"
    return str(int(count) + 1) if count.isdecimal() else None


@dataclass(frozen=True)
class Field:
    """One field of `meta`: its option, where it comes from on GitHub Actions and Buildkite, and what it is."""

    name: str
    option: str
    says: str
    github: str = ""
    buildkite: str = ""
    on_github: Reader = _nobody
    on_buildkite: Reader = _nobody


FIELDS = (
    Field(
        "run_id",
        "--run-id",
        "the CI run's number, as its token says it",
        "GITHUB_RUN_ID",
        "BUILDKITE_BUILD_NUMBER",
        _variable("GITHUB_RUN_ID"),
        _variable("BUILDKITE_BUILD_NUMBER"),
    ),
    Field(
        "run_attempt",
        "--run-attempt",
        "from 1 on",
        "GITHUB_RUN_ATTEMPT",
        "BUILDKITE_RETRY_COUNT plus one",
        _variable("GITHUB_RUN_ATTEMPT"),
        _attempt,
    ),
    Field(
        "workflow",
        "--workflow",
        "as the job's callbacks say it",
        "GITHUB_WORKFLOW",
        "BUILDKITE_PIPELINE_SLUG",
        _variable("GITHUB_WORKFLOW"),
        _variable("BUILDKITE_PIPELINE_SLUG"),
    ),
    Field(
        "job_name",
        "--job-name",
        "as the job's callbacks say it",
        "GITHUB_JOB",
        "BUILDKITE_STEP_KEY, else BUILDKITE_LABEL",
        _variable("GITHUB_JOB"),
        _variable("BUILDKITE_STEP_KEY", "BUILDKITE_LABEL"),
    ),
    Field("leg", "--leg", "the matrix leg, where the callbacks declare one"),
    Field("check_run_id", "--check-run-id", "the job's check run, where the callbacks say it"),
    Field(
        "delivery_id",
        "--delivery",
        "the dispatch's delivery_id",
        "client_payload.delivery_id",
        on_github=_dispatched("delivery_id"),
    ),
    Field(
        "event_type",
        "--event",
        "pull_request, push, nightly or periodic",
        "client_payload.event_type",
        on_github=_dispatched("event_type"),
    ),
    Field("head_sha", "--head-sha", "the upstream commit under test, where no delivery names it"),
    Field("report_key", "--report-key", "what the shards of one report share, another for every run"),
    Field("variant", "--variant", "default, inductor, slow, a tier …: each has a history of its own"),
    Field("torch_version", "--torch-version", "the version of PyTorch under test"),
    Field("hardware", "--hardware", "what the tests ran on"),
    Field("platform", "--platform", "upstream's own jobs: the platform's slug, where a workflow tests several"),
)


def is_github(environment: Environment) -> bool:
    return environment.get("GITHUB_ACTIONS") == "true"


def is_buildkite(environment: Environment) -> bool:
    return environment.get("BUILDKITE") == "true"


def meta(said: Mapping[str, Optional[str]], shard: Optional[str], environment: Environment) -> dict[str, Any]:
    """An upload's `meta`. `said` are the options by field, `shard` is `i/n`. Raises Stop `usage`: one is missing."""
    found: dict[str, Any] = {}
    for field in FIELDS:
        value = said.get(field.name)
        if value is None:
            value = _surrounding(field, environment)
        if value:
            found[field.name] = value
    for needed in ("run_id", "job_name"):
        if needed not in found:
            option = next(field.option for field in FIELDS if field.name == needed)
            raise Stop("usage", f"{needed}: neither GitHub Actions nor Buildkite says it here. Give {option}.")
    _number(found, shard or _parallel(environment))
    return found


def _surrounding(field: Field, environment: Environment) -> Optional[str]:
    if is_github(environment):
        return field.on_github(environment)
    return field.on_buildkite(environment) if is_buildkite(environment) else None


def _parallel(environment: Environment) -> Optional[str]:
    """Buildkite's `parallelism`: jobs of one step, counted from 0."""
    job, count = environment.get("BUILDKITE_PARALLEL_JOB", ""), environment.get("BUILDKITE_PARALLEL_JOB_COUNT", "")
    is_known = is_buildkite(environment) and job.isdecimal() and count.isdecimal()
    return f"{int(job) + 1}/{count}" if is_known else None


def _number(found: dict[str, Any], shard: Optional[str]) -> None:
    """Say which shard it is; and, where nobody said it, what the shards have in common: run and job."""
    if shard is None:
        return
    number, _, count = shard.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise Stop("usage", f"--shard: saw {shard!r}, give i/n, such as 2/5.")
    found["shard"], found["shards"] = int(number), int(count)
    if "report_key" not in found:
        run = f"run {found['run_id']}.{found.get('run_attempt', 1)}"
        found["report_key"] = " / ".join((run, *(found[name] for name in ("workflow", "job_name") if name in found)))
