"""A dispatch to a repository that was renamed: sent to the same one under its new name, and to nobody else."""

from collections.abc import Callable

import pytest
from django.test import Client

from apps.audit.models import Event
from apps.core import alarms
from apps.core.clock import now
from apps.core.models import Alarm
from apps.platforms.models import Repository, Transfer
from apps.platforms.tasks import pin_repository
from apps.relay import outbox, services
from apps.relay.enums import DispatchState
from apps.relay.models import Delivery, Dispatch
from apps.simulator.standin import GitHubStandIn
from tests.factories.listing import listed
from tests.relay.downstream import PAYLOAD, Downstream, send_webhook

pytestmark = pytest.mark.django_db
KESTREL, RENAMED, MOVED = "kestrel-demo/torch-kestrel", "kestrel-demo/renamed", "osprey-demo/torch-kestrel"


@pytest.fixture
def dispatch(downstream: Callable[..., Downstream], client: Client) -> Dispatch:
    """One pending dispatch to a pinned repository."""
    downstream(KESTREL, repository_id=5001, owner_id=6001)
    listed({KESTREL: 2})
    pin_repository(Repository.objects.get().pk)
    send_webhook(client, PAYLOAD)
    services.fan_out(delivery_pk=Delivery.objects.get().pk, now=now())
    return Dispatch.objects.get()


def send() -> DispatchState | None:
    return outbox.send_dispatch(dispatch_pk=Dispatch.objects.get().pk, now=now(), chance=0)


def row() -> tuple[str, int, str]:
    return Dispatch.objects.values_list("state", "attempts", "error").get()


def reached(github: GitHubStandIn) -> list[str]:
    return [dispatch.repository for dispatch in github.dispatches]


@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("status", [301, 307, 308])
def test_the_same_repository_is_sent_it_under_its_new_name_which_the_hub_takes_over(
    github: GitHubStandIn, status: int
) -> None:
    github.rename_repository(KESTREL, RENAMED)
    github.fail("/dispatches$", status=status, message="Moved")
    assert send() is DispatchState.SENT
    assert (row(), reached(github)) == (("sent", 1, ""), [RENAMED])
    assert Repository.objects.get().full_name == RENAMED
    assert Event.objects.order_by("-seq")[0].action == "repository.renamed"


@pytest.mark.usefixtures("dispatch")
def test_githubs_own_redirect_is_followed(github: GitHubStandIn) -> None:
    github.rename_repository(KESTREL, RENAMED)
    assert send() is DispatchState.SENT
    statuses = [(request.path, request.status) for request in github.requests if request.path.endswith("/dispatches")]
    assert statuses == [(f"/repos/{KESTREL}/dispatches", 307), (f"/repos/{RENAMED}/dispatches", 204)]


@pytest.mark.usefixtures("dispatch")
def test_another_repository_behind_the_name_is_sent_nothing(github: GitHubStandIn) -> None:
    alarms.forget()
    github.replace_repository(KESTREL)
    github.rename_repository(KESTREL, "stranger-demo/torch")
    assert send() is DispatchState.GIVEN_UP
    words = "GitHub answered 307: the name leads to stranger-demo/torch, which is another repository."
    assert (row(), reached(github)) == (("given_up", 1, words), [])
    assert list(Alarm.objects.values_list("kind", flat=True)) == ["identity_replaced"]
    assert Repository.objects.get().full_name == KESTREL


@pytest.mark.usefixtures("dispatch")
def test_a_new_owner_is_sent_nothing_before_somebody_accepts_it(github: GitHubStandIn) -> None:
    github.rename_repository(KESTREL, MOVED)
    assert send() is DispatchState.GIVEN_UP
    words = f"it is {MOVED} now, whose owner nobody has accepted: decide, then send again."
    assert (row(), reached(github)) == (("given_up", 1, f"GitHub answered 307: {words}"), [])
    assert Transfer.objects.get().new_name == MOVED


@pytest.mark.usefixtures("dispatch")
def test_a_new_name_that_is_taken_here_is_left_to_people(github: GitHubStandIn) -> None:
    listed({KESTREL: 2, RENAMED: 2})
    github.rename_repository(KESTREL, RENAMED)
    assert send() is DispatchState.GIVEN_UP
    assert (row()[2].endswith("take one of them off the allowlist."), reached(github)) == (True, [])


@pytest.mark.usefixtures("dispatch")
def test_a_repository_that_was_never_pinned_is_not_followed(github: GitHubStandIn) -> None:
    Repository.objects.update(github_id=None, github_owner_id=None, pin_source="", pinned_at=None)
    github.rename_repository(KESTREL, RENAMED)
    assert send() is DispatchState.GIVEN_UP
    words = "the name is redirected, and the repository is not pinned: check the name."
    assert (row(), reached(github)) == (("given_up", 1, f"GitHub answered 307: {words}"), [])


@pytest.mark.usefixtures("dispatch")
def test_where_github_cannot_say_whose_it_is_the_dispatch_waits(github: GitHubStandIn) -> None:
    github.rename_repository(KESTREL, RENAMED)
    github.fail(f"^/repos/{KESTREL}$", status=503)
    assert send() is DispatchState.PENDING
    assert row() == ("pending", 1, "GitHub answered 503")
    Dispatch.objects.update(next_attempt_at=now())
    assert send() is DispatchState.SENT
    assert reached(github) == [RENAMED]
