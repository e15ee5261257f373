"""`/policy/flaky/` and its API: another set of rules, seen before it holds."""

import datetime
from dataclasses import asdict
from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.core.clock import now
from apps.platforms.models import Repository
from apps.quarantine.models import RuleVersion
from apps.quarantine.policy import HUB, UPSTREAM
from apps.quarantine.rules import in_force
from apps.results.models import Test
from tests.factories.listing import listed, user
from tests.factories.pages import Page, problem
from tests.factories.tests import catalogued
from tests.quarantine.test_api import post
from tests.quarantine.test_flakes_page import flaked
from tests.quarantine.test_pages import signed_in
from tests.quarantine.test_services import proposed

pytestmark = pytest.mark.django_db
URL, API = "/policy/flaky/", "/api/v1/flaky-rules/"


def fields(**changed: Any) -> dict[str, Any]:
    """The form as a browser sends it: a box that is not ticked is left out."""
    values = asdict(HUB) | {name: value for name, value in changed.items() if name in asdict(HUB)}
    more = {name: value for name, value in changed.items() if name not in values}
    return {f"rule_{name}": value for name, value in values.items() if value is not False} | more


def seal_of(answer: Any) -> str:
    return answer.context["form"]["seen"].value()


def evidence() -> tuple[Repository, Test, Test]:
    """One test that the hub's rules flag, and one that flaked in one run alone."""
    kestrel = listed({"kestrel/torch": 2})["kestrel/torch"]
    often, once = catalogued("test_often"), catalogued("test_once")
    for test in (often, often, once):
        flaked(kestrel, test)
    return kestrel, often, once


NAMES = {"often": "test_often test_x · TestX", "once": "test_once test_x · TestX"}


def test_a_change_is_seen_before_it_holds() -> None:
    kestrel, _, _ = evidence()
    client = signed_in(user(Role.MAINTAINER))
    looser = fields(enter_runs=1, enter_jobs=1, enter_commits=1)
    seen = client.post(URL, looser | {"act": "preview"})
    shown = Page(seen)
    assert shown.tables["changed"] == [
        ("enter_jobs", "different jobs in which it flaked, at least", "2", "1"),
        ("enter_runs", "different runs, at least", "2", "1"),
        ("enter_commits", "different commits, at least", "2", "1"),
    ]
    assert shown.tables["flagged"] == [(f"{kestrel.platform.name} default", NAMES["once"], "none", "1")]
    assert RuleVersion.objects.count() == 0
    said = looser | {"act": "put", "seen": seal_of(seen), "reason": "they <hide>"}
    answer = client.post(URL, said)
    assert (answer.status_code, answer["Location"]) == (302, "/policy/#flaky-versions")
    made = RuleVersion.objects.get()
    assert (in_force(now()).enter_runs, made.reason, made.values) == (
        1,
        "they <hide>",
        asdict(HUB) | {"enter_jobs": 1, "enter_runs": 1, "enter_commits": 1},
    )


def test_what_would_not_be_flagged_any_more_stands_apart() -> None:
    kestrel, often, _ = evidence()
    proposed(kestrel.platform, often)
    seen = Page(signed_in(user(Role.MAINTAINER)).post(URL, fields(enter_runs=3) | {"act": "preview"}))
    name = f"{NAMES['often']} stands in a quarantine"
    assert seen.tables["flagged"] == [(f"{kestrel.platform.name} default", "none", name, "0")]


def test_only_what_was_looked_at_is_put_in_force() -> None:
    client = signed_in(user(Role.MAINTAINER))
    seal = seal_of(client.post(URL, fields(enter_runs=3) | {"act": "preview"}))
    for said in (fields(enter_runs=4, seen=seal), fields(enter_runs=3), fields(enter_runs=3, seen="no such seal")):
        answer = client.post(URL, said | {"act": "put", "reason": "because"})
        assert "This is not what was previewed" in Page(answer).text
    assert RuleVersion.objects.count() == 0


def test_where_the_rules_changed_meanwhile_it_is_looked_at_again() -> None:
    client, other = signed_in(user(Role.MAINTAINER)), user(Role.MAINTAINER)
    seal = seal_of(client.post(URL, fields(enter_runs=3) | {"act": "preview"}))
    assert post(f"{API}change/", other, values={"enter_jobs": 5}, reason="first").status_code == 200
    answer = client.post(URL, fields(enter_runs=3, seen=seal) | {"act": "put", "reason": "second"})
    shown = Page(answer)
    assert "This is not what was previewed" in shown.text
    assert [row[0] for row in shown.tables["changed"]] == ["enter_jobs", "enter_runs"]
    assert RuleVersion.objects.count() == 1


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"newest": 400}, "newest: 400 h is longer than the window of 336 h."),
        ({"cap_share": 2}, "cap_share: saw 2.0, send a share of 0 to 1."),
        ({"enter_jobs": -1}, "Ensure this value is greater than or equal to 0."),
        ({"window": "1000000000"}, "Ensure this value is less than or equal to 100000."),
        ({"window": "nan"}, "Enter a whole number."),
        ({"cap_share": "nan"}, "Enter a number."),
        ({"from_at": "2020-01-01T00:00"}, "2020-01-01 00:00 has passed, name a later moment."),
        ({"from_at": "tomorrow"}, "Write a time as 2026-11-30T14:30, UTC."),
    ],
)
def test_what_contradicts_itself_is_said_at_its_field(changed: dict[str, Any], told: str) -> None:
    answer = signed_in(user(Role.MAINTAINER)).post(URL, fields(**changed) | {"act": "preview"})
    (name,) = changed
    field = name if name == "from_at" else f"rule_{name}"
    assert answer.context["form"].errors == {field: [told]}
    assert told in Page(answer).text


def test_a_set_that_holds_already_is_no_change() -> None:
    client = signed_in(user(Role.MAINTAINER))
    seen = client.post(URL, fields() | {"act": "preview"})
    assert "Nothing changes" in Page(seen).text
    answer = client.post(URL, fields(seen=seal_of(seen)) | {"act": "put", "reason": "none"})
    assert "values: this is the set that holds then already, change a rule." in Page(answer).text
    assert RuleVersion.objects.count() == 0


def test_the_form_begins_with_the_set_that_is_asked_for() -> None:
    client = signed_in(user(Role.MAINTAINER))
    starts = {}
    for name in ("in_force", "hub", "upstream"):
        form = client.get(URL, {"set": name}).context["form"]
        starts[name] = {rule: field.initial for rule, field in form.rule_fields.items()}
    assert starts == {"in_force": asdict(HUB), "hub": asdict(HUB), "upstream": asdict(UPSTREAM)}
    assert client.get(URL, {"set": "mine"}).status_code == 404
    assert client.post(URL, fields() | {"act": "forget"}).status_code == 404


def test_the_api_previews_and_changes_the_rules_that_are_named() -> None:
    kestrel, _, once = evidence()
    maintainer, later = user(Role.MAINTAINER), now() + datetime.timedelta(days=1)
    loose = {"enter_jobs": 1, "enter_runs": 1, "enter_commits": 1}
    assert post(f"{API}preview/", maintainer, values=loose).json() == {
        "changed": {name: {"before": 2, "after": 1} for name in loose},
        "results": [
            {
                "platform": kestrel.platform.slug,
                "variant": "default",
                "flagged": [
                    {"id": once.pk, "file": "test_x", "class_name": "TestX", "name": "test_once", "is_standing": False}
                ],
                "unflagged": [],
                "both": 1,
            }
        ],
    }
    body = {"values": loose, "reason": "they hide", "from_at": later.isoformat()}
    made = post(f"{API}change/", maintainer, **body)
    version = {
        "values": asdict(HUB) | loose,
        "shipped": "",
        "from_at": later.isoformat().replace("+00:00", "Z"),
        "reason": "they hide",
        "by": maintainer.username,
        "created_at": made.json()["created_at"],
    }
    assert (made.status_code, made.json()) == (200, version)
    assert Client().get(API).json() == {
        "in_force": asdict(HUB),
        "upstream": asdict(UPSTREAM),
        "next": None,
        "previous": None,
        "results": [version],
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"values": {"enter_job": 1}}, "enter_job"),
        ({"values": {"enter_jobs": "1"}}, "enter_jobs"),
        ({"values": {"enter_jobs": [1]}}, "enter_jobs"),
        ({"values": {"window": 10**400}}, "window"),
        ({"values": {"window": 100_001}}, "window"),
        ({"values": {"only_main": 1}}, "only_main"),
        ({"values": [1]}, "values"),
        ({}, "values"),
        ({"values": {"enter_jobs": 3}, "from_at": "soon"}, "from_at"),
    ],
)
def test_the_api_names_what_is_wrong(body: dict[str, Any], field: str) -> None:
    maintainer = user(Role.MAINTAINER)
    for verb in ("preview", "change"):
        status, kind, said = problem(post(f"{API}{verb}/", maintainer, **{"reason": "because"} | body))
        assert (status, kind, said["code"], said["field"]) == (400, "application/problem+json", "malformed", field)


def test_nobody_else_changes_or_previews_rules() -> None:
    stranger, before = user(), Event.objects.count()
    answers = [
        signed_in(stranger).get(URL).status_code,
        signed_in(stranger).post(URL, fields(enter_runs=3) | {"act": "put", "reason": "x"}).status_code,
    ]
    answers += [post(f"{API}{verb}/", stranger, values={}, reason="x").status_code for verb in ("preview", "change")]
    assert (answers, RuleVersion.objects.count(), Event.objects.count()) == ([403] * 4, 0, before + 2)  # their tokens
