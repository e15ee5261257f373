"""Verbs on check runs: see what a webhook tells of a pull request, make every check run say what it should, send."""

import datetime
import hashlib
import logging
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.urls import reverse

from apps.audit.enums import Action
from apps.audit.services import Actor, Subject, record
from apps.checks import outbox, policy, webhooks
from apps.checks.carried import carrying, is_alarming
from apps.checks.enums import CheckStatus, NeutralEnd, SendState
from apps.checks.models import Check, PullRequest
from apps.checks.policy import Wanted
from apps.checks.selectors import has_held_job, legs_by_name, may_publish, name_at
from apps.checks.topics import CHECK_PENDING
from apps.core import alarms, clock
from apps.core.errors import Problem
from apps.core.github import GitHubRefused, GitHubUnavailable, client
from apps.core.models import Alarm
from apps.core.wakeups import wake
from apps.gate.enums import Effect
from apps.gate.selectors import PartTold, part_of
from apps.platforms.models import Repository
from apps.platforms.policy import CHECKS_FROM, MATURE
from apps.platforms.selectors import has_open_demotion
from apps.relay import checknames
from apps.relay.adoption_selectors import STILL_AT_WORK, Holder, holder
from apps.relay.enums import Conclusion, JobStatus
from apps.relay.models import Delivery, Dispatch, Job
from apps.relay.policy import WORST

log = logging.getLogger(__name__)

HELD_NEXT = (
    "Stop it there, or set ACCELHUB_CHECK_PREFIX. This one waits and goes by itself: "
    f"{STILL_AT_WORK.seconds // 3_600} hours after that App's last one, on a commit that shows one once it is gone."
)
# In these states nothing is sent any more, until there is something new to say.
OVER = (SendState.SENT, SendState.GIVEN_UP)


# --- what makes the hub look at a commit ------------------------------------------------------------------------


@transaction.atomic
def look_at_jobs(job_pks: Iterable[int], *, now: datetime.datetime) -> int:
    """Jobs have changed: make their check runs say so. Returns how many check runs are to be sent."""
    found = Job.objects.filter(pk__in=set(job_pks), pr_number__isnull=False).exclude(head_sha="")
    places = found.order_by("head_sha", "repository").values_list("head_sha", "repository").distinct()
    return sum(reconcile(repository_id=repository, head_sha=sha, now=now) for sha, repository in places)


@transaction.atomic
def look_at_pull_request(*, delivery_pk: int, now: datetime.datetime) -> int:
    """A webhook tells of a pull request: keep whether it is open and what its labels ask for, and make its check runs
    say so. Returns how many are to be sent."""
    delivery = Delivery.objects.get(pk=delivery_pk)
    if delivery.pr_number is None or not delivery.head_sha:
        return 0
    told = webhooks.told_of(delivery)
    lock(delivery.head_sha)
    row = PullRequest.objects.filter(number=delivery.pr_number, head_sha=delivery.head_sha).first()
    known = policy.Wish(row.told_at, row.is_open, frozenset(row.devices)) if row else None
    wish = policy.wish_after(known, told)
    if wish is None:
        return 0
    values = {"is_open": wish.is_open, "devices": sorted(wish.devices), "told_at": wish.at}
    PullRequest.objects.update_or_create(number=delivery.pr_number, head_sha=delivery.head_sha, defaults=values)
    changed, is_asked = 0, told.action == "labeled" and wish.is_open and may_publish()
    for repository in Repository.objects.filter(level__gte=CHECKS_FROM).order_by("pk"):
        changed += reconcile(repository_id=repository.pk, head_sha=delivery.head_sha, now=now)
        if is_asked and told.label == repository.device.lower() and not has_open_demotion(repository.pk):
            changed += _say_that_nothing_is_kept(repository, delivery, now)
    return changed


@transaction.atomic
def look_at_repository(*, repository_id: int, now: datetime.datetime) -> int:
    """A repository's level or device has changed: end the open check runs that nothing asks for any more, and open
    those of jobs that run. Returns how many check runs are to be sent."""
    still_open = Check.objects.filter(repository=repository_id, status=CheckStatus.IN_PROGRESS)
    running = Job.objects.filter(
        repository=repository_id,
        status=JobStatus.IN_PROGRESS,
        pr_number__isnull=False,
        first_seen_at__gt=now - policy.ANSWERS_AWAITED,
    ).exclude(head_sha="")
    shas = {*still_open.values_list("head_sha", flat=True), *running.values_list("head_sha", flat=True)}
    return sum(reconcile(repository_id=repository_id, head_sha=sha, now=now) for sha in sorted(shas))


@transaction.atomic
def look_at_commit(*, head_sha: str, now: datetime.datetime) -> int:
    """What the gate says of a commit has changed: make the check runs of the repositories that block say so. Returns
    how many are to be sent."""
    shown = set(Check.objects.filter(head_sha=head_sha).values_list("repository", flat=True))
    changed = 0
    for repository in Repository.objects.filter(level__gte=MATURE, is_probe=False).order_by("pk"):
        if repository.pk in shown:
            changed += reconcile(repository_id=repository.pk, head_sha=head_sha, now=now)
        else:
            changed += _say_that_nothing_came(repository, head_sha, now)
    return changed


@transaction.atomic
def look_at_breaker(*, repository_id: int, now: datetime.datetime) -> int:
    """A repository's breaker has opened or closed: make its check runs on the heads of open pull requests that are not
    green say so. Returns how many are to be sent."""
    heads = PullRequest.objects.filter(is_open=True).values("head_sha")
    shown = Check.objects.filter(repository=repository_id, head_sha__in=heads)
    shas = shown.exclude(conclusion=Conclusion.SUCCESS).values_list("head_sha", flat=True)
    return sum(reconcile(repository_id=repository_id, head_sha=sha, now=now) for sha in sorted(set(shas)))


def _say_that_nothing_came(repository: Repository, head_sha: str, now: datetime.datetime) -> int:
    """A blocking repository said nothing of a pull request's head, and nothing is awaited of it any more: its check
    runs carry that, under the names that it bore last. Else a check that upstream requires waits for ever."""
    pull = PullRequest.objects.filter(head_sha=head_sha, is_open=True).order_by("-told_at").first()
    last = Check.objects.filter(repository=repository).order_by("-pk").first()
    if pull is None or last is None or has_open_demotion(repository.pk):
        return 0
    lock(head_sha)
    if legs_by_name(repository, head_sha, repository.full_name):
        return 0
    part = part_of(repository, sha=head_sha, pr_number=pull.number, at=now)
    if part is None or part.effect is Effect.WAITS:
        return 0
    own = Wanted(
        job_pk=None,
        pr_number=pull.number,
        run_id="",
        run_attempt=1,
        status=CheckStatus.IN_PROGRESS,
        conclusion="",
        title="",
        summary="none was heard.",
    )
    wanted = carrying(own, part)
    names = Check.objects.filter(repository=repository, head_sha=last.head_sha).order_by("name")
    return sum(_write(repository, head_sha, one.name, None, wanted, now) for one in names)


def lock(head_sha: str) -> None:
    """One look at a commit at a time, until the transaction ends: the later one sees what the earlier one has not."""
    key = int.from_bytes(hashlib.sha256(f"checks {head_sha}".encode()).digest()[:8], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


@transaction.atomic
def reconcile(*, repository_id: int, head_sha: str, now: datetime.datetime) -> int:
    """Make every check run of a repository at a commit say what it should by now. Idempotent, whatever the reason to
    look. Returns how many are to be sent."""
    lock(head_sha)
    repository = Repository.objects.get(pk=repository_id)
    checks = {check.name: check for check in Check.objects.filter(repository=repository, head_sha=head_sha)}
    if repository.level < CHECKS_FROM and not any(c.status == CheckStatus.IN_PROGRESS for c in checks.values()):
        return 0
    full_name = name_at(repository, checks.values())
    legs = legs_by_name(repository, head_sha, full_name)
    pulls = {row.number: row for row in PullRequest.objects.filter(head_sha=head_sha)}
    changed, parts = 0, dict[int, PartTold | None]()
    for name in sorted({*checks, *legs}):
        known = checks.get(name)
        wanted = (
            policy.wanted_of(legs[name], order=WORST, full_name=repository.full_name, level=repository.level, name=name)
            if name in legs
            else None
        )
        number = wanted.pr_number if wanted else known.pr_number if known else 0
        if wanted is not None and repository.level >= MATURE:
            wanted = _as_the_gate_says(repository, head_sha, wanted, parts, now)
        wanted = _as_asked_for(repository, pulls.get(number), known, wanted)
        if wanted is not None and _write(repository, head_sha, name, known, wanted, now):
            changed += 1
    return changed


def _as_the_gate_says(
    repository: Repository, head_sha: str, wanted: Wanted, parts: dict[int, PartTold | None], now: datetime.datetime
) -> Wanted:
    """A blocking repository's check run carries its part; `parts`, by pull request, are asked for once."""
    if wanted.pr_number not in parts:
        parts[wanted.pr_number] = part_of(repository, sha=head_sha, pr_number=wanted.pr_number, at=now)
    part = parts[wanted.pr_number]
    if part is None:
        return wanted
    if is_alarming(part):
        detail = f"{repository} on #{wanted.pr_number}: {part.leading.sentence}"
        alarms.sound(Alarm.Kind.GATE_NEUTRAL, str(repository), detail=detail, now=now)
    return carrying(wanted, part)


def _as_asked_for(
    repository: Repository, pull: PullRequest | None, known: Check | None, wanted: Wanted | None
) -> Wanted | None:
    """What the check run is to say, given who asks for it; None: it stays as it is. A pull request that no webhook has
    told of is open and has no labels. While upstream's own demotion of the repository is open, no new one begins."""
    is_open_now = known is not None and known.status == CheckStatus.IN_PROGRESS
    devices = pull.devices if pull else ()
    if not checknames.is_wished(level=repository.level, device=repository.device, devices=devices):
        end = NeutralEnd.LEVEL if repository.level < CHECKS_FROM else NeutralEnd.LABEL
        return _neutral(known, end, repository) if known and is_open_now else None
    if wanted is None:
        if not (known and is_open_now):
            return None
        end = NeutralEnd.HELD if has_held_job(known) else NeutralEnd.RESULTS_GONE
        return _neutral(known, end, repository)
    opens = known is None or policy.is_new_run(
        sent_status=known.status, sent_run=known.run, status=wanted.status, run=wanted.run
    )
    is_closed = pull is not None and not pull.is_open
    return None if opens and (is_closed or has_open_demotion(repository.pk)) else wanted


def _neutral(known: Check, end: NeutralEnd, repository: Repository) -> Wanted:
    title, summary = policy.neutral_words(end, repository.level)
    return Wanted(
        job_pk=known.job_id,
        pr_number=known.pr_number,
        run_id=known.run_id,
        run_attempt=known.run_attempt,
        status=CheckStatus.COMPLETED,
        conclusion=Conclusion.NEUTRAL.value,
        title=title,
        summary=summary,
    )


def _say_that_nothing_is_kept(repository: Repository, delivery: Delivery, now: datetime.datetime) -> int:
    """Somebody asks for a check run, and there is nothing to show nor to wait for: one neutral check run says so."""
    awaited = Dispatch.objects.filter(
        repository=repository, delivery__head_sha=delivery.head_sha, created_at__gt=now - policy.ANSWERS_AWAITED
    )
    known = Check.objects.filter(repository=repository, head_sha=delivery.head_sha)
    if known.exists() or awaited.exists() or legs_by_name(repository, delivery.head_sha, repository.full_name):
        return 0
    assert delivery.pr_number is not None
    title, summary = policy.neutral_words(NeutralEnd.RESULTS_GONE, repository.level)
    wanted = Wanted(
        job_pk=None,
        pr_number=delivery.pr_number,
        run_id="",
        run_attempt=1,
        status=CheckStatus.COMPLETED,
        conclusion=Conclusion.NEUTRAL.value,
        title=title,
        summary=summary,
    )
    name = checknames.name_of(repository.full_name, "", "")
    return int(_write(repository, delivery.head_sha, name, None, wanted, now))


def _write(
    repository: Repository, head_sha: str, name: str, known: Check | None, wanted: Wanted, now: datetime.datetime
) -> bool:
    """Keep what a check run is to say and wake its sender. False where it says so already."""
    moment = clock.real(now)
    says = {
        "job_id": wanted.job_pk,
        "pr_number": wanted.pr_number,
        "run_id": wanted.run_id,
        "run_attempt": wanted.run_attempt,
        "status": wanted.status,
        "conclusion": wanted.conclusion,
        "title": wanted.title,
        "summary": wanted.summary,
    }
    if known is None:
        times = {"created_at": now, "next_attempt_at": moment, "changed_at": moment}
        known, is_new = Check.objects.get_or_create(
            head_sha=head_sha, name=name, defaults={"repository": repository, **times, **says}
        )
        if not is_new:
            # One of its former names: whoever bore it when the commit came keeps it there.
            log.error("%s is the check run of %s at %s already", name, known.repository, head_sha)
            return False
        wake(CHECK_PENDING, [str(known.pk)], now=now)
        return True
    if all(getattr(known, field) == value for field, value in says.items()):
        return False
    note = known.note if known.run == wanted.run else ""
    send_anew(known, now=now, note=note, **says)
    return True


def send_anew(check: Check, *, now: datetime.datetime, **says: Any) -> None:
    """In the caller's transaction: the check run is to say something else. One that is being sent right now is sent
    again when that is over; one that waits for its next attempt goes on waiting."""
    moment = clock.real(now)
    state = Check.objects.select_for_update().values_list("state", flat=True).get(pk=check.pk)
    if state in OVER:
        says |= {"state": SendState.PENDING, "attempts": 0, "next_attempt_at": moment, "changed_at": moment}
    Check.objects.filter(pk=check.pk).update(revision=F("revision") + 1, **says)
    wake(CHECK_PENDING, [str(check.pk)], now=now)


# --- sending ----------------------------------------------------------------------------------------------------


def send_check(*, check_pk: int, now: datetime.datetime) -> SendState | None:
    """Make GitHub show what a check run is to say. Returns its new state; None when it was not there to be sent.

    Not reached: pending again, and the sweep tries when its time has come. Refused: given up, with GitHub's words. One
    whose name another App holds waits, with an alarm, until that may be over.
    """
    check = outbox.take(Check, check_pk, now=now) if may_publish() else None
    if check is None:
        return None
    if held := holder(check.name, check.head_sha, now=clock.real(now)):
        return _wait_for(held, check)
    try:
        github_id = _publish(check, now)
    except GitHubUnavailable as problem:
        left = outbox.after_failure(check, asked=problem.wait_seconds, now=clock.now())
        return _end(check, error=str(problem), **left)
    except GitHubRefused as problem:
        return _end(check, error=str(problem), state=SendState.GIVEN_UP)
    return _sent(check, github_id)


def _wait_for(held: Holder, check: Check) -> SendState | None:
    """Two Apps never publish one name (docs/operator.md, "Modes"): this was no attempt, and the name may come free."""
    error = f"the App {held.app} publishes it too. {HELD_NEXT}"
    if error != check.error:
        log.error("check %s is not published: %s", check.name, error)
    state, attempts = SendState.PENDING, check.attempts - 1
    return _end(check, state=state, error=error, attempts=attempts, next_attempt_at=held.until)


def _sent(check: Check, github_id: int) -> SendState | None:
    """GitHub shows what `check` says."""
    return _end(
        check,
        state=SendState.SENT,
        github_id=github_id,
        sent_revision=check.revision,
        sent_status=check.status,
        sent_run=check.run,
        sent_at=clock.now(),
    )


@transaction.atomic
def _end(check: Check, *, state: SendState, error: str = "", **values: Any) -> SendState | None:
    """Write how an attempt has ended. What the check run is to say may have changed meanwhile: then that is sent,
    whatever became of this. Returns its new state; None where it was taken back."""
    now = clock.now()
    newest = Check.objects.select_for_update().values_list("revision", flat=True).get(pk=check.pk)
    if newest != check.revision and state in OVER:
        state = SendState.PENDING
        values |= {"attempts": 0, "next_attempt_at": clock.real(now)}
        wake(CHECK_PENDING, [str(check.pk)], now=now)
    if not outbox.finish(check, now=now, error=error, state=state, **values):
        log.warning("check %s was taken back while it was sent", check.pk)
        return None
    return state


def _publish(check: Check, now: datetime.datetime) -> int:
    """Send what a check run says. Returns GitHub's id of it."""
    upstream, fields = settings.UPSTREAM_REPO, fields_of(check, now)
    needs_new = policy.is_new_run(
        sent_status=check.sent_status, sent_run=check.sent_run, status=check.status, run=check.run
    )
    if needs_new:
        # An earlier attempt without a good end, of this revision or of one before, has left its words.
        made = _made_before(check) if check.attempts > 1 or check.error else None
        if made is None:
            return client().create_check_run(upstream, fields | {"name": check.name, "head_sha": check.head_sha})
    else:
        assert check.github_id is not None
        made = check.github_id
    client().update_check_run(upstream, made, fields)
    return made


def _made_before(check: Check) -> int | None:
    """The check run that an earlier attempt made, if its worker died before it could say so."""
    found = client().check_runs_named(settings.UPSTREAM_REPO, check.head_sha, check.name)
    ids = [run["id"] for run in found if run["external_id"] == check.external_id and _is_ours(run)]
    return max((number for number in ids if number > (check.github_id or 0)), default=None)


def _is_ours(run: dict[str, Any]) -> bool:
    app = run.get("app") or {}
    return settings.GITHUB_APP_ID in (str(app.get("id")), app.get("client_id"))


def fields_of(check: Check, now: datetime.datetime) -> dict[str, Any]:
    """A check run as GitHub's API takes it, without the name and the commit, which never change."""
    job, place = check.job, reverse("public:pull_request", args=[check.pr_number])
    if job:
        place = reverse("public:job", args=[job.public_id])
    summary = f"{check.summary}\n\n{check.note}" if check.note else check.summary
    fields: dict[str, Any] = {
        "external_id": check.external_id,
        "details_url": settings.BASE_URL + place,
        "status": check.status,
        "output": {"title": check.title, "summary": summary[: policy.MOST_SUMMARY]},
    }
    if job:
        fields["started_at"] = _stamp(job.start_seen_at or job.first_seen_at)
    if check.conclusion:
        ended_at = job.completed_at if job and job.completed_at else now
        fields |= {"conclusion": check.conclusion, "completed_at": _stamp(ended_at)}
    return fields


def _stamp(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@transaction.atomic
def resend_check(*, check: Check, actor: Actor, now: datetime.datetime) -> None:
    """Send a check run that was given up once more. Raises Problem `check_not_given_up` for any other."""
    moment = clock.real(now)
    moved = Check.objects.filter(pk=check.pk, state=SendState.GIVEN_UP).update(
        state=SendState.PENDING, attempts=0, next_attempt_at=moment, changed_at=moment
    )
    if moved != 1:
        state = Check.objects.values_list("state", flat=True).get(pk=check.pk)
        raise Problem("check_not_given_up", f"{check.name} is {SendState(state).label}.")
    wake(CHECK_PENDING, [str(check.pk)], now=now)
    record(
        action=Action.CHECK_RESENT,
        actor=actor,
        subject=Subject("check", str(check.public_id), check.name),
        summary=f"{check.name} is sent to GitHub once more",
        before={"state": SendState.GIVEN_UP.value, "error": check.error},
        after={"state": SendState.PENDING.value},
        now=now,
        is_decision=False,
    )
