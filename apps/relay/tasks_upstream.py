"""Background tasks about upstream itself: the order of its commits, and the webhooks it sent."""

from celery import shared_task

from apps.core.clock import now
from apps.relay import graph, lookups, missed


def enqueue_graph(keys: list[str]) -> None:
    """Wake-up handler of `graph_pending`."""
    settle_graph.delay()


@shared_task
def settle_graph() -> int:
    """Place pushes and find merge bases that are due."""
    return graph.settle(now=now())


@shared_task
def compare_delivery_log() -> int:
    """Find webhooks that GitHub sent and the hub did not get, and ask for them again. Then excuse what fell silent."""
    found = missed.compare(now=now())
    lookups.excuse(now=now())
    return found
