"""What a stand-in answers: the routes of GitHub's API that the hub and its downstreams use, and the issuer's."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from apps.simulator import content_routes, shapes
from apps.simulator.access import GRANTED, Access, InstallationToken, Run
from apps.simulator.checks import Checks
from apps.simulator.commits import Commits
from apps.simulator.content_routes import Asked
from apps.simulator.contents import Contents
from apps.simulator.directory import Directory, Repository
from apps.simulator.dispatches import Dispatches
from apps.simulator.hooks import Hooks
from apps.simulator.issuer import Issuer
from apps.simulator.oauth import OAuth
from apps.simulator.runs import RunJob, Runs
from apps.simulator.wire import Answer, Refusal, Request

MOST_CLIENT_PAYLOAD_KEYS = 10
LARGEST_CLIENT_PAYLOAD = 65_535  # bytes
LONGEST_EVENT_TYPE = 100
DOCS = "https://docs.github.com/rest"

_NAMED = r"/repos/(?P<full_name>[^/]+/[^/]+)"
_REPOSITORY = r"(?:/repos/(?P<full_name>[^/]+/[^/]+)|/repositories/(?P<number>\d{1,18}))"


class Answers:
    """One method per route. Every one returns an Answer or raises Refusal."""

    def __init__(
        self,
        *,
        access: Access,
        directory: Directory,
        issuer: Issuer,
        dispatches: Dispatches,
        oauth: OAuth,
        runs: Runs,
        contents: Contents,
        checks: Checks,
        commits: Commits,
        hooks: Hooks,
        url: Callable[[], str],
    ) -> None:
        """`url` gives the stand-in's base URL, which is known only once it listens."""
        self._access = access
        self._directory = directory
        self._issuer = issuer
        self._dispatches = dispatches
        self._oauth = oauth
        self._runs = runs
        self._contents = contents
        self._checks = checks
        self._commits = commits
        self._hooks = hooks
        self._url = url

    def route(self, request: Request) -> Answer:
        """Answer a request. Raises Refusal 404 where no route fits."""
        for method, pattern, view in _ROUTES:
            if method == request.method and (match := pattern.fullmatch(request.path)):
                return view(self, request, **match.groupdict())
        return self._of_contents(request)

    def _of_contents(self, request: Request) -> Answer:
        """What a repository holds (content_routes.py). Raises Refusal 404 where no route fits."""
        match = re.match(_REPOSITORY + r"(?P<rest>/.+)", request.path)
        if match is None:
            raise Refusal(404, "Not Found")
        repository = self._repository(request, match["full_name"], match["number"])
        if isinstance(repository, Answer):
            return repository
        held = self._contents.of(repository.id)
        found = content_routes.answer(Asked(request, repository, held, self._access, self._url()), match["rest"])
        if found is None:
            raise Refusal(404, "Not Found")
        return found

    def _get_app(self, request: Request) -> Answer:
        self._access.require_app(request.bearer())
        return Answer(200, shapes.app(self._access.app_id, self._url()))

    def _list_hook_deliveries(self, request: Request) -> Answer:
        self._access.require_app(request.bearer())
        return self._hooks.listing(request, self._url())

    def _redeliver(self, request: Request, number: str) -> Answer:
        self._access.require_app(request.bearer())
        return self._hooks.redeliver(int(number))

    def _get_installation(self, request: Request, full_name: str | None, number: str | None) -> Answer:
        self._access.require_app(request.bearer())
        repository = self._repository(request, full_name, number)
        if isinstance(repository, Answer):
            return repository
        if not repository.installed:
            raise Refusal(404, "Not Found")
        return Answer(200, shapes.installation(repository, self._access.app_id, self._url()))

    def _create_token(self, request: Request, installation: str) -> Answer:
        self._access.require_app(request.bearer())
        reach = self._directory.installed_at(int(installation))
        if not reach:
            raise Refusal(404, "Not Found")
        wish = _object(request.json() or {})
        permissions = _object(wish.get("permissions") or GRANTED)
        ranks = {"read": 1, "write": 2}
        if any(ranks.get(word, 9) > ranks.get(GRANTED.get(name, ""), 0) for name, word in permissions.items()):
            raise Refusal(422, "The permissions requested are not granted to this installation.")
        subset = None
        if wish.get("repositories") or wish.get("repository_ids"):
            names, ids = list(wish.get("repositories") or []), list(wish.get("repository_ids") or [])
            subset = tuple(r.id for r in reach if r.name in names or r.id in ids)
            if len(subset) != len(names) + len(ids):
                raise Refusal(
                    422,
                    "There is at least one repository that does not exist or is not accessible to the parent "
                    "installation.",
                )
        token, end = self._access.issue_installation_token(InstallationToken(int(installation), permissions, subset))
        answer = {"token": token, "expires_at": shapes.iso(end), "permissions": permissions}
        return Answer(201, answer | {"repository_selection": "selected"})

    def _get_repository(self, request: Request, full_name: str | None, number: str | None) -> Answer:
        user = self._oauth.token(request.bearer())
        token = None if user else self._access.installation_token(request.bearer())
        repository = self._repository(request, full_name, number)
        if isinstance(repository, Answer):
            return repository
        may_push = user is not None and user.person.may_push(repository)
        if repository.private and not may_push and (token is None or not token.reaches(repository)):
            raise Refusal(404, "Not Found")
        body = shapes.repository_json(repository, self._url())
        return Answer(200, body | ({"permissions": shapes.permissions(may_push)} if user else {}))

    def _list_run_jobs(
        self, request: Request, full_name: str | None, number: str | None, run_id: str, attempt: str
    ) -> Answer:
        token = self._access.installation_token(request.bearer())
        repository = self._repository(request, full_name, number)
        if isinstance(repository, Answer):
            return repository
        if token is None or not token.reaches(repository) or "actions" not in token.permissions:
            raise Refusal(403, "Resource not accessible by integration")
        jobs = self._runs.jobs(repository.id, run_id, int(attempt))
        if jobs is None:
            raise Refusal(404, "Not Found")
        size, page = int(request.query.get("per_page", 30)), int(request.query.get("page", 1))
        rows = [
            shapes.run_job(job, repository, run_id, int(attempt), self._url())
            for job in jobs[(page - 1) * size : page * size]
        ]
        return Answer(200, {"total_count": len(jobs), "jobs": rows})

    def _get_commit(self, request: Request, full_name: str | None, number: str | None, sha: str) -> Answer:
        repository = self._repository(request, full_name, number)
        if isinstance(repository, Answer):
            return repository
        if not self._runs.has_commit(repository.id, sha) and not self._commits.knows(sha):
            raise Refusal(404, "Not Found")
        return Answer(200, {"sha": sha, "url": f"{self._url()}/repos/{repository.full_name}/git/commits/{sha}"})

    def _reached(self, request: Request, full_name: str, permission: str) -> Repository:
        """The repository, where the caller's token holds this permission on it. Raises Refusal as GitHub does."""
        name, word = permission.split(":")
        token = self._access.installation_token(request.bearer())
        repository = self._directory.find(full_name)
        if repository is None:
            raise Refusal(404, "Not Found")
        if token is None:
            raise Refusal(401, "Requires authentication")
        if not token.reaches(repository) or token.permissions.get(name) not in (word, "write"):
            raise Refusal(403, "Resource not accessible by integration")
        return repository

    def _create_check_run(self, request: Request, full_name: str) -> Answer:
        repository = self._reached(request, full_name, "checks:write")
        app = shapes.app(self._access.app_id, self._url())
        return Answer(201, self._checks.create(repository, _object(request.json()), app))

    def _update_check_run(self, request: Request, full_name: str, run: str) -> Answer:
        repository = self._reached(request, full_name, "checks:write")
        return Answer(200, self._checks.update(repository, int(run), _object(request.json())))

    def _list_check_runs(self, request: Request, full_name: str, sha: str) -> Answer:
        return Answer(200, self._checks.of_commit(self._reached(request, full_name, "checks:read"), sha, request.query))

    def _list_pulls(self, request: Request, full_name: str) -> Answer:
        """Those that were only announced, for their heads; else those that the repository's contents have."""
        if "head" in request.query:  # only what was opened from a branch has one
            return self._of_contents(request)
        repository = self._reached(request, full_name, "pull_requests:read")
        announced = self._checks.pulls(repository, request.query)
        return Answer(200, announced) if announced else self._of_contents(request)

    def _rerun(self, request: Request, full_name: str, run: str, scope: str) -> Answer:
        self._checks.rerun(self._reached(request, full_name, "actions:write"), run, scope)
        return Answer(201, {})

    def _create_dispatch(self, request: Request, full_name: str | None, number: str | None) -> Answer:
        token = self._access.installation_token(request.bearer())
        repository = self._repository(request, full_name, number)
        if isinstance(repository, Answer):
            return repository
        if token is None:
            raise Refusal(401, "Requires authentication")
        if not token.reaches(repository) or token.permissions.get("contents") != "write":
            # GitHub admits that a public repository exists, and denies a private one.
            if repository.private:
                raise Refusal(404, "Not Found")
            raise Refusal(403, "Resource not accessible by integration")
        event_type, client_payload = _dispatch_body(_object(request.json()))
        dispatch = self._dispatches.accept(repository.full_name, event_type, client_payload)
        return Answer(204, after=partial(self._dispatches.announce, dispatch))

    def _compare(self, request: Request, full_name: str | None, number: str | None, base: str, head: str) -> Answer:
        repository = self._readable(request, full_name, number)
        return repository if isinstance(repository, Answer) else self._commits.compare(request, base, head)

    def _readable(self, request: Request, full_name: str | None, number: str | None) -> Repository | Answer:
        """A repository that the caller's installation token opens. Raises Refusal 401, 404."""
        token = self._access.installation_token(request.bearer())
        repository = self._repository(request, full_name, number)
        if isinstance(repository, Answer):
            return repository
        if token is None or not token.reaches(repository):
            raise Refusal(404, "Not Found")
        return repository

    def _repository(self, request: Request, full_name: str | None, number: str | None) -> Repository | Answer:
        """The repository a path names, or the redirect GitHub sends for its former name. Raises Refusal 404."""
        found = self._directory.find(full_name) if full_name is not None else self._directory.by_id(int(number or 0))
        if found is not None:
            return found
        moved = self._directory.moved(full_name) if full_name is not None else None
        if moved is None:
            raise Refusal(404, "Not Found")
        location = f"{self._url()}/repositories/{moved.id}{request.path.removeprefix(f'/repos/{full_name}')}"
        status, message = (301, "Moved Permanently") if request.method == "GET" else (307, "Temporary Redirect")
        return Answer(
            status, {"message": message, "url": location, "documentation_url": DOCS}, headers={"Location": location}
        )

    # --- the issuer -------------------------------------------------------------------------------------------

    def _get_jwks(self, request: Request) -> Answer:
        return Answer(200, self._issuer.jwks())

    def _get_issuer(self, request: Request) -> Answer:
        return Answer(200, self._issuer.configuration())

    def _get_oidc_token(self, request: Request) -> Answer:
        run = self._access.run(request.bearer())
        repository = self._directory.by_id(run.repository_id)
        if repository is None:
            raise Refusal(404, "Not Found")
        audience = request.query.get("audience", "")
        if run.ci == "buildkite":
            number = int(run.run_id)
            token = self._issuer.mint_buildkite(
                repository, audience=audience, build_number=number, step=run.workflow, overrides={}
            )
        else:
            token = self._issuer.mint(
                repository,
                audience=audience,
                run_id=run.run_id,
                run_attempt=run.run_attempt,
                workflow=run.workflow,
            )
        return Answer(200, {"count": len(token), "value": token})

    # --- people -----------------------------------------------------------------------------------------------

    def _authorize(self, request: Request) -> Answer:
        return self._oauth.authorize(request)

    def _create_user_token(self, request: Request) -> Answer:
        return self._oauth.access_token(request)

    def _get_user(self, request: Request) -> Answer:
        return self._oauth.user(request)

    def _list_emails(self, request: Request) -> Answer:
        return self._oauth.emails(request)

    def _get_public_user(self, request: Request, login: str) -> Answer:
        return self._oauth.public_user(request, login)

    def _get_membership(self, request: Request, org: str, team: str, login: str) -> Answer:
        return self._oauth.membership(request, org, team, login)

    # --- the stand-in's own -----------------------------------------------------------------------------------

    def _create_run(self, request: Request) -> Answer:
        wish = _object(request.json())
        repository = self._directory.reached(str(wish.get("repository", "")))
        if repository is None:
            raise Refusal(404, "Not Found")
        run_id, attempt = str(wish.get("run_id", "")), str(wish.get("run_attempt", 1))
        if not re.fullmatch(r"[1-9][0-9]{0,17}", run_id) or not re.fullmatch(r"[1-9][0-9]{0,5}", attempt):
            raise Refusal(422, "run_id and run_attempt must be positive numbers")
        ci = "buildkite" if wish.get("ci") == "buildkite" else "github"
        run = Run(repository.id, run_id, int(attempt), str(wish.get("workflow", "CI")), ci)
        if wish.get("job") is not None:
            self._runs.record(repository.id, run_id, int(attempt), RunJob(**_object(wish["job"])))
        return Answer(
            201,
            {
                # As on GitHub the URL brings a query, and callers append `&audience=`.
                "token_url": f"{self._url()}/_actions/token?api-version=2.0",
                "request_token": self._access.issue_run_token(run),
            },
        )

    def _list_dispatches(self, request: Request) -> Answer:
        wanted = request.query.get("repository", "").lower()
        rows = [asdict(d) for d in self._dispatches.all() if not wanted or d.repository.lower() == wanted]
        return Answer(200, {"dispatches": rows})


def _dispatch_body(body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """event_type and client_payload of a dispatch. Raises Refusal 422 where GitHub would."""
    event_type, payload = body.get("event_type"), body.get("client_payload", {})
    if event_type is None:
        raise Refusal(422, 'Invalid request.\n\n"event_type" wasn\'t supplied.')
    if not isinstance(event_type, str) or not 0 < len(event_type) <= LONGEST_EVENT_TYPE:
        raise Refusal(422, f"Invalid request.\n\nevent_type must be text of at most {LONGEST_EVENT_TYPE} characters.")
    if not isinstance(payload, dict):
        raise Refusal(422, "Invalid request.\n\nFor 'properties/client_payload', the value is not an object.")
    if len(payload) > MOST_CLIENT_PAYLOAD_KEYS:
        raise Refusal(
            422,
            f"Invalid request.\n\nNo more than {MOST_CLIENT_PAYLOAD_KEYS} properties are allowed; "
            f"{len(payload)} were supplied.",
        )
    compact = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if len(compact) > LARGEST_CLIENT_PAYLOAD:
        raise Refusal(422, "client_payload is too large.")
    return event_type, payload


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Refusal(422, "Invalid request.\n\nFor 'links/0/schema', the value is not an object.")
    return value


_ROUTES: tuple[tuple[str, re.Pattern[str], Callable[..., Answer]], ...] = tuple(
    (method, re.compile(pattern), view)
    for method, pattern, view in (
        ("GET", r"/app", Answers._get_app),
        ("GET", r"/app/hook/deliveries", Answers._list_hook_deliveries),
        ("POST", r"/app/hook/deliveries/(?P<number>\d{1,18})/attempts", Answers._redeliver),
        ("POST", r"/app/installations/(?P<installation>\d{1,18})/access_tokens", Answers._create_token),
        ("GET", _REPOSITORY + r"/installation", Answers._get_installation),
        ("GET", _REPOSITORY, Answers._get_repository),
        ("POST", _REPOSITORY + r"/dispatches", Answers._create_dispatch),
        (
            "GET",
            _REPOSITORY + r"/actions/runs/(?P<run_id>\d{1,20})/attempts/(?P<attempt>\d{1,7})/jobs",
            Answers._list_run_jobs,
        ),
        ("GET", _REPOSITORY + r"/git/commits/(?P<sha>[0-9a-f]{40})", Answers._get_commit),
        ("POST", _NAMED + r"/check-runs", Answers._create_check_run),
        ("PATCH", _NAMED + r"/check-runs/(?P<run>\d{1,18})", Answers._update_check_run),
        ("GET", _NAMED + r"/commits/(?P<sha>[^/]+)/check-runs", Answers._list_check_runs),
        ("GET", _NAMED + r"/pulls", Answers._list_pulls),
        ("POST", _NAMED + r"/actions/runs/(?P<run>\d{1,18})/(?P<scope>rerun|rerun-failed-jobs)", Answers._rerun),
        ("GET", _REPOSITORY + r"/compare/(?P<base>[^/]+)\.\.\.(?P<head>[^/]+)", Answers._compare),
        ("GET", r"/login/oauth/authorize", Answers._authorize),
        ("POST", r"/login/oauth/access_token", Answers._create_user_token),
        ("GET", r"/user", Answers._get_user),
        ("GET", r"/user/emails", Answers._list_emails),
        ("GET", r"/users/(?P<login>[^/]+)", Answers._get_public_user),
        ("GET", r"/orgs/(?P<org>[^/]+)/teams/(?P<team>[^/]+)/memberships/(?P<login>[^/]+)", Answers._get_membership),
        ("GET", r"(?:/buildkite)?/\.well-known/jwks", Answers._get_jwks),
        ("GET", r"/\.well-known/openid-configuration", Answers._get_issuer),
        ("GET", r"/_actions/token", Answers._get_oidc_token),
        ("POST", r"/_standin/runs", Answers._create_run),
        ("GET", r"/_standin/dispatches", Answers._list_dispatches),
    )
)
