"""Reads of a hub that is being adopted, for operators."""

from django.db.models import Count, Q, QuerySet

from apps.relay.adoption import ForwardState
from apps.relay.models import Difference, Forward
from apps.relay.observer import REFUSED


def forward_counts() -> list[tuple[str, int]]:
    """How many posts of the relay are in each state, in the states' order."""
    counts = dict(Forward.objects.values_list("state").annotate(Count("pk")))
    return [(state.value, counts[state.value]) for state in ForwardState if counts.get(state.value)]


def forwards_to_look_at() -> QuerySet[Forward]:
    """Posts that the dashboard has not taken, or that the hub refused, newest first. Without their bodies."""
    waiting = Q(state__in=[ForwardState.PENDING, ForwardState.SENDING, ForwardState.GIVEN_UP])
    return Forward.objects.filter(waiting | Q(answer=REFUSED)).defer("body").order_by("-received_at", "-pk")


def difference_counts() -> dict[str, int]:
    """How many differences stand now, by kind."""
    return dict(Difference.objects.values_list("kind").annotate(Count("pk")))


def differences(kind: str) -> QuerySet[Difference]:
    """Differences of a kind ('': of all), newest first."""
    found = Difference.objects.select_related("repository").order_by("-found_at", "-pk")
    return found.filter(kind=kind) if kind else found
