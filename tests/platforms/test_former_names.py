"""A repository that is called otherwise now, while upstream's file still has its former name."""

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.core.clock import now
from apps.platforms.allowlist import parse
from apps.platforms.models import AllowlistAlarm, NameChange, Repository
from apps.platforms.services import change_level
from tests.factories.listing import TESTS, user
from tests.factories.upstream import PATH, Upstream

pytestmark = pytest.mark.django_db
LISTED = "L3:\n  npu:\n    acme/one: [bob]\n    acme/two: [eve]\n    acme/three: [zoe]\n"


def renamed(old: str, new: str) -> Repository:
    repository = Repository.objects.get(full_name=old)
    NameChange.objects.create(repository=repository, old_name=old, new_name=new, seen_at=now(), confirmed_at=now())
    Repository.objects.filter(pk=repository.pk).update(full_name=new)
    repository.refresh_from_db()
    return repository


def names() -> list[tuple[str, int]]:
    return list(Repository.objects.order_by("pk").values_list("full_name", "level"))


def test_the_file_is_taken_as_it_was_and_nobody_is_gone(upstream: Upstream) -> None:
    upstream.says(LISTED)
    for old in ("one", "two", "three"):
        renamed(f"acme/{old}", f"zenith/{old}")
    upstream.says(LISTED + "    acme/four: [ann]\n")
    assert names() == [("zenith/one", 3), ("zenith/two", 3), ("zenith/three", 3), ("acme/four", 3)]
    assert AllowlistAlarm.objects.count() == 0


def test_a_decision_edits_the_entry_under_the_name_that_the_file_has(upstream: Upstream) -> None:
    upstream.says(LISTED)
    one = renamed("acme/one", "zenith/one")
    change_level(repository=one, level=2, reason="flaky", actor=TESTS, now=now())
    assert upstream.open_pull_requests() == ["opened"]
    text = upstream.held.read(PATH, branch=upstream.held.pulls[0].head).decode()
    assert [(entry.level, entry.full_name) for entry in parse(text).entries] == [
        (2, "acme/one"),
        (3, "acme/two"),
        (3, "acme/three"),
    ]


def test_of_two_former_names_in_one_file_the_first_means_the_repository() -> None:
    former = {"acme/one": "zenith/one", "acme/uno": "zenith/one"}
    read = parse("L1:\n  - acme/one\n  - acme/uno\n").renamed(former)
    assert [entry.full_name for entry in read.entries] == ["zenith/one", "acme/uno"]


def test_an_address_with_a_former_name_leads_to_who_bore_it_last_and_a_present_name_comes_first(
    client: Client, upstream: Upstream
) -> None:
    upstream.says(LISTED)
    one = renamed("acme/one", "zenith/one")
    renamed("acme/two", "acme/one")
    renamed("acme/three", "zenith/three")
    NameChange.objects.create(repository=one, old_name="acme/waits", new_name="zenith/one", seen_at=now())
    client.force_login(user(Role.MAINTAINER))

    def heading(name: str) -> str | int:
        answer = client.get(f"/repositories/ACME/{name}/participation/")
        return answer.context["repository"].full_name if answer.status_code == 200 else answer.status_code

    assert {name: heading(name) for name in ("one", "two", "three", "waits", "x")} == {
        "one": "acme/one",
        "two": "acme/one",
        "three": "zenith/three",
        "waits": 404,
        "x": 404,
    }
