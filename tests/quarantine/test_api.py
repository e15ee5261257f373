"""`/api/v1/quarantines/`: the list, one of them, and the verbs with a person's token."""

from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.accounts.policy import Role
from apps.accounts.services import create_api_token
from apps.audit.models import Event
from apps.core.clock import now
from apps.quarantine.models import Quarantine
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.pages import problem
from tests.factories.tests import catalogued
from tests.quarantine.test_services import in_force, platform, proposed

pytestmark = pytest.mark.django_db
LIST = "/api/v1/quarantines/"


def token(who: Any) -> dict[str, str]:
    made = create_api_token(user=who, note="ci", actor=TESTS, now=now())
    return {"Authorization": f"Bearer {made}"}


def post(path: str, who: Any, **body: Any) -> Any:
    headers = token(who) if who else {}
    return Client().post(path, body, content_type="application/json", headers=headers)


def stamp(moment: Any) -> str | None:
    return moment.isoformat().replace("+00:00", "Z") if moment else None


def test_one_is_told_whole() -> None:
    kestrel, test = platform(), catalogued("test_a")
    made = in_force(kestrel, test, at=now())
    assert Client().get(f"{LIST}{made.public_id}/").json() == {
        "id": str(made.public_id),
        "platform": kestrel.slug,
        "said": "",
        "variant": "default",
        "pattern": "",
        "tests": 1,
        "state": "in_force",
        "proposed_by": "vendor",
        "reason_class": "timing",
        "reason": "it races",
        "owner": "ada",
        "issue_url": "",
        "proposed_at": stamp(made.proposed_at),
        "effective_from": stamp(made.effective_from),
        "expires_at": stamp(made.expires_at),
        "renewals": 0,
        "fix_sha": "",
        "release_passes": None,
        "release_passes_needed": None,
        "release_days": None,
        "release_days_needed": None,
        "release_missing": None,
        "release_reckoned_at": None,
        "last_run_at": None,
        "ended_at": None,
        "end_reason": "",
        "revision": 2,
        "members": [{"test": test.pk, "file": "test_x", "class_name": "TestX", "name": "test_a"}],
        "verbs": [],
    }


@pytest.mark.parametrize("count", [1, 3])
def test_the_list_costs_the_same_however_long(count: int, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    kestrel = platform()
    made = [proposed(kestrel, catalogued(f"test_{number}"), at=now()) for number in range(count)]
    client = Client()
    with django_assert_num_queries(1):
        rows = client.get(LIST).json()["results"]
    assert [row["id"] for row in rows] == [str(one.public_id) for one in reversed(made)]


def test_pages_filters_and_csv() -> None:
    kestrel = platform()
    first = proposed(kestrel, catalogued("test_a"), at=now(), reason="=1+1")
    second = in_force(kestrel, catalogued("test_b"), at=now())
    page = Client().get(f"{LIST}?limit=1").json()
    assert [row["id"] for row in page["results"]] == [str(second.public_id)]
    assert [row["id"] for row in Client().get(page["next"]).json()["results"]] == [str(first.public_id)]
    narrowed = Client().get(f"{LIST}?state=proposed&platform={kestrel.slug}&owner=ADA").json()["results"]
    assert [row["id"] for row in narrowed] == [str(first.public_id)]
    head, row = Client().get(f"{LIST}?format=csv&state=proposed").content.decode().splitlines()
    assert head.startswith("id,platform,said,variant,pattern,tests,state")
    assert "'=1+1" in row
    assert problem(Client().get(f"{LIST}?state=forever"))[0] == 400


def test_what_is_not_public_is_not_there() -> None:
    kestrel = platform(level=1)
    made = proposed(kestrel, catalogued("test_secret"))
    member, stranger = member_of(kestrel), user()
    for who, expected in ((None, (0, 404)), (stranger, (0, 404)), (member, (1, 200))):
        headers = token(who) if who else {}
        rows = Client().get(LIST, headers=headers).json()["results"]
        answer = Client().get(f"{LIST}{made.public_id}/", headers=headers)
        assert (len(rows), answer.status_code) == expected


def test_a_member_proposes_and_puts_in_force_and_a_maintainer_releases() -> None:
    kestrel, test = platform(), catalogued("test_a")
    member, maintainer = member_of(kestrel), user(Role.MAINTAINER)
    body = {"tests": [test.pk], "reason_class": "timing", "reason": "it races", "owner": "ada"}
    made = post(f"/api/v1/platforms/{kestrel.slug}/quarantines/", member, **body).json()
    assert (made["state"], made["verbs"]) == ("proposed", ["put_in_force", "decline"])
    path = f"{LIST}{made['id']}/"
    moved = post(f"{path}put_in_force/", member, revision=1).json()
    assert (moved["state"], moved["verbs"]) == ("in_force", ["renew", "propose_release"])
    moved = post(f"{path}propose_release/", member, revision=2, reason="fixed").json()
    refused = problem(post(f"{path}release/", member, revision=3, reason="I say so"))
    assert (refused[0], refused[2]["code"]) == (403, "not_permitted")
    unproven = problem(post(f"{path}release/", maintainer, revision=3, reason="20 passes"))
    assert (unproven[0], unproven[2]["code"], unproven[2]["field"]) == (409, "quarantine_unproven", "unproven")
    released = post(f"{path}release/", maintainer, revision=3, reason="never meant to be", unproven=True)
    assert released.json()["state"] == "released"
    assert [event.action for event in Event.objects.filter(subject_kind="quarantine").order_by("seq")] == [
        "quarantine.proposed",
        "quarantine.put_in_force",
        "quarantine.release_proposed",
        "quarantine.released",
    ]


@pytest.mark.parametrize(
    ("verb", "body", "status", "code", "field"),
    [
        ("decline", {"reason": "x"}, 400, "malformed", "revision"),
        ("decline", {"revision": "one", "reason": "x"}, 400, "malformed", "revision"),
        ("decline", {"revision": 1}, 400, "malformed", "reason"),
        ("decline", {"revision": 9, "reason": "x"}, 409, "quarantine_stale", "revision"),
        ("renew", {"revision": 1, "reason": "x"}, 409, "quarantine_state", None),
        ("put_in_force", {"revision": 1, "expires_at": "soon"}, 400, "malformed", "expires_at"),
        ("forget", {"revision": 1}, 404, "not_found", None),
        ("expire", {"revision": 1, "reason": "x"}, 404, "not_found", None),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(
    verb: str, body: dict[str, Any], status: int, code: str, field: str | None
) -> None:
    kestrel = platform()
    made = proposed(kestrel, catalogued("test_a"))
    before = Quarantine.objects.values().get()
    found = problem(post(f"{LIST}{made.public_id}/{verb}/", member_of(kestrel), **body))
    assert (found[0], found[2]["code"], found[2].get("field")) == (status, code, field)
    assert Quarantine.objects.values().get() == before


def test_strangers_change_nothing_and_are_not_echoed() -> None:
    both = listed({"kestrel/torch": 2, "osprey/torch": 2})
    kestrel = both["kestrel/torch"].platform
    made = proposed(kestrel, catalogued("test_a"))
    others = (None, user(), member_of(both["osprey/torch"].platform))
    for who in others:
        for path in (f"{LIST}{made.public_id}/decline/", f"/api/v1/platforms/{kestrel.slug}/quarantines/"):
            answer = post(path, who, revision=1, reason="look-at-me-4711", tests=["look-at-me-4711"])
            assert answer.status_code == (401 if who is None else 403)
            assert "4711" not in answer.content.decode()
    assert (Quarantine.objects.get().state, Quarantine.objects.count()) == ("proposed", 1)
