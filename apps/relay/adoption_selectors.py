"""Reads of a hub that is being adopted, for operators."""

import datetime
from dataclasses import dataclass

from django.conf import settings
from django.db.models import BooleanField, Case, Count, Q, QuerySet, Value, When
from django.http import Http404

from apps.relay.adoption import ForwardState
from apps.relay.models import Difference, Forward, SeenCheck
from apps.relay.observer import REFUSED
from apps.relay.selectors import is_key
from apps.relay.shadow import LOOKED_EVERY

# Another App that used a check run's name this lately is still at work.
STILL_AT_WORK = datetime.timedelta(hours=2)


def forward_counts() -> list[tuple[str, int]]:
    """How many posts of the relay are in each state, in the states' order."""
    counts = dict(Forward.objects.values_list("state").annotate(Count("pk")))
    return [(state.value, counts[state.value]) for state in ForwardState if counts.get(state.value)]


def forwards_to_look_at() -> QuerySet[Forward]:
    """Posts that the dashboard has not taken, or that the hub refused, newest first. Without their bodies; `has_body`
    says whether one is kept."""
    has_body = Case(When(body=b"", then=Value(False)), default=Value(True), output_field=BooleanField())
    waiting = Q(state__in=[ForwardState.PENDING, ForwardState.SENDING, ForwardState.GIVEN_UP])
    found = Forward.objects.filter(waiting | Q(answer=REFUSED)).annotate(has_body=has_body)
    return found.defer("body").order_by("-received_at", "-pk")


def given_up_forwards() -> QuerySet[Forward]:
    """Those of them that nobody tries again by itself."""
    return forwards_to_look_at().filter(state=ForwardState.GIVEN_UP)


def forward_or_404(key: str) -> Forward:
    """A result for the dashboard by its key, without its body, for those who may send it again."""
    if not is_key(key):
        raise Http404
    try:
        return Forward.objects.defer("body").get(pk=int(key))
    except Forward.DoesNotExist:
        raise Http404 from None


def difference_counts() -> dict[str, int]:
    """How many differences stand now, by kind."""
    return dict(Difference.objects.values_list("kind").annotate(Count("pk")))


def differences(kind: str) -> QuerySet[Difference]:
    """Differences of a kind ('': of all), newest first."""
    found = Difference.objects.select_related("repository").order_by("-found_at", "-pk")
    return found.filter(kind=kind) if kind else found


@dataclass(frozen=True)
class Holder:
    """Another App that holds a check run's name, as `name (id)`, and until when at least."""

    app: str
    until: datetime.datetime


def holder(name: str, sha: str, *, now: datetime.datetime) -> Holder | None:
    """The other App that publishes check runs of this name: on this commit, as the next look may tell otherwise, or on
    any other lately. None where none does."""
    lately = Q(started_at__gt=now - STILL_AT_WORK)
    held = list(_of_others().filter(Q(sha=sha) | lately, name=name).order_by("started_at"))
    if not held:
        return None
    ends = [now + LOOKED_EVERY if seen.sha == sha else seen.started_at + STILL_AT_WORK for seen in held]
    return Holder(f"{held[-1].app_name} ({held[-1].app_id})", max(ends))


def others_at_work(*, now: datetime.datetime) -> list[tuple[str, str]]:
    """(App's name, check's name) of others that publish under our prefix now: what an operator must stop."""
    lately = _of_others().filter(name__startswith=f"{settings.CHECK_PREFIX}/", started_at__gt=now - STILL_AT_WORK)
    return sorted(set(lately.values_list("app_name", "name")))


def _of_others() -> QuerySet[SeenCheck]:
    """Without the hub's own App, which is set up by its number or its client id."""
    own = settings.GITHUB_APP_ID
    return SeenCheck.objects.exclude(Q(app_id=int(own)) if own.isdigit() else Q(app_client_id=own or "no App"))
