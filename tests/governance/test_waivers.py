"""Waivers: narrow, with a reason and an end, never by somebody of the platform's organisation."""

import datetime
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Organisation, User
from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.core.errors import Problem
from apps.governance.evaluation import Verdict
from apps.governance.models import Waiver
from apps.governance.nights import evaluations_of
from apps.governance.waiving import grant_waiver, holding, withdraw_waiver
from apps.platforms.models import Repository
from apps.platforms.services import add_member
from tests.factories.listing import TESTS, listed, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
DAY = datetime.timedelta(days=1)
TENURE = "L3.rise.tenure_days"
PAGE = "/repositories/zephyr/torch/evaluation/"


@pytest.fixture
def zephyr() -> Repository:
    return listed({"zephyr/torch": 2}, now=now() - 3 * DAY)["zephyr/torch"]


@pytest.fixture
def ada() -> User:
    return user(Role.MAINTAINER, username="ada")


def grant(repository: Repository, by: User, **values: Any) -> Waiver:
    given: dict[str, Any] = {"criterion": TENURE, "reason": "in the relay for years", "until_at": now() + 30 * DAY}
    return grant_waiver(repository=repository, by=by, now=now(), **(given | values))


def test_a_waiver_lets_one_criterion_stand_and_is_a_public_decision(zephyr: Repository, ada: User) -> None:
    waiver = grant(zephyr, ada)
    rise = evaluations_of([zephyr], now=now())[zephyr.pk][0]
    tenure = next(one for one in rise.results if one.criterion.key == TENURE)
    until = f"{waiver.until_at:%Y-%m-%d}"
    assert (tenure.verdict, tenure.stands) == (Verdict.NOT_MET, True)
    assert tenure.waiver == f"in the relay for years (until {until})"
    event = Event.objects.get(seq=waiver.event_seq)
    assert (event.action, event.is_decision, event.actor_label) == ("waiver.granted", True, "ada")
    assert body_of(event)["summary"] == f"{TENURE} waived for zephyr/torch until {until}"


def test_it_ends_by_itself_or_by_a_decision(zephyr: Repository, ada: User) -> None:
    waiver = grant(zephyr, ada)
    assert list(holding(now=now())) == [waiver]
    assert not holding(now=waiver.until_at).exists()
    withdraw_waiver(waiver=waiver, reason="no longer true", by=ada, now=now())
    assert not holding(now=now()).exists()
    with pytest.raises(Problem) as refused:
        withdraw_waiver(waiver=waiver, reason="again", by=ada, now=now())
    assert refused.value.code == "waiver_stale"
    assert Event.objects.filter(action="waiver.withdrawn").count() == 1
    grant(zephyr, ada)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"reason": " "}, "reason"),
        ({"criterion": "L3.rise.luck"}, "criterion"),
        ({"criterion": "L4.rise.compatibility_card"}, "criterion"),
        ({"until_at": now() - DAY}, "until_at"),
        ({"until_at": now() + 91 * DAY}, "until_at"),
    ],
)
def test_a_waiver_says_what_why_and_until_when(
    zephyr: Repository, ada: User, values: dict[str, Any], field: str
) -> None:
    with pytest.raises(Problem) as refused:
        grant(zephyr, ada, **values)
    assert (refused.value.code, refused.value.field) == ("malformed", field)
    assert not Waiver.objects.exists()


def test_two_at_once_for_one_criterion_are_refused(zephyr: Repository, ada: User) -> None:
    grant(zephyr, ada)
    with pytest.raises(Problem) as refused:
        grant(zephyr, ada)
    assert refused.value.code == "already_waived"
    assert (Waiver.objects.count(), Event.objects.filter(action="waiver.granted").count()) == (1, 1)


def test_nobody_waives_for_a_platform_of_their_own_organisation(zephyr: Repository) -> None:
    works = Organisation.objects.create(slug="zephyr-works", name="Zephyr Works", created_at=now())
    member = user(username="zoe", organisation=works)
    add_member(platform=zephyr.platform, user=member, actor=TESTS, now=now())
    colleague = user(Role.MAINTAINER, username="yann", organisation=works)
    both = user(Role.MAINTAINER, username="zack")
    add_member(platform=zephyr.platform, user=both, actor=TESTS, now=now())
    for who, says in [(colleague, "is of the organisation of"), (both, "speaks for")]:
        with pytest.raises(Problem, match=says) as refused:
            grant(zephyr, who)
        assert refused.value.code == "recusal"
    assert not Waiver.objects.exists()


def test_maintainers_waive_and_withdraw_on_the_page(zephyr: Repository, ada: User, client: Client) -> None:
    client.force_login(ada)
    until = f"{now() + 10 * DAY:%Y-%m-%dT%H:%M}"
    sent = {"act": "waive", "criterion": TENURE, "reason": "known for years", "until_at": until}
    assert client.post(PAGE, sent).status_code == 302
    waiver = Waiver.objects.get()
    assert (waiver.criterion, f"{waiver.until_at:%Y-%m-%dT%H:%M}") == (TENURE, until)
    assert "known for years" in Page(client.get(PAGE)).text
    answer = client.post(PAGE, sent)
    assert (answer.status_code, "A waiver of" in Page(answer).text) == (200, True)
    client.post(PAGE, {"act": "withdraw", "waiver": str(waiver.public_id), "reason": ""})
    assert Waiver.objects.get().withdrawn_at is None
    client.post(PAGE, {"act": "withdraw", "waiver": str(waiver.public_id), "reason": "over"})
    assert Waiver.objects.get().withdrawn_at is not None
    assert client.post(PAGE, {"act": "withdraw", "waiver": "x", "reason": "over"}).status_code == 404


def test_who_is_no_maintainer_waives_nothing(zephyr: Repository, client: Client) -> None:
    client.force_login(user())
    assert client.post(PAGE, {"act": "waive", "criterion": TENURE, "reason": "x"}).status_code == 403
    assert not Waiver.objects.exists()
