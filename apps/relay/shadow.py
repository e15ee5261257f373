"""Shadow mode: what the hub would do, computed and never done, held against what the relay posted and GitHub shows."""

import datetime
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import MD5

from apps.core import rounds
from apps.core.github import CheckRun, GitHubRefused, GitHubUnavailable, client
from apps.platforms.models import Repository
from apps.platforms.policy import PUBLIC_FROM
from apps.platforms.selectors import former_names
from apps.relay import policy, services
from apps.relay.adoption import DifferenceKind as Kind
from apps.relay.checknames import device_of, is_wished, name_of, repository_in, state_of
from apps.relay.enums import Answer, DeliveryState, Flag
from apps.relay.models import Callback, CheckLook, Comparison, Delivery, Difference, Intent, Job, SeenCheck
from apps.relay.selectors import with_superseded

# A job may run for so long before the relay closes it; until then silence says nothing.
ANSWER_DUE = datetime.timedelta(hours=6)
# A check run follows its callback after a moment; one that is looked at earlier may still come.
CHECK_SETTLES = datetime.timedelta(minutes=2)
LOOKED_EVERY = datetime.timedelta(minutes=10)
LOOKED_FOR = COMPARED_FOR = datetime.timedelta(hours=36)
LOOKS_AT_ONCE, COMPARED_AT_ONCE = 30, 200
KEPT_FOR = datetime.timedelta(days=14)

# What no comparison can say, and why. Printed above the differences.
NOT_OBSERVABLE: tuple[tuple[str, str], ...] = (
    ("whether GitHub took the relay's dispatch", "the relay keeps no record; a silent downstream looks the same"),
    ("answers of repositories below L2", "the relay posts no results of them"),
    ("callbacks that the relay refused", "it posts only what it took"),
    ("check runs of a label that was taken away again", "what stays of them depends on the moment it went"),
)


# --- what the hub would do ----------------------------------------------------------------------------------------


@transaction.atomic
def intend(*, delivery_pk: int, now: datetime.datetime) -> int:
    """Remember whom the hub would have sent a delivery to, and send nothing. Returns how many. Once per delivery."""
    moved = Delivery.objects.filter(pk=delivery_pk, state=DeliveryState.RECEIVED).update(state=DeliveryState.INTENDED)
    if moved != 1:
        return 0
    sent_to, _kept_from = services.recipients(Delivery.objects.get(pk=delivery_pk), now=now)
    intents = [Intent(delivery_id=delivery_pk, repository_id=pk, created_at=now) for pk in sent_to]
    Intent.objects.bulk_create(intents)
    Comparison.objects.create(delivery_id=delivery_pk)
    return len(intents)


# --- what GitHub shows --------------------------------------------------------------------------------------------


def look_at_checks(*, now: datetime.datetime) -> int:
    """Ask GitHub which check runs the newest pull request commits show, each every LOOKED_EVERY. Returns how many were
    asked about. GitHub's silence is remembered as such."""
    fresh = CheckLook.objects.filter(sha=OuterRef("head_sha"), looked_at__gt=now - LOOKED_EVERY)
    recent = Delivery.objects.filter(event=policy.PULL_REQUEST, received_at__gt=now - LOOKED_FOR).exclude(head_sha="")
    waiting = recent.filter(~Exists(fresh)).order_by("-received_at").values_list("head_sha", flat=True)
    shas = list(dict.fromkeys(waiting[: LOOKS_AT_ONCE * 10]))[:LOOKS_AT_ONCE]
    for sha in shas:
        try:
            runs, error = client().check_runs(settings.UPSTREAM_REPO, sha), ""
        except (GitHubRefused, GitHubUnavailable) as problem:
            runs, error = [], str(problem)
            rounds.undone(error)
        _keep_look(sha, runs, error, now)
    CheckLook.objects.filter(looked_at__lt=now - KEPT_FOR).delete()
    SeenCheck.objects.filter(started_at__lt=now - KEPT_FOR).delete()
    return len(shas)


@transaction.atomic
def _keep_look(sha: str, runs: list[CheckRun], error: str, now: datetime.datetime) -> None:
    CheckLook.objects.update_or_create(sha=sha, defaults={"looked_at": now, "error": error[:500]})
    if error:
        return
    SeenCheck.objects.filter(sha=sha).delete()
    newest = {(run.app_id, run.name): run for run in sorted(runs, key=lambda run: run.github_id)}
    SeenCheck.objects.bulk_create(
        SeenCheck(
            sha=sha,
            name=run.name,
            app_id=run.app_id,
            app_name=run.app_name[:100],
            app_client_id=run.app_client_id[:100],
            github_id=run.github_id,
            status=run.status[:20],
            conclusion=run.conclusion[:40],
            started_at=run.started_at or now,
        )
        for run in newest.values()
        if run.name.startswith(f"{settings.CHECK_PREFIX}/") and len(run.name) <= 1000
    )


# --- the comparison, pure -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JobSeen:
    """One job as the hub has it, and as it was last posted."""

    workflow: str
    job_name: str
    is_superseded: bool
    state: str
    bucket: str
    posted: str


@dataclass(frozen=True)
class Pair:
    """All that is known of one (delivery, repository). `checks` is name → state; None: there is nothing to hold them
    against, or GitHub has not been asked since the last post; `check_error` says that it could not answer."""

    full_name: str
    is_intended: bool
    is_public: bool
    is_due: bool
    wants_check: bool
    jobs: tuple[JobSeen, ...]
    checks: dict[str, str] | None
    check_error: str = ""


@dataclass(frozen=True)
class Found:
    """One difference. `ours` is what the hub would have, `theirs` what was seen."""

    kind: Kind
    name: str
    ours: str
    theirs: str


def compare(pair: Pair) -> list[Found]:
    """In what the hub and the relay differ about one (delivery, repository)."""
    if not pair.is_public:
        below = Found(Kind.NOT_OBSERVABLE, "results", "dispatched", "the relay posts no results below L2")
        return [below] if pair.is_intended else []
    found = [
        Found(Kind.JOB_DIFFERS, f"{job.workflow} / {job.job_name}", job.state, job.posted)
        for job in pair.jobs
        if job.posted != job.state
    ]
    if pair.is_intended and not pair.jobs and pair.is_due:
        found.append(Found(Kind.NOT_ANSWERED, "", "dispatched", "nothing posted"))
    if pair.jobs and not pair.is_intended:
        found.append(Found(Kind.WITHOUT_INTENT, "", "not dispatched", f"{len(pair.jobs)} jobs posted"))
    if pair.check_error:
        return [*found, Found(Kind.NOT_OBSERVABLE, "check runs", "unknown", pair.check_error[:200])]
    return found if pair.checks is None else found + _compare_checks(pair, pair.checks)


def _compare_checks(pair: Pair, shown: dict[str, str]) -> list[Found]:
    wanted = wanted_checks(pair) if pair.wants_check else {}
    found = []
    for name in sorted(wanted.keys() | shown.keys()):
        ours, theirs = wanted.get(name), shown.get(name)
        if theirs is None:
            found.append(Found(Kind.CHECK_MISSING, name, str(ours), "none"))
        elif ours is None:
            found.append(Found(Kind.CHECK_EXTRA, name, "none", theirs))
        elif ours != theirs:
            found.append(Found(Kind.CHECK_DIFFERS, name, ours, theirs))
    return found


def wanted_checks(pair: Pair) -> dict[str, str]:
    """Name → state of the check runs that the hub would show: of each job its legs that no later attempt supersedes."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for job in pair.jobs:
        if not job.is_superseded:
            by_name[name_of(pair.full_name, job.workflow, job.job_name)].append(job.bucket)
    return {name: state_of(buckets) for name, buckets in by_name.items()}


# --- gathering, and keeping what was found ------------------------------------------------------------------------


def compare_deliveries(*, now: datetime.datetime) -> int:
    """Compare the deliveries that were compared longest ago, COMPARED_AT_ONCE at a time, and keep what differs. Returns
    how many were compared. What is no difference any more goes."""
    due = Comparison.objects.filter(delivery__received_at__gt=now - COMPARED_FOR)
    rows = due.select_related("delivery").order_by(F("compared_at").asc(nulls_first=True), "pk")[:COMPARED_AT_ONCE]
    deliveries = [row.delivery for row in rows]
    found = _found(deliveries, now)
    found |= _strangers(now)
    with transaction.atomic():
        ids = [delivery.delivery_id for delivery in deliveries]
        kept = Difference.objects.filter(delivery_id__in=ids)
        gone = [row.pk for row in kept if (row.delivery_id, row.repository_id, row.kind, row.name) not in found]
        Difference.objects.filter(pk__in=gone).delete()
        Difference.objects.bulk_create(
            [
                Difference(
                    kind=one.kind,
                    delivery_id=delivery_id,
                    repository_id=repository_id,
                    name=one.name,
                    ours=one.ours,
                    theirs=one.theirs,
                    found_at=now,
                )
                for (delivery_id, repository_id, _kind, _name), one in found.items()
            ],
            update_conflicts=True,
            unique_fields=["delivery_id", "repository", "kind", "name"],
            update_fields=["ours", "theirs"],
        )
        Comparison.objects.filter(delivery__in=deliveries).update(compared_at=now)
        Difference.objects.filter(found_at__lt=now - KEPT_FOR).delete()
        Intent.objects.filter(created_at__lt=now - KEPT_FOR).delete()
        Comparison.objects.filter(delivery__received_at__lt=now - KEPT_FOR).delete()
    return len(deliveries)


_Key = tuple[str, int, str, str]


def _found(deliveries: list[Delivery], now: datetime.datetime) -> dict[_Key, Found]:
    repositories = {repository.pk: repository for repository in Repository.objects.all()}
    intended = set(Intent.objects.filter(delivery__in=deliveries).values_list("delivery_id", "repository_id"))
    jobs = _jobs_by_pair(deliveries, repositories)
    looks = {look.sha: look for look in CheckLook.objects.filter(sha__in=[d.head_sha for d in deliveries])}
    shown: dict[str, list[SeenCheck]] = defaultdict(list)
    for seen in SeenCheck.objects.filter(sha__in=list(looks)).order_by("github_id"):
        shown[seen.sha].append(seen)
    newest_of_sha, labelled = _newest_of_sha(deliveries), _labelled(deliveries)
    names = _names_of(repositories.values())
    found: dict[_Key, Found] = {}
    for delivery in deliveries:
        devices = labelled[delivery.head_sha]
        for pk, repository in repositories.items():
            told = jobs.get((delivery.delivery_id, pk), [])
            is_intended = (delivery.pk, pk) in intended
            if not told and not is_intended:
                continue
            wishes = [is_wished(level=repository.level, device=repository.device, devices=some) for some in devices]
            # One commit's checks are those of its newest delivery; a pushed commit has none of ours.
            is_checked = delivery.event == policy.PULL_REQUEST and newest_of_sha[delivery.head_sha] == delivery.pk
            look = looks.get(delivery.head_sha) if is_checked and len(set(wishes)) == 1 else None
            own = [seen for seen in shown[delivery.head_sha] if repository_in(seen.name).lower() in names[pk]]
            checks, error = _checks_for(look, own, told)
            pair = Pair(
                # A commit's check runs keep the name they began with.
                full_name=repository_in(own[0].name) if own else repository.full_name,
                is_intended=is_intended,
                is_public=repository.level >= PUBLIC_FROM or bool(told),
                is_due=now - delivery.received_at > ANSWER_DUE and policy.is_answered(delivery.event, delivery.action),
                wants_check=all(wishes),
                jobs=tuple(_as_seen(job, said) for job, said in told),
                checks=checks,
                check_error=error,
            )
            for one in compare(pair):
                found[delivery.delivery_id, pk, one.kind, one.name] = one
    return found


def _newest_of_sha(deliveries: list[Delivery]) -> dict[str, int]:
    shas = [delivery.head_sha for delivery in deliveries]
    rows = Delivery.objects.filter(head_sha__in=shas, event=policy.PULL_REQUEST, state=DeliveryState.INTENDED)
    return dict(rows.order_by("pk").values_list("head_sha", "pk")) | {"": 0}


def _labelled(deliveries: list[Delivery]) -> dict[str, tuple[set[str], set[str]]]:
    """By commit, the devices that the labels of its pull request name now, and all that they ever named: its newest
    webhook tells, whatever it was about."""
    told = Delivery.objects.filter(event=policy.PULL_REQUEST, head_sha__in={d.head_sha for d in deliveries} - {""})
    found: dict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for delivery in told.exclude(state=DeliveryState.IGNORED).order_by("pk").iterator():
        devices = {device for device in map(device_of, _labels(delivery)) if device}
        found[delivery.head_sha] = (devices, found[delivery.head_sha][1] | devices)
    return found


def _names_of(repositories: Iterable[Repository]) -> dict[int, set[str]]:
    """The names of each repository, present and former, in lower case."""
    by_name = {repository.full_name: repository.pk for repository in repositories}
    found = {pk: {name.lower()} for name, pk in by_name.items()}
    for former, name in former_names().items():
        found[by_name[name]].add(former)
    return found


_Told = tuple[Job, Callback]


def _jobs_by_pair(deliveries: list[Delivery], repositories: Iterable[int]) -> dict[tuple[str, int], list[_Told]]:
    """By (delivery, repository), each job that was posted, with its newest post."""
    digests = [hashlib.md5(d.delivery_id.encode(), usedforsecurity=False).hexdigest() for d in deliveries]
    jobs = Job.objects.alias(digest=MD5("delivery_id")).filter(
        repository__in=list(repositories), digest__in=digests, flags__contains=[Flag.RELAYED]
    )
    found = {job.pk: job for job in with_superseded(jobs)}
    told = Callback.objects.filter(job__in=list(found)).exclude(answer=Answer.LATE).order_by("received_at", "pk")
    newest = {callback.job_id: callback for callback in told}
    pairs: dict[tuple[str, int], list[_Told]] = defaultdict(list)
    for job_pk, callback in newest.items():
        assert job_pk is not None
        job = found[job_pk]
        pairs[job.delivery_id, job.repository_id].append((job, callback))
    return pairs


def _checks_for(look: CheckLook | None, own: list[SeenCheck], told: list[_Told]) -> tuple[dict[str, str] | None, str]:
    """What a repository's check runs say, by name, and why GitHub could not say. None: not asked since the last
    post."""
    if look is None:
        return None, ""
    if look.error:
        return None, look.error
    if any(look.looked_at < callback.received_at + CHECK_SETTLES for _, callback in told):
        return None, ""
    return {seen.name: seen.conclusion or seen.status for seen in own}, ""


def _as_seen(job: Job, said: Callback) -> JobSeen:
    return JobSeen(
        workflow=job.workflow,
        job_name=job.job_name,
        is_superseded=job.is_superseded,  # type: ignore[attr-defined]
        state=job.conclusion or job.status,
        bucket=job.bucket,
        posted=str(said.report.get("conclusion") or said.report.get("status")),
    )


def _labels(delivery: Delivery) -> set[str]:
    body: Any = json.loads(delivery.body) if delivery.body else {}
    request = body.get("pull_request")
    labels = request.get("labels") if isinstance(request, dict) else None
    named = [label.get("name") for label in labels if isinstance(label, dict)] if isinstance(labels, list) else []
    return {name for name in named if isinstance(name, str)}


def _strangers(now: datetime.datetime) -> dict[_Key, Found]:
    """Jobs that were posted about deliveries that never came here."""
    known = Delivery.objects.filter(delivery_id=OuterRef("delivery_id"))
    jobs = Job.objects.filter(
        first_seen_at__gt=now - COMPARED_FOR, flags__contains=[Flag.RELAYED], event_type__in=policy.DISPATCHED_EVENTS
    )
    pairs = jobs.filter(~Exists(known)).values_list("delivery_id", "repository_id").distinct()
    return {
        (delivery_id, pk, Kind.WITHOUT_INTENT.value, ""): Found(
            Kind.WITHOUT_INTENT, "", "its webhook never came here", "jobs posted"
        )
        for delivery_id, pk in pairs
    }
