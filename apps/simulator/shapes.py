"""GitHub's JSON, as far as a client of the stand-in reads it, and the claims of a GitHub Actions OIDC token."""

import datetime
import hashlib
import time
import uuid
from typing import Any

from apps.simulator.access import GRANTED
from apps.simulator.directory import Repository
from apps.simulator.people import Person
from apps.simulator.runs import RunJob

APP_SLUG = "accelhub-demo"
APP_OWNER_ID = 9_600_000_001
APP_BOT_ID = 9_600_000_002
DEFAULT_BRANCH = "main"
OIDC_SECONDS = 300
FOUNDED = "2026-01-05T09:00:00Z"


def iso(epoch: float) -> str:
    """Epoch seconds as GitHub writes times: UTC, whole seconds, Z."""
    return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).isoformat().replace("+00:00", "Z")


def app(app_id: str, url: str) -> dict[str, Any]:
    return {
        "id": int(app_id) if app_id.isdigit() else app_id,
        "slug": APP_SLUG,
        "name": "AccelHub demo",
        "owner": owner("accelhub-demo", APP_OWNER_ID, url),
        "description": "A stand-in: no such App exists on GitHub.",
        "external_url": url,
        "html_url": f"{url}/apps/{APP_SLUG}",
        "created_at": FOUNDED,
        "updated_at": FOUNDED,
        "permissions": GRANTED,
        "events": ["check_run", "check_suite", "pull_request", "push"],
    }


def owner(login: str, owner_id: int, url: str) -> dict[str, Any]:
    return {
        "login": login,
        "id": owner_id,
        "type": "Organization",
        "url": f"{url}/users/{login}",
        "html_url": f"https://github.com/{login}",
        "site_admin": False,
    }


def user(person: Person, url: str) -> dict[str, Any]:
    """`GET /users/{login}`; of oneself `GET /user`."""
    return {
        "login": person.login,
        "id": person.id,
        "type": "User",
        "name": person.name,
        "email": None,
        "url": f"{url}/users/{person.login}",
        "html_url": f"https://github.com/{person.login}",
        "site_admin": False,
        "created_at": FOUNDED,
        "updated_at": FOUNDED,
    }


def permissions(may_push: bool) -> dict[str, bool]:
    """What a user's token may do to a repository, as `GET /repos/{owner}/{repo}` says it."""
    return {"admin": False, "maintain": False, "push": may_push, "triage": may_push, "pull": True}


def installation(repository: Repository, app_id: str, url: str) -> dict[str, Any]:
    number = repository.installation_id
    return {
        "id": number,
        "account": owner(repository.owner, repository.owner_id, url),
        "repository_selection": "selected",
        "access_tokens_url": f"{url}/app/installations/{number}/access_tokens",
        "repositories_url": f"{url}/installation/repositories",
        "html_url": f"https://github.com/organizations/{repository.owner}/settings/installations/{number}",
        "app_id": int(app_id) if app_id.isdigit() else app_id,
        "app_slug": APP_SLUG,
        "target_id": repository.owner_id,
        "target_type": "Organization",
        "permissions": GRANTED,
        "events": ["check_run", "check_suite", "pull_request", "push"],
        "created_at": FOUNDED,
        "updated_at": FOUNDED,
        "suspended_at": None,
    }


def repository_json(repository: Repository, url: str) -> dict[str, Any]:
    """`GET /repos/{owner}/{repo}`."""
    return {
        "id": repository.id,
        "name": repository.name,
        "full_name": repository.full_name,
        "private": repository.private,
        "visibility": "private" if repository.private else "public",
        "owner": owner(repository.owner, repository.owner_id, url),
        "html_url": f"https://github.com/{repository.full_name}",
        "description": None,
        "fork": False,
        "url": f"{url}/repos/{repository.full_name}",
        "default_branch": DEFAULT_BRANCH,
        "archived": False,
        "disabled": False,
        "created_at": FOUNDED,
        "updated_at": FOUNDED,
        "pushed_at": FOUNDED,
    }


def run_job(job: RunJob, repository: Repository, run_id: str, attempt: int, url: str) -> dict[str, Any]:
    """A job in `GET /repos/{owner}/{repo}/actions/runs/{id}/attempts/{n}/jobs`."""
    api = f"{url}/repos/{repository.full_name}"
    return {
        "id": int(job.check_run_id) if job.check_run_id.isdigit() else job.check_run_id,
        "run_id": int(run_id),
        "run_attempt": attempt,
        "run_url": f"{api}/actions/runs/{run_id}",
        "check_run_url": f"{api}/check-runs/{job.check_run_id}",
        "html_url": f"https://github.com/{repository.full_name}/actions/runs/{run_id}/job/{job.check_run_id}",
        "name": job.name,
        "status": job.status,
        "conclusion": job.conclusion or None,
    }


def oidc_claims(
    repository: Repository, *, issuer: str, audience: str, run_id: str, run_attempt: int, workflow: str
) -> dict[str, Any]:
    """The claims of a job that a repository_dispatch started: every id a string, five minutes to live."""
    now = int(time.time())
    name, ref = repository.full_name, f"refs/heads/{DEFAULT_BRANCH}"
    # A dispatched run checks out the default branch: one commit per repository, the same in every token.
    sha = hashlib.sha256(f"head of {repository.id}".encode()).hexdigest()[:40]
    workflow_ref = f"{name}/.github/workflows/{workflow.lower().replace(' ', '-')}.yml@{ref}"
    return {
        "jti": str(uuid.uuid4()),
        "iss": issuer,
        "aud": audience or f"https://github.com/{repository.owner}",
        "sub": f"repo:{name}:ref:{ref}",
        "iat": now,
        "nbf": now - 300,
        "exp": now + OIDC_SECONDS,
        "repository": name,
        "repository_id": str(repository.id),
        "repository_owner": repository.owner,
        "repository_owner_id": str(repository.owner_id),
        "repository_visibility": "private" if repository.private else "public",
        "run_id": run_id,
        "run_number": str(int(run_id) % 100_000) if run_id.isdigit() else "1",
        "run_attempt": str(run_attempt),
        "sha": sha,
        "ref": ref,
        "ref_type": "branch",
        "ref_protected": "true",
        "head_ref": "",
        "base_ref": "",
        "workflow": workflow,
        "workflow_ref": workflow_ref,
        "workflow_sha": sha,
        "job_workflow_ref": workflow_ref,
        "job_workflow_sha": sha,
        "event_name": "repository_dispatch",
        "actor": f"{APP_SLUG}[bot]",
        "actor_id": str(APP_BOT_ID),
        "runner_environment": "self-hosted",
    }
