"""Read-only pages that compose several apps. No models, no rules."""

import uuid

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.accounts.policy import ROLES
from apps.audit import selectors as audit_selectors
from apps.core.access import public, requires
from apps.core.clock import now
from apps.core.errors import CODES
from apps.core.permissions import Open, Permission
from apps.platforms.policy import LEVELS
from apps.platforms.selectors import may_on_platform, platform_or_404, platforms_listed
from apps.public.selectors import WINDOW_DAYS, overview_groups
from apps.relay import fields, identity, limits
from apps.relay import policy as relay_policy
from apps.relay import selectors as relay_selectors

JOBS_PAGE = 50
PRIVATE_SHOWN = 50
DECISIONS_SHOWN = 5


@public
def overview(request: HttpRequest) -> HttpResponse:
    """`/`: platforms by level with their jobs of the last 14 days, and the latest decisions."""
    moment = now()
    delivery = relay_selectors.latest_delivery()
    context = {
        "groups": overview_groups(moment),
        "window_days": WINDOW_DAYS,
        "decisions": [
            (event, audit_selectors.body_of(event)) for event in audit_selectors.decisions()[:DECISIONS_SHOWN]
        ],
        "verification": audit_selectors.last_verification(),
        "as_of": delivery and delivery.received_at,
        "now": moment,
    }
    return render(request, "public/overview.html", context)


@public
def platforms(request: HttpRequest) -> HttpResponse:
    """`/platforms/`: every listed platform with its repositories."""
    return render(request, "public/platform_list.html", {"platforms": list(platforms_listed())})


@public
def platform(request: HttpRequest, slug: str) -> HttpResponse:
    """`/platforms/<slug>/`: a platform's standing, contacts, level history and jobs (`?page=`); its private callbacks
    for its members."""
    found = platform_or_404(slug)
    private = relay_selectors.private_callbacks(found, request.user)
    repositories = list(found.repositories.prefetch_related("level_intervals"))
    decisions = audit_selectors.decisions(
        subject_kind="repository", subject_ids=[str(repository.public_id) for repository in repositories]
    )
    context = {
        "platform": found,
        "repositories": repositories,
        "intervals": [
            (repository, interval) for repository in repositories for interval in repository.level_intervals.all()
        ],
        "levels": LEVELS,
        "page": Paginator(relay_selectors.jobs_of_platform(found), JOBS_PAGE).get_page(request.GET.get("page")),
        "is_private_visible": private is not None,
        "private_callbacks": None if private is None else list(private[:PRIVATE_SHOWN]),
        "decisions": [(event, audit_selectors.body_of(event)) for event in decisions[:DECISIONS_SHOWN]],
        "may_change_level": may_on_platform(request.user, Permission.LEVEL_CHANGE, found),
        "may_rename": may_on_platform(request.user, Permission.PLATFORM_RENAME, found),
        "now": now(),
    }
    return render(request, "public/platform.html", context)


@public
def job(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/jobs/<id>/`: one job: its state and how far each figure can be trusted, both ends' times, the callbacks."""
    found = relay_selectors.job_or_404(public_id)
    context = {
        "job": found,
        "trust": relay_policy.trust_of(found.bucket),
        "callbacks": list(relay_selectors.callbacks_of(found)),
        "now": now(),
    }
    return render(request, "public/job.html", context)


@requires(Open.SIGNED_IN)
def rejections(request: HttpRequest) -> HttpResponse:
    """`/rejections/`: refused callbacks, counted: all for operators, their platforms' for vendor members."""
    page = Paginator(relay_selectors.rejections_for(request.user), JOBS_PAGE).get_page(request.GET.get("page"))
    return render(request, "public/rejection_list.html", {"page": page, "now": now()})


@public
def policy(request: HttpRequest) -> HttpResponse:
    """`/policy/`: every rule the hub applies, printed from the tables that it reads."""
    context = {
        "levels": LEVELS,
        "roles": ROLES,
        "webhook_rules": relay_policy.WEBHOOK_RULES,
        "matrix": relay_policy.MATRIX,
        "buckets": relay_policy.BUCKETS,
        "fields": fields.FIELDS,
        "claims": identity.CLAIMS,
        "callbacks_per_minute": limits.CALLBACKS_PER_MINUTE,
        "codes": CODES,
    }
    return render(request, "public/policy.html", context)
