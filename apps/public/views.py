"""Read-only pages that compose several apps. No models, no rules."""

import datetime
import functools
import re
import uuid
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString

from apps.accounts.policy import ROLES
from apps.audit import selectors as audit_selectors
from apps.checks import policy as checks_policy
from apps.checks import selectors as checks_selectors
from apps.checks.carried import CARRIED
from apps.core.access import public
from apps.core.backoff import ASKED_WAIT_MAX_SECONDS, ATTEMPTS_MAX, BACKOFF_SECONDS
from apps.core.clock import now
from apps.core.errors import CODES
from apps.core.permissions import Permission
from apps.core.rendering import live, render_page
from apps.gate import enums as gate_enums
from apps.gate import policy as gate_policy
from apps.gate import services as gate_services
from apps.gate.rows import Question
from apps.gate.selectors import Told, open_trips, overrides_of
from apps.governance import policy as governance_policy
from apps.governance.policy_views import printed
from apps.levels import promotion_policy
from apps.levels.falling_selectors import open_downgrades, open_notices
from apps.platforms.models import Platform
from apps.platforms.policy import LEVELS, PUBLIC_FROM, WINDOW_RULES
from apps.platforms.renames import with_renames
from apps.platforms.selectors import edits_to_show, may_on_platform, open_demotions, platform_or_404, windows_of
from apps.platforms.sync_policy import GUARDS
from apps.policies.selectors import policy_at
from apps.public.selectors import (
    WINDOW_DAYS,
    Place,
    Standing,
    figure_rows,
    heard_of,
    overview_groups,
    place_on_main,
    tiles,
)
from apps.quarantine import policy as quarantine_policy
from apps.quarantine import rule_table
from apps.quarantine import rules as flaky_rules
from apps.relay import buildkite, fields, graph_selectors, identity, limits, missed, modes, nights
from apps.relay import policy as relay_policy
from apps.relay import selectors as relay_selectors
from apps.relay.acknowledge_views import acknowledge_form
from apps.relay.checknames import CONCLUSIONS
from apps.relay.enums import JobStatus
from apps.relay.models import Delivery, Job
from apps.results import figure_table, metrics, report_selectors
from apps.results import selectors as results_selectors
from apps.results.coverage import RULES
from apps.results.formats import limits as upload_limits
from apps.results.quotas import QUOTAS
from apps.results.set_aside import aside_of

JOBS_PAGE = 50
ROUNDS_PAGE = 25
DELIVERIES_SHOWN = 20
PRIVATE_SHOWN = 50
DECISIONS_SHOWN = 5
REPORTS_SHOWN = 10
OVERRIDES_SHOWN = 10
# The parts of a policy's limits that are the gate's and the breaker's.
_SHA = re.compile(r"[0-9a-f]{7,40}")
_INT64 = 2**63

# The platform page's lists of jobs: value of `?view=`, text.
VIEWS = (("pr", "By pull request"), ("commits", "By commit"), ("nightly", "Nightly"), ("all", "All jobs"))
_EVENT_OF_VIEW = {"pr": metrics.PULL_REQUESTS, "commits": metrics.COMMITS}


def _overview_version(request: HttpRequest) -> object:
    # The newest decision, not the newest event: what is not public must not be heard ticking.
    newest = audit_selectors.decisions().values_list("hash", flat=True).first()
    return results_selectors.newest_count_at(), newest


@functools.lru_cache(maxsize=1)
def _field(version: str, minute: datetime.datetime) -> SafeString:
    """The platforms by level, the same for everyone. To draw a hundred takes longer than all else on the page, so it is
    drawn once for what it stands on, and again each minute, for its ages."""
    groups = overview_groups(minute)
    context = {"groups": groups, "tiles": tiles(groups, minute), "window_days": WINDOW_DAYS, "now": minute}
    return render_to_string("public/overview_field.html", context)


@public
@live(_overview_version)
def overview(request: HttpRequest) -> HttpResponse:
    """`/`: platforms by level: pass rate with its rows, 30 days, times, last callback; and the latest decisions."""
    moment = now()
    context = {
        "field": _field(request.live_version, moment.replace(second=0, microsecond=0)),  # type: ignore[attr-defined]
        "window_days": WINDOW_DAYS,
        "outages": missed.outages_since(moment - datetime.timedelta(days=WINDOW_DAYS)),
        "decisions": [
            (event, audit_selectors.body_of(event)) for event in audit_selectors.decisions()[:DECISIONS_SHOWN]
        ],
        "verification": audit_selectors.last_verification(),
        "latest_delivery_at": relay_selectors.latest_delivery_at(),
        "now": moment,
    }
    return render_page(request, "public/overview.html", context)


def _platform_version(request: HttpRequest, slug: str) -> object:
    return relay_selectors.newest_change_of(platform_or_404(slug))


@public
@live(_platform_version)
def platform(request: HttpRequest, slug: str) -> HttpResponse:
    """`/platforms/<slug>/`: figures, jobs (`?view=` pr, commits, nightly, all; `?page=`), standing, contacts, level
    history and decisions; its private callbacks for its members."""
    found, moment = platform_or_404(slug), now()
    private = relay_selectors.private_callbacks(found, request.user)
    repositories = list(with_renames(found.repositories.prefetch_related("level_intervals")))
    decisions = audit_selectors.decisions(
        subject_kind="repository", subject_ids=[str(repository.public_id) for repository in repositories]
    )
    view = request.GET.get("view", "")
    view = view if view in dict(VIEWS) else VIEWS[0][0]
    context = {
        "platform": found,
        "repositories": heard_of(repositories, moment, sees_private=private is not None),
        "standings": [Standing.of(repository, moment) for repository in repositories],
        "intervals": [
            (repository, interval) for repository in repositories for interval in repository.level_intervals.all()
        ],
        "figures": figure_rows(found, moment),
        "aside": aside_of(repositories, days=WINDOW_DAYS, now=moment),
        "window_days": WINDOW_DAYS,
        "outages": missed.outages_since(moment - datetime.timedelta(days=WINDOW_DAYS)),
        "views": VIEWS,
        "view": view,
        "page": _page_of_view(found, view, request.GET.get("page")),
        "reports": list(report_selectors.reports_of_platform(found, request.user)[:REPORTS_SHOWN]),
        "is_public": any(repository.level >= PUBLIC_FROM for repository in repositories),
        "is_private_visible": private is not None,
        "private_callbacks": None if private is None else list(private[:PRIVATE_SHOWN]),
        "decisions": [(event, audit_selectors.body_of(event)) for event in decisions[:DECISIONS_SHOWN]],
        "edits": edits_to_show(now=moment, repository_ids=[repository.pk for repository in repositories]),
        "demotions": open_demotions([repository.pk for repository in repositories]),
        "trips": list(open_trips().filter(repository__in=repositories)),
        "notices": list(open_notices(repositories)),
        "downgrades": list(open_downgrades(repositories)),
        "may_change_level": may_on_platform(request.user, Permission.LEVEL_CHANGE, found),
        "windows": list(windows_of(found, now=moment)),
        "may_choose": may_on_platform(request.user, Permission.PARTICIPATION_CHANGE, found),
        "may_quarantine": may_on_platform(request.user, Permission.QUARANTINE_CHANGE, found),
        "may_declare_calendar": may_on_platform(request.user, Permission.CALENDAR_DECLARE, found),
        "is_member": may_on_platform(request.user, Permission.APPEAL_OPEN, found),
        "may_rename": may_on_platform(request.user, Permission.PLATFORM_RENAME, found),
        "now": moment,
    }
    return render_page(request, "public/platform.html", context)


def _page_of_view(platform: Platform, view: str, number: str | None) -> Page[Any]:
    if event := _EVENT_OF_VIEW.get(view):
        page: Page[Any] = Paginator(relay_selectors.rounds_of_platform(platform, event), ROUNDS_PAGE).get_page(number)
        page.object_list = [relay_selectors.as_round(dispatch) for dispatch in page.object_list]
        return page
    if view == "nightly":
        nightly: Page[Any] = Paginator(nights.night_keys(platform), ROUNDS_PAGE).get_page(number)
        nightly.object_list = nights.nights_of(platform, nightly.object_list)
        return nightly
    jobs = relay_selectors.with_superseded(relay_selectors.jobs_of_platform(platform))
    return Paginator(jobs, JOBS_PAGE).get_page(number)


@public
def pull_request(request: HttpRequest, number: int) -> HttpResponse:
    """`/pr/<number>/`: what every public downstream says of a pull request, its newest commit first."""
    if number >= _INT64:
        raise Http404
    relayed = relay_selectors.relayed_jobs_of_pull_request(number)[:JOBS_PAGE]
    return _side_by_side(
        request, relay_selectors.deliveries_of_pull_request(number), f"Pull request #{number}", relayed
    )


@public
def commit(request: HttpRequest, sha: str) -> HttpResponse:
    """`/commit/<sha>/`: what every public downstream says of a commit. Seven characters or more are enough."""
    sha = sha.lower()
    if not _SHA.fullmatch(sha):
        raise Http404
    nightlies = relay_selectors.undispatched_jobs(sha=sha)[:JOBS_PAGE]
    deliveries, place = relay_selectors.deliveries_of_commit(sha), place_on_main(sha)
    return _side_by_side(request, deliveries, f"Commit {sha[:12]}", nightlies, place)


def _side_by_side(
    request: HttpRequest,
    deliveries: QuerySet[Delivery],
    heading: str,
    nightlies: Iterable[Job] = (),
    place: Place | None = None,
) -> HttpResponse:
    shown, nightlies = list(deliveries[:DELIVERIES_SHOWN]), list(nightlies)
    if not shown and not nightlies and place is None:
        raise Http404
    rounds = relay_selectors.rounds_of_deliveries(shown)
    omissions = relay_selectors.omissions_of_deliveries(shown)
    heads = [(delivery.pr_number, delivery.head_sha) for delivery in shown if delivery.pr_number is not None]
    bases = graph_selectors.bases_of(heads) if heads else {}
    gate = _gate_of(shown)
    shas = {one.head_sha for one in shown} | {night.head_sha for night in nightlies}
    if place:
        shas.add(place.commit.sha)
    context = {
        "heading": heading,
        "title": next((delivery.title for delivery in shown if delivery.title), ""),
        "gate": gate,
        "overrides": list(overrides_of(gate.pr_number)[:OVERRIDES_SHOWN]) if gate and gate.pr_number else [],
        "may_override": request.user.is_authenticated and request.user.may(Permission.OVERRIDE_GRANT),
        "deliveries": [
            (
                delivery,
                rounds.get(delivery.pk, []),
                omissions.get(delivery.pk, []),
                bases.get((delivery.pr_number, delivery.head_sha)),
            )
            for delivery in shown
        ],
        "checks": list(checks_selectors.checks_of_commits(delivery.head_sha for delivery in shown)),
        "nightlies": nightlies,
        "reports": list(report_selectors.reports_of_commits(shas, request.user)[:REPORTS_SHOWN]),
        "place": place,
        "now": now(),
    }
    return render_page(request, "public/side_by_side.html", context)


def _gate_of(shown: list[Delivery]) -> Told | None:
    """What the gate says of the newest commit that is shown."""
    newest = next((delivery for delivery in shown if delivery.head_sha), None)
    return gate_services.ask(Question(newest.head_sha, newest.pr_number, now())) if newest else None


@public
def job(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/jobs/<id>/`: one job: its state and how far each figure can be trusted, both ends' times, the callbacks."""
    found = relay_selectors.job_or_404(public_id)
    acknowledgements = list(found.acknowledgements.all()) if found.bucket in relay_policy.RED else []
    context = {
        "job": found,
        "trust": found.trust,
        "callbacks": list(relay_selectors.callbacks_of(found)),
        "check": checks_selectors.check_of(found),
        "acknowledgements": acknowledgements,
        "acknowledge_form": acknowledge_form(found, request.user, acknowledgements),
        "is_appealable": found.event_type == metrics.PULL_REQUESTS
        and found.status == JobStatus.COMPLETED
        and may_on_platform(request.user, Permission.APPEAL_OPEN, found.repository.platform),
        "reports": list(report_selectors.reports_of_job(found, request.user)[:REPORTS_SHOWN]),
        "now": now(),
    }
    return render(request, "public/job.html", context)


@public
def first_callback(request: HttpRequest) -> HttpResponse:
    """`/docs/first-callback/`: from being listed to the first callback, with this hub's own address and audience."""
    url = settings.BASE_URL + reverse("relay:callback")
    context = {"callback_url": url, "audience": settings.OIDC_AUDIENCE}
    return render(request, "public/first_callback.html", context)


@public
def metrics_table(request: HttpRequest) -> HttpResponse:
    """`/policy/metrics/`: what every figure is, printed from the table that is computed by."""
    context = {"metrics": figure_table.METRICS, "kinds": figure_table.KINDS}
    return render(request, "public/metrics.html", context)


@public
def policy(request: HttpRequest) -> HttpResponse:
    """`/policy/`: every rule the hub applies, printed from the tables that it reads."""
    moment = now()
    in_force = policy_at(moment)
    context = {
        "levels": LEVELS,
        "guards": GUARDS,
        "roles": ROLES,
        "criteria": governance_policy.CRITERIA,
        "policy_number": in_force.number,
        "policy_rows": printed(in_force),
        "moves": governance_policy.MOVES,
        "next_actor": governance_policy.NEXT_ACTOR,
        "submissions_per_day": governance_policy.SUBMISSIONS_PER_DAY,
        "promotion_rules": promotion_policy.RULES.values(),
        "modes": modes.MODES,
        "mode": modes.current(),
        "window_rules": WINDOW_RULES,
        "participation_rules": relay_policy.PARTICIPATION,
        "backoff": BACKOFF_SECONDS,
        "asked_wait_max": ASKED_WAIT_MAX_SECONDS,
        "attempts_max": ATTEMPTS_MAX,
        "webhook_rules": (*relay_policy.WEBHOOK_RULES, *relay_policy.CHECK_RULES),
        "matrix": relay_policy.MATRIX,
        "buckets": relay_policy.BUCKETS,
        "check_rules": checks_policy.RULES,
        "conclusions": CONCLUSIONS,
        "neutral_ends": checks_policy.NEUTRAL_ENDS,
        "fields": fields.FIELDS,
        "claims": identity.CLAIMS,
        "pipeline_claims": buildkite.CLAIMS,
        "callbacks_per_minute": limits.CALLBACKS_PER_MINUTE,
        "codes": CODES,
        "metrics": figure_table.METRICS,
        "coverage_rules": RULES,
        "quotas": QUOTAS,
        "upload_limits": list(upload_limits.rows(upload_limits.Limits())),
        "raw_days": settings.RAW_DAYS,
        "flaky_rules": list(rule_table.table(flaky_rules.in_force(moment), quarantine_policy.UPSTREAM)),
        "may_change_rules": request.user.is_authenticated and request.user.may(Permission.RULES_CHANGE),
        "flaky_steps": flaky_rules.history(),
        "gate_rules": gate_policy.RULES,
        "gate_kinds": gate_enums.Kind.choices,
        "carried": CARRIED,
        "quarantine_life": quarantine_policy.TRANSITIONS,
        "now": moment,
    }
    return render(request, "public/policy.html", context)
