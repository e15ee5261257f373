"""Promotions through the front door: pages and API; and that no other door leads to L3 or L4."""

import ast
import re
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.accounts.services import create_api_token
from apps.core.clock import now
from apps.core.errors import Problem
from apps.levels.models import Approval, Promotion
from apps.levels.promoting import approve, decline, object_to
from apps.platforms.models import Repository
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.pages import Page, problem
from tests.factories.promotions import CARD, maintainer, promotion, proven
from tests.live import ClonedDatabase

ROOT = Path(__file__).parents[2]


def page(made: Promotion) -> str:
    return reverse("levels:promotion", args=[made.public_id])


def api_client(by: User) -> Client:
    token = create_api_token(user=by, note="tests", actor=TESTS, now=now())
    return Client(headers={"authorization": f"Bearer {token}"})


@pytest.mark.django_db
def test_a_member_opens_one_from_the_evaluation_and_a_maintainer_approves_it(client: Client) -> None:
    repository = proven()
    client.force_login(member_of(repository.platform))
    evaluation = client.get("/repositories/zephyr/torch/evaluation/").content.decode()
    assert "Promote to L3…" in evaluation
    opened = client.post("/repositories/zephyr/torch/promote/", {"reason": "a month of green runs", "device": "npu"})
    made = Promotion.objects.get()
    assert (opened.status_code, opened["Location"]) == (302, page(made))
    ada = maintainer()
    client.force_login(ada)
    shown = client.get(page(made)).content.decode()
    assert "0 of 1" in shown
    assert "a month of green runs" in shown
    said = {"act": "approve", "revision": 1, "reason": "it holds"}
    assert client.post(page(made), said).status_code == 302
    assert Approval.objects.get().by == ada
    assert "1 of 1" in client.get(page(made)).content.decode()
    # Again: the page says why not, and nothing is lost.
    again = client.post(page(made), said)
    assert (again.status_code, "You have approved it already." in again.content.decode()) == (200, True)


@pytest.mark.django_db
def test_an_approval_of_what_has_changed_says_what_changed(client: Client) -> None:
    made, bob = promotion(), maintainer()
    object_to(promotion=made, criterion="L3.rise.pass_rate", words="too few", expected_revision=1, by=bob, now=now())
    client.force_login(maintainer())
    answer = client.post(page(made), {"act": "approve", "revision": 1, "reason": "it holds"})
    assert f"{bob.username} objected, citing L3.rise.pass_rate" in answer.content.decode()
    assert not Approval.objects.exists()


@pytest.mark.django_db
def test_who_may_do_what(client: Client) -> None:
    made = promotion()
    member, stranger, ada = made.opened_by, user(), maintainer()
    offered = {
        name: api_client(person).get(reverse("api:promotion", args=[made.public_id])).json()["verbs"]
        for name, person in {"member": member, "stranger": stranger, "maintainer": ada}.items()
    }
    assert offered == {
        "member": ["freeze", "withdraw"],
        "stranger": [],
        "maintainer": ["approve", "object", "decline", "freeze", "withdraw"],
    }
    assert client.get(reverse("api:promotion", args=[made.public_id])).json()["verbs"] == []
    for verb in ("approve", "object", "decline"):
        address = reverse("api:promotion_verb", args=[made.public_id, verb])
        body = {"revision": 1, "reason": "mine", "criterion": "L3.rise.pass_rate", "words": "mine"}
        answer = api_client(member).post(address, body, content_type="application/json")
        assert problem(answer)[2]["code"] == "not_permitted"
        assert client.post(address, body, content_type="application/json").status_code == 401
    client.force_login(stranger)
    assert client.get("/repositories/zephyr/torch/promote/").status_code == 403
    assert client.post(page(made), {"act": "withdraw", "revision": 1, "reason": "no"}).status_code == 200
    assert Promotion.objects.get().is_open


@pytest.mark.django_db
def test_the_api_does_all_of_it(client: Client) -> None:
    repository = proven(level=3)
    by = api_client(member_of(repository.platform))
    address = reverse("api:promote", args=["zephyr", "torch"])
    send = partial(by.post, content_type="application/json")
    assert problem(send(address, {}))[2]["detail"] == "reason: is missing, send it."
    assert problem(send(address, {"reason": "ready"}))[2]["code"] == "not_eligible"
    evidence = [{"measure": CARD.measure, "title": CARD.title, "url": CARD.url}]
    made = send(address, {"reason": "ready", "evidence": evidence}).json()
    assert (made["target"], made["state"], made["form"], made["standing"]) == (
        "L4",
        "open",
        "lazy",
        {"counted": 0, "needed": 2},
    )
    ada, bob = maintainer("Upstream"), maintainer("Elsewhere")
    verb = partial(reverse, "api:promotion_verb")
    objected = api_client(ada).post(
        verb(args=[made["id"], "object"]),
        {"revision": 1, "criterion": "L4.rise.oncalls", "words": "one of them left"},
        content_type="application/json",
    )
    assert (objected.json()["form"], objected.json()["revision"]) == ("explicit", 2)
    for person in (ada, bob):
        said = api_client(person).post(
            verb(args=[made["id"], "approve"]),
            {"revision": 2, "reason": "both answer"},
            content_type="application/json",
        )
        assert said.status_code == 200
    told = client.get(reverse("api:promotion", args=[made["id"]])).json()
    assert (told["state"], told["standing"], told["verbs"]) == ("approved", None, [])
    assert [(one["by"], one["organisation"], one["counts"]) for one in told["approvals"]] == [
        (ada.username, "Upstream", True),
        (bob.username, "Elsewhere", True),
    ]
    assert Repository.objects.get().level == 4
    rows = client.get(reverse("api:promotions"), {"state": "approved", "target": "4"}).json()["results"]
    assert [row["id"] for row in rows] == [made["id"]]
    sheet = client.get(reverse("api:promotions"), {"format": "csv"}).content.decode().splitlines()
    assert (sheet[0].split(",")[:4], len(sheet)) == (["id", "repository", "platform", "target"], 2)
    assert problem(client.get(reverse("api:promotions"), {"target": "9"}))[2]["field"] == "target"


@pytest.mark.django_db
def test_hostile_text_is_shown_and_does_nothing(client: Client) -> None:
    hostile = '<script>alert(1)</script>" onmouseover="x'
    made = promotion(reason=hostile)
    html = client.get(page(made)).content.decode()
    assert "<script>alert(1)" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


@pytest.mark.django_db
@pytest.mark.parametrize("rows", [1, 3])
def test_the_list_asks_the_database_as_often_for_one_as_for_three(
    client: Client, rows: int, django_assert_num_queries: Any
) -> None:
    repository = proven()
    for _ in range(rows):
        made = promotion(repository)
        decline(promotion=made, reason="not yet", expected_revision=1, by=maintainer(), now=now())
    with django_assert_num_queries(2):
        assert len(Page(client.get("/promotions/")).tables["list"]) == rows


@pytest.mark.django_db
def test_no_other_door_leads_to_l3_or_l4(client: Client) -> None:
    """Page, API, tables and command line: none raises a repository there without a bundle and approvals."""
    repository = listed({"zephyr/torch": 2})["zephyr/torch"]
    admin = user(Role.ADMIN)
    for level in ("L3", "L4"):
        client.force_login(admin)
        client.post("/repositories/zephyr/torch/level/", {"level": level[1], "reason": "now", "device": "npu"})
        answer = api_client(admin).post(
            reverse("api:level", args=["zephyr", "torch"]),
            {"level": level, "reason": "now", "device": "npu"},
            content_type="application/json",
        )
        assert problem(answer)[2]["code"] == "level_transition"
    for way in ("change", "delete", "add"):
        address = f"/admin/platforms/repository/{'' if way == 'add' else f'{repository.pk}/'}{way}/"
        assert client.post(address, {"level": "4"}).status_code in (403, 404, 405)
    promoting = client.post("/repositories/zephyr/torch/promote/", {"reason": "now", "device": "npu"})
    assert "Not yet L3" in promoting.content.decode()
    assert Repository.objects.get().level == 2


def test_only_promotions_call_the_service_that_raises_there() -> None:
    """The one way is platforms.services.promote, and the one caller is promoting.py."""
    callers = []
    for path in [*ROOT.glob("apps/**/*.py"), *ROOT.glob("accelhub/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "apps.platforms.services":
                callers += [path.relative_to(ROOT).as_posix() for name in node.names if name.name == "promote"]
    assert callers == ["apps/levels/promoting.py"]
    raising = [
        path.relative_to(ROOT).as_posix()
        for path in ROOT.glob("apps/**/*.py")
        if "/migrations/" not in path.as_posix()
        and re.search(r"Repository\.objects[^\n]*\.update\([^)]*level", path.read_text())
    ]
    assert raising == []


def test_of_two_decisions_at_the_same_moment_one_counts(cloned_database: ClonedDatabase) -> None:
    from tests.governance.test_race import at_once

    ada, bob = maintainer("Upstream"), maintainer("Elsewhere")
    repository = proven()
    for _ in range(3):
        made = promotion(repository)
        no = partial(decline, promotion=made, reason="no", expected_revision=1, by=ada, now=now())
        other = partial(decline, promotion=made, reason="no", expected_revision=1, by=bob, now=now())
        assert at_once(no, other) == ["done", "promotion_stale"]
    made = promotion(repository)
    says_yes = partial(approve, promotion=made, reason="yes", expected_revision=1, by=ada, now=now())
    objects = partial(
        object_to,
        promotion=made,
        criterion="L3.rise.runs",
        words="wait",
        expected_revision=1,
        by=bob,
        now=now(),
    )
    # Either the objection came first and the approval is told, or the approval does not count any more.
    assert at_once(says_yes, objects) in (["done", "done"], ["done", "promotion_stale"])
    from apps.levels.promoting import standing_of

    assert standing_of(Promotion.objects.get(pk=made.pk), now=now()).counted == 0
    assert threading.active_count() < 50
    with pytest.raises(Problem):
        says_yes()
