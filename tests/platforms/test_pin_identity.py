"""Pinning: a name can be taken over, GitHub's numeric ids cannot."""

import datetime

import pytest

from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.github import RepositoryIdentity
from apps.platforms.models import Repository
from apps.platforms.pins import pin_identity
from apps.platforms.selectors import Standing, standing_of
from tests.factories.listing import listed

pytestmark = pytest.mark.django_db
GITHUB_API, FIRST_SIGHT = Repository.PinSource.GITHUB_API, Repository.PinSource.FIRST_SIGHT
TODAY = now()
YESTERDAY = TODAY - datetime.timedelta(days=1)

Pinned = tuple[int | None, int | None, str, datetime.datetime | None]


def pin(
    repository: Repository, github_id: int, owner_id: int, source: Repository.PinSource, at: datetime.datetime = TODAY
) -> bool:
    identity = RepositoryIdentity(repository.full_name, github_id, owner_id)
    return pin_identity(repository_id=repository.pk, identity=identity, source=source, now=at)


def pinned(repository: Repository) -> Pinned:
    repository.refresh_from_db()
    return repository.github_id, repository.github_owner_id, repository.pin_source, repository.pinned_at


def pins_in_log() -> list[tuple[str, dict[str, str], dict[str, str], str, bool]]:
    bodies = [body_of(event) for event in Event.objects.filter(action__contains="pinned").order_by("seq")]
    return [(b["action"], b["before"], b["after"], b["reason"], b["is_decision"]) for b in bodies]


@pytest.fixture
def acme() -> Repository:
    return listed({"acme/torch": 2, "other/torch": 2})["acme/torch"]


@pytest.mark.parametrize(
    ("source", "words"),
    [(GITHUB_API, "asked GitHub"), (FIRST_SIGHT, "first callback, GitHub could not be asked")],
)
def test_the_first_answer_pins(acme: Repository, source: Repository.PinSource, words: str) -> None:
    assert pin(acme, 501, 401, source) is True
    assert pinned(acme) == (501, 401, source, TODAY)
    after = {"github_id": "501", "github_owner_id": "401"}
    assert pins_in_log() == [("repository.identity_pinned", {}, after, words, False)]


@pytest.mark.parametrize("source", [GITHUB_API, FIRST_SIGHT])
def test_what_github_said_is_never_replaced(acme: Repository, source: Repository.PinSource) -> None:
    pin(acme, 501, 401, GITHUB_API, YESTERDAY)
    assert pin(acme, 502, 402, source) is False
    assert pinned(acme) == (501, 401, GITHUB_API, YESTERDAY)
    assert len(pins_in_log()) == 1


def test_a_second_sight_does_not_replace_the_first(acme: Repository) -> None:
    pin(acme, 501, 401, FIRST_SIGHT, YESTERDAY)
    assert pin(acme, 502, 402, FIRST_SIGHT) is False
    assert pinned(acme) == (501, 401, FIRST_SIGHT, YESTERDAY)


def test_github_confirms_what_was_seen_first(acme: Repository) -> None:
    pin(acme, 501, 401, FIRST_SIGHT, YESTERDAY)
    assert pin(acme, 501, 401, GITHUB_API) is True
    assert pinned(acme) == (501, 401, GITHUB_API, TODAY)
    same = {"github_id": "501", "github_owner_id": "401"}
    assert pins_in_log()[1] == ("repository.identity_pinned", same, same, "asked GitHub", False)


def test_github_corrects_what_was_seen_first_and_that_is_public(acme: Repository) -> None:
    pin(acme, 501, 401, FIRST_SIGHT, YESTERDAY)
    assert pin(acme, 502, 401, GITHUB_API) is True
    assert pinned(acme) == (502, 401, GITHUB_API, TODAY)
    before, after = {"github_id": "501", "github_owner_id": "401"}, {"github_id": "502", "github_owner_id": "401"}
    assert pins_in_log()[1] == ("repository.identity_repinned", before, after, "asked GitHub", True)


def test_one_id_is_pinned_to_one_repository(acme: Repository) -> None:
    other = Repository.objects.get(full_name="other/torch")
    pin(acme, 501, 401, GITHUB_API)
    with pytest.raises(Problem) as caught:
        pin(other, 501, 401, GITHUB_API)
    assert (caught.value.code, caught.value.detail) == (
        "identity_replaced",
        "GitHub id 501 is pinned to acme/torch, which is listed: other/torch is another name of it, list it once.",
    )
    assert pinned(other) == (None, None, "", None)


def test_the_pinned_id_stands_for_a_repository_whatever_it_is_called(acme: Repository) -> None:
    other = Repository.objects.get(full_name="other/torch")
    pin(acme, 501, 401, GITHUB_API)
    by_id = Standing(acme.pk, "acme/torch", 2, 501, 401)
    assert {
        "same name": standing_of(github_id=501, full_name="acme/torch"),
        "renamed": standing_of(github_id=501, full_name="acme/new-name"),
        "renamed to a listed name": standing_of(github_id=501, full_name="other/torch"),
        "name taken over": standing_of(github_id=999, full_name="ACME/torch"),
        "not pinned": standing_of(github_id=999, full_name="Other/Torch"),
        "unknown": standing_of(github_id=999, full_name="nobody/torch"),
    } == {
        "same name": by_id,
        "renamed": by_id,
        "renamed to a listed name": by_id,
        "name taken over": by_id,
        "not pinned": Standing(other.pk, "other/torch", 2, None, None),
        "unknown": None,
    }
