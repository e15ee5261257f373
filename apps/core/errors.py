"""Every refusal the hub speaks: one table of codes, one exception, one JSON form (RFC 9457, problem+json).

A code is stable: clients may branch on it. `detail` names the rule or field, what was seen, and what to do next.
"""

import dataclasses
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, JsonResponse


@dataclass(frozen=True)
class Code:
    """One row of the table: `status` is HTTP's, `next_step` is for the person who reads the answer."""

    status: int
    title: str
    next_step: str


CODES: dict[str, Code] = {
    "malformed": Code(400, "The request is malformed", "Correct the field that `field` names and send it again."),
    "signature_missing": Code(400, "The signature header is missing", "Send X-Hub-Signature-256 over the raw body."),
    "signature_wrong": Code(401, "The signature does not match", "Use the webhook secret that the hub is set up with."),
    "token_missing": Code(401, "No bearer token", "Send the CI's OIDC token as `Authorization: Bearer …`."),
    "token_invalid": Code(401, "The token is not acceptable", "Ask the CI for a fresh token with the hub's audience."),
    "token_expired": Code(401, "The token has expired", "Ask the CI for a fresh token right before the request."),
    "bot_key_wrong": Code(401, "The relay's key is not right", "Send the shared key as `x-hud-internal-bot`."),
    "not_signed_in": Code(401, "Not signed in", "Sign in, or send an API token."),
    "identity_unknown": Code(403, "The identity maps to no repository", "Check the token's repository claims."),
    "identity_replaced": Code(
        403,
        "The repository is not the one that was listed",
        "A repository of this name was listed with other numeric ids: ask the hub's operators to pin it anew.",
    ),
    "claims_contradict": Code(
        403, "The token contradicts the body", "Report a run from a job of that run, with that run's own token."
    ),
    "already_declared": Code(
        409, "The job's outcome is declared already", "Withdraw the earlier declaration, or choose another time."
    ),
    "never_dispatched": Code(
        403,
        "This delivery was never dispatched to this repository",
        "Send back the delivery_id that the hub's repository_dispatch carried.",
    ),
    "dispatch_token_wrong": Code(
        403,
        "The dispatch's token is not the one that the hub sent",
        "Send the dispatched client_payload back as it came, dispatch_token included, or leave the token out.",
    ),
    "not_permitted": Code(403, "Not permitted", "Ask a maintainer, or sign in as someone who may."),
    "recusal": Code(403, "Nobody decides about their own", "Ask a maintainer of another organisation to decide."),
    "write_access": Code(
        403,
        "Write access to the repository is not proven",
        "Sign in with GitHub as someone who may push to it, or ask a member of the platform for an invitation.",
    ),
    "csrf": Code(403, "The form has expired", "Reload the page and send the form again."),
    "not_found": Code(404, "Not found", "Check the address."),
    "method": Code(405, "This method is not allowed here", "See the Allow header."),
    "not_acceptable": Code(406, "This form of answer is not offered", "Ask for application/json."),
    "completion_conflict": Code(
        409,
        "The job already ended otherwise",
        "The first final answer stands. Re-run the job: a new run_attempt is reported anew.",
    ),
    "dispatch_state": Code(
        409, "The dispatch was not given up", "Look at the dispatch again: it may have been sent meanwhile."
    ),
    "quarantine_open": Code(
        409, "A test stands in another open quarantine", "Look at that one, or leave the test out."
    ),
    "quarantine_stale": Code(409, "The quarantine has changed meanwhile", "Look at the quarantine again, then decide."),
    "quarantine_unproven": Code(
        409, "The release is not proven", "Wait for the passes that are missing, or say that it goes without proof."
    ),
    "quarantine_state": Code(409, "The quarantine's state does not allow it", "Look at what may follow on its state."),
    "quarantine_cap": Code(409, "The platform's cap is reached", "Release some first, or ask a maintainer."),
    "quarantine_budget": Code(409, "The platform's budget is used up", "Let it end earlier, or ask a maintainer."),
    "quarantine_renewed": Code(409, "It was renewed as often as it may be", "Fix the test, or ask a maintainer."),
    "quarantine_over": Code(409, "Its time is over", "Propose the tests again."),
    "alias_taken": Code(
        409, "The test already stands in another alias", "Remove that alias first: aliases form no chains."
    ),
    "participation_stale": Code(
        409, "The participation has changed meanwhile", "Look at it again, then write what should hold."
    ),
    "token_reused": Code(
        409, "The token was used for another body", "Ask the CI for a fresh OIDC token for every callback."
    ),
    "forward_state": Code(
        409,
        "This result cannot be sent again",
        "Only what was given up is sent again, while its body is kept and no newer result of its job has gone out.",
    ),
    "report_conflict": Code(
        409,
        "The report was uploaded otherwise",
        "Give each run's report a `report_key` of its own, and each of its shards its own number.",
    ),
    "report_removed": Code(
        409, "The report was taken down", "Ask the hub's maintainers: the reason stands on the report's page."
    ),
    "report_unready": Code(
        409, "The report is not ready", "Look at its receipt, and compare once it says ready, or with another report."
    ),
    "variants_differ": Code(
        409, "The reports are of different variants", "Choose two reports of one variant: results never cross it."
    ),
    "check_not_given_up": Code(
        409, "The check run was not given up", "Look at the list again: it is sent, or waits for its next attempt."
    ),
    "other_mode": Code(
        409, "The hub's mode does not take this", "See the modes on /policy/; the hub's operators choose one."
    ),
    "last_admin": Code(409, "The last admin stays", "Grant the role to someone else first."),
    "level_stale": Code(409, "The level has changed meanwhile", "Look at the repository again, then decide."),
    "level_transition": Code(409, "This change of level cannot be made directly", "See the levels on /policy/."),
    "allowlist_elsewhere": Code(
        409, "The allowlist is kept upstream", "Change the file in the upstream repository: the hub follows it."
    ),
    "decision_waits": Code(
        409, "A decision waits for upstream's file", "Have its pull request merged or closed, then decide again."
    ),
    "alarm_stale": Code(409, "The alarm is not open any more", "Look at the allowlist's page again."),
    "transfer_stale": Code(409, "The new owner is decided on already", "Look at the transfer again, then decide."),
    "already_listed": Code(409, "The repository is listed already", "See its platform's page."),
    "already_proposed": Code(
        409, "A proposal for this repository is open", "Wait for its decision, or ask the maintainers."
    ),
    "job_not_red": Code(
        409, "The job did not end red", "Only what failed, timed out or is contradicted is acknowledged."
    ),
    "already_acknowledged": Code(
        409, "You have acknowledged this job", "What was said stands; another oncall can add their own word."
    ),
    "already_waived": Code(409, "A waiver holds already", "Withdraw the waiver that holds, or let it run out."),
    "not_eligible": Code(
        409, "The criteria are not met", "See the repository's evaluation: each criterion says when it could be met."
    ),
    "already_open": Code(409, "A promotion is open already", "Decide or withdraw the open one first."),
    "promotion_stale": Code(409, "The promotion has changed", "Look at it again, then decide."),
    "evidence_stale": Code(
        409,
        "The evidence does not hold any more",
        "Look at what changed; freeze it anew where there is a bundle; then decide.",
    ),
    "waiver_stale": Code(409, "The waiver does not hold any more", "Look at the repository again."),
    "already_appealed": Code(409, "An appeal is about it already", "Look at the appeal that the detail names."),
    "appeal_late": Code(409, "The time to appeal it has passed", "See the limits on /policy/."),
    "appeal_stale": Code(409, "The appeal has changed meanwhile", "Look at the appeal again, then decide."),
    "appeal_overdue": Code(409, "Its deadline has passed", "Decide it: a deadline pauses before it is over."),
    "appeal_paused": Code(409, "The appeal was paused already", "Decide it: a deadline pauses once."),
    "override_stale": Code(409, "The override does not hold any more", "Look at the override again."),
    "notice_stale": Code(409, "The notice is not open any more", "Look at the notice again."),
    "notice_early": Code(409, "The notice's deadline has not passed", "Decide after the deadline, or lift the notice."),
    "already_downgraded": Code(409, "A temporary downgrade is open already", "Undo it or make it formal first."),
    "downgrade_stale": Code(409, "The downgrade is not open any more", "Look at the downgrade again."),
    "breaker_stale": Code(409, "The breaker is not open any more", "Look at the repository's breaker again."),
    "draft_stale": Code(409, "The draft has changed meanwhile", "Look at the draft again, then decide."),
    "proposal_stale": Code(409, "The proposal has changed meanwhile", "Look at the proposal again, then decide."),
    "invitation_closed": Code(
        410, "The invitation is no longer good", "Ask a member of the platform, or a maintainer, for a new one."
    ),
    "too_large": Code(413, "The request is too large", "Send less: the limit stands in `detail`."),
    "media_type": Code(415, "This content type is not read here", "Send application/json."),
    "quota_used": Code(
        429, "The day's bytes are used up", "Upload the rest after Retry-After, or less: compress it, leave logs out."
    ),
    "rate_limited": Code(429, "Too many requests", "Wait as long as the Retry-After header says."),
    "internal": Code(500, "The hub failed", "Try again; tell the hub's operators if it stays."),
    "github_unavailable": Code(503, "GitHub does not answer", "Try again in a few minutes."),
    "unavailable": Code(503, "The hub cannot store this now", "Send the identical request again after Retry-After."),
}


@dataclass
class Problem(Exception):
    """A refusal on its way to the caller. `code` is a key of CODES; `field` a dotted path into the request."""

    code: str
    detail: str
    field: str | None = None
    headers: dict[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(self.code, self.detail)

    @property
    def row(self) -> Code:
        return CODES[self.code]


def written(text: str, field: str, most: int) -> str:
    """A text that somebody has to write, without the blanks around it. Raises Problem `malformed` where it is empty or
    longer than `most` characters."""
    text = text.strip()
    if not text or len(text) > most:
        raise Problem("malformed", f"{field}: saw {len(text)} characters, write 1 to {most}.", field)
    return text


def problem_response(problem: Problem) -> JsonResponse:
    """The refusal as `application/problem+json`: type, title, status, code, detail, next_step, field?.

    `detail` names the rule and what was seen, `next_step` says what to do.
    """
    body = {
        "type": f"{settings.BASE_URL}/docs/errors/{problem.code}",
        "title": problem.row.title,
        "status": problem.row.status,
        "code": problem.code,
        "detail": problem.detail,
        "next_step": problem.row.next_step,
    }
    if problem.field is not None:
        body["field"] = problem.field
    return JsonResponse(
        body, status=problem.row.status, headers=problem.headers, content_type="application/problem+json"
    )


MACHINE_PREFIXES = ("/api/", "/github/")


def is_machine_route(request: HttpRequest) -> bool:
    """Whether this address answers programs: then every refusal is problem+json, whoever raised it."""
    return request.path_info.startswith(MACHINE_PREFIXES)
