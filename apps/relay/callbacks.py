"""The callback verb: from a verified identity and a raw body to an answer."""

import contextlib
import dataclasses
import datetime
import logging
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from apps.core import alarms
from apps.core.errors import Problem
from apps.core.github import GitHubRefused, GitHubUnavailable, RepositoryIdentity, client
from apps.core.models import Alarm
from apps.platforms.models import Repository
from apps.platforms.pins import pin_identity
from apps.platforms.pipelines import standing_of_pipeline
from apps.platforms.policy import CHECKS_FROM, PUBLIC_FROM, UNLISTED
from apps.platforms.selectors import Standing, standing_of
from apps.relay import buildkite, fields, holds, policy, provenance, store
from apps.relay.claims import Identity, Refused
from apps.relay.enums import Answer, Flag

log = logging.getLogger(__name__)

_RACES = 10
# Refusals of these statuses are counted, and stand on the page of rejections.
COUNTED_STATUSES = frozenset({401, 403, 409, 429})
# The reporter gives up after ten seconds; up to three requests to GitHub must fit into them.
PIN_TIMEOUT_SECONDS = 2


@dataclass(frozen=True)
class Outcome:
    """What a callback came to. `job` is the public id of its job, None where there is no public one."""

    answer: Answer
    job: UUID | None = None


def accept(*, identity: Identity, standing: Standing | None, raw: bytes, now: datetime.datetime) -> Outcome:
    """Validate one callback and apply it. What is written is one statement, hence one transaction.

    `standing` is what `resolve` returned. An unlisted repository's valid callback is answered `ignored` and nothing
    is kept; at L1 it is kept privately; of a job that was public before its repository was lowered it is applied all
    the same. Under an owner that nobody has accepted yet it is `held`. Raises Problem:
    `identity_replaced` (another id under a listed name, or a refused owner), `malformed`, `claims_contradict`,
    `token_reused`, `never_dispatched`, `dispatch_token_wrong`, `completion_conflict` (kept on record), `unavailable`.
    """
    callback = fields.read(raw)
    if standing is None or (standing.level == UNLISTED and not _goes_on(identity, standing, callback)):
        return Outcome(Answer.IGNORED)
    is_held = holds.is_held(identity, standing, now)
    compare_claims(identity, run_id=callback.run_id, run_attempt=callback.run_attempt, within="workflow.")
    is_dispatched = callback.event_type not in policy.UNDISPATCHED_EVENTS
    for _ in range(_RACES):
        with contextlib.suppress(store.Raced):  # then all of it again
            return _apply(identity, standing, callback, is_dispatched, is_held, now)
    raise Problem("unavailable", "Too many callbacks for this job at once.", headers={"Retry-After": "1"})


def _goes_on(identity: Identity, standing: Standing, callback: fields.Callback) -> bool:
    """Whether an unlisted repository tells more of a job that began while it was listed. Nobody else may."""
    if not holds.is_pinned(identity, standing):
        return False
    return store.read(standing.repository_id, callback, identity).job_id is not None


def _apply(
    identity: Identity,
    standing: Standing,
    callback: fields.Callback,
    is_dispatched: bool,
    is_held: bool,
    now: datetime.datetime,
) -> Outcome:
    """Read, decide, write. Raises store.Raced when another callback of the job, or with its token, was faster."""
    known = store.read(standing.repository_id, callback, identity)
    if known.used is not None and (repeated := _repeated(known.used, known, callback, is_held)) is not None:
        return repeated
    if is_dispatched and not known.has_left:
        raise Problem(
            "never_dispatched",
            f"delivery_id: the hub never sent {callback.delivery_id[:60]} to {standing.full_name}.",
            "delivery_id",
        )
    if not is_dispatched:
        # Informational: a body that names a real delivery does not get to stand for it.
        known = dataclasses.replace(known, event=None, dispatch_id=None)
    shown = _provenance(standing, callback, now) if is_dispatched else ""
    if standing.level < PUBLIC_FROM and known.job_id is None:
        store.keep_private(standing.repository_id, callback, identity=identity, now=now)
        return Outcome(Answer.IGNORED)
    row = policy.decide(
        known.state,
        callback.report,
        expects_start=is_dispatched,
        found=found_flags(known, callback.report, callback.leg, now),
    )
    with holds.undecided(standing.repository_id, identity) if is_held else contextlib.nullcontext(False) as is_held:
        if is_held:
            row = policy.held(row)
        if row.status is None and row.answer in (Answer.DUPLICATE, Answer.HELD):
            return Outcome(row.answer, known.job_public_id)
        job = store.write(
            standing.repository_id,
            callback,
            known,
            row,
            bucket=policy.bucket_after(known.state, callback.report),
            provenance=policy.stronger_provenance(known.provenance, shown),
            identity=identity,
            has_checks=standing.level >= CHECKS_FROM,
            now=now,
        )
    if row.answer is Answer.CONFLICT:
        raise Problem(
            "completion_conflict",
            f"workflow.conclusion: the job ended as {known.state.conclusion} with "
            f"{_spelled(known.state.counts)}; this callback says {callback.report.conclusion} with "
            f"{_spelled(callback.report.counts)}. It is kept on the job's record.",
            "workflow.conclusion",
        )
    return Outcome(row.answer, job)


def _repeated(used: store.Used, known: store.Known, callback: fields.Callback, is_held: bool) -> Outcome | None:
    """The answer to a body whose token was used before; None for a conflicting one, which is refused as it was.

    Raises Problem `token_reused` when it was used for another body.
    """
    if used.body_digest != callback.body_digest:
        raise Problem("token_reused", "jti: this OIDC token came with another body before.", "jti")
    if used.answer is Answer.CONFLICT:
        return None
    if used.answer is Answer.IGNORED:
        return Outcome(Answer.IGNORED)
    return Outcome(Answer.HELD if is_held else Answer.DUPLICATE, known.job_public_id)


def _provenance(standing: Standing, callback: fields.Callback, now: datetime.datetime) -> str:
    return provenance.read(
        callback.dispatch_token, delivery_id=callback.delivery_id, repository_id=standing.repository_id, now=now
    )


def found_flags(known: store.Known, report: policy.Report, leg: str, now: datetime.datetime) -> tuple[Flag, ...]:
    """What the job's report says against itself, and whether it ends another check run's leg."""
    found = policy.flags_of_times(report.started_at or known.state.started_at, report.completed_at, now)
    return (*found, Flag.JOINED) if known.state.is_open and known.leg != leg else found


def _spelled(counts: policy.Counts) -> str:
    if counts.total is None:
        return "no test counts"
    return f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped of {counts.total}"


def compare_claims(identity: Identity, *, run_id: str, run_attempt: int, within: str) -> None:
    """Whether a body is about the run of its token. `within`: what the fields' names begin with. Raises Problem
    `claims_contradict`."""
    for name, claimed, said in (
        ("run_id", identity.run_id, run_id),
        ("run_attempt", identity.run_attempt, run_attempt),
    ):
        if claimed is not None and claimed != said:
            raise Problem(
                "claims_contradict",
                f"{within}{name}: the body says {said}, the token of this run says {claimed}.",
                f"{within}{name}",
            )


def resolve(*, identity: Identity, now: datetime.datetime) -> Standing | None:
    """The listed repository that an identity stands for; None when it stands for none.

    Identity is GitHub's numeric ids; the name only finds a repository that is not pinned yet, and such a one is
    pinned here: to GitHub's answer, or to the claims, flagged, when GitHub cannot be asked. A Buildkite pipeline stands
    for the repository that it is mapped to. Raises Refused `identity_unknown` when it is mapped to none, or its token
    lacks what the mapping requires.
    """
    if identity.pipeline is not None:
        mapped = standing_of_pipeline(identity.pipeline.organization_id, identity.pipeline.pipeline_id)
        if mapped is None:
            raise buildkite.refuse_unmapped(identity)
        standing, required = mapped
        buildkite.require(identity, required)
        return standing
    found = _standing(identity)
    if found is not None and found.github_id is None and found.level > UNLISTED:
        _pin(found, identity, now)
        found = _standing(identity)
    return found


def _standing(identity: Identity) -> Standing | None:
    """The repository that an identity means, whatever it may do."""
    if identity.pipeline is not None:
        mapped = standing_of_pipeline(identity.pipeline.organization_id, identity.pipeline.pipeline_id)
        return mapped[0] if mapped else None
    return standing_of(github_id=int(identity.numbers[0]), full_name=identity.repository)


def _pin(standing: Standing, identity: Identity, now: datetime.datetime) -> None:
    try:
        found = client().repository_identity(standing.full_name, timeout_seconds=PIN_TIMEOUT_SECONDS)
        source = Repository.PinSource.GITHUB_API
    except (GitHubRefused, GitHubUnavailable) as error:
        log.warning("%s is pinned at first sight: %s", standing.full_name, error)
        found = RepositoryIdentity(identity.repository, *map(int, identity.numbers))
        source = Repository.PinSource.FIRST_SIGHT
    pin_identity(repository_id=standing.repository_id, identity=found, source=source, now=now)


def count_rejection(
    *, problem: Problem, identity: Identity | None, standing: Standing | None, now: datetime.datetime
) -> None:
    """Count a refusal by (issuer, ids, code, reason).

    Nothing that is counted by comes from a body or an unverified token: whoever floods the hub fills few rows.
    """
    issuer, reason = identity.issuer if identity else "", problem.row.title
    if identity is not None and standing is None:
        standing = _standing(identity)
    if isinstance(problem, Refused):
        issuer, reason = problem.issuer, problem.reason
    if problem.code == "identity_replaced" and standing is not None:
        kind, key = Alarm.Kind.IDENTITY_REPLACED, str(standing.repository_id)
        alarms.sound(kind, key, detail=problem.detail, now=now)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO relay_rejection (issuer, repository_claim, repository_id_claim, owner_id_claim, code, reason, "
            "repository_id, count, first_seen, last_seen) VALUES (%s, %s, %s, %s, %s, %s, %s, 1, %s, %s) "
            "ON CONFLICT (issuer, repository_claim, repository_id_claim, owner_id_claim, code, reason) "
            "DO UPDATE SET count = relay_rejection.count + 1, last_seen = excluded.last_seen, "
            "repository_id = COALESCE(excluded.repository_id, relay_rejection.repository_id)",
            [
                issuer,
                identity.repository if identity else "",
                *(identity.numbers if identity else ("", "")),
                problem.code,
                reason,
                standing.repository_id if standing else None,
                now,
                now,
            ],
        )
