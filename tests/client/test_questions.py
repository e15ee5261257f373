"""`accelhub compare`, `findings`, `history`, `search`: what reports answer, of a real hub and of one that is none."""

import json
from typing import Any

import pytest

from apps.accounts.services import actor_of, create_api_token
from apps.core.clock import now
from apps.results import catalogue
from apps.results.models import Report, Test
from apps.results.public_names import publish
from tests.client.recorder import REPORT_ID, Client, Recorder, Says, client_in
from tests.factories.listing import member_of
from tests.live import Hub
from tests.results.conftest import Reporting, reporting
from tests.results.reporter import ended, reported

__all__ = ["reporting"]

KESTREL, FALCON = "kestrel/torch", "falcon/torch"
SHA = "ab" * 20


@pytest.fixture
def pair(hub: Hub, reporting: Reporting) -> tuple[Report, Report]:
    """Two runs of one repository, of which the later is the worse, and another platform at its commit."""
    made = reporting({KESTREL: 2, FALCON: 2})
    before = reported(made[KESTREL], ended("test_a", "passed"), ended("test_b", "failed"), ended("test_c", "passed"))
    reported(made[FALCON], ended("test_a", "failed", "boom"), head_sha=SHA)
    red = (ended("test_a", "failed", "boom"), ended("test_c", "failed", "bang"))
    return before, reported(made[KESTREL], *red, ended("test_b", "passed"), head_sha=SHA)


@pytest.fixture
def asked(tmp_path: Any, hub: Hub) -> Client:
    return client_in(tmp_path, hub.url)


def test_what_changed(pair: tuple[Report, Report], asked: Client) -> None:
    before, head = pair
    ended = asked("compare", "previous", head.public_id)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert [line.rsplit(", ", 1)[1] for line in lines[:2]] == [str(before.public_id), str(head.public_id)]
    assert lines[2:] == [
        "3 tests in either, variant default: newly red 2, fixed 1",
        "change     before  after   test                     message",
        "newly_red  passed  failed  test_foo TestFoo test_a  boom",
        "newly_red  passed  failed  test_foo TestFoo test_c  bang",
        "fixed      failed  passed  test_foo TestFoo test_b",
    ]
    assert asked("compare", before.public_id, head.public_id).out == ended.out
    assert asked("compare", "previous", head.public_id, "--fail-on", "newly_red").code == 8
    assert asked("compare", "previous", head.public_id, "--fail-on", "newly_flaky").code == 0
    one = asked("compare", "previous", head.public_id, "--change", "newly_red", "--limit", "1", "--json")
    body = json.loads(one.out)
    assert [row["test"]["name"] for row in body["results"]] == ["test_a"]
    assert (body["has_more"], body["counts"]["newly_red"], body["head"]["id"]) == (True, 2, str(head.public_id))
    refused = asked("compare", "previous", before.public_id)
    assert (refused.code, refused.out) == (3, "")
    assert "seen: base: none: this is the first of its variant." in refused.err
    unknown = asked("compare", "previous", head.public_id, "--fail-on", "worse")
    assert unknown.code == 2
    assert "--fail-on worse: is no change. They are newly_red, still_red" in unknown.err


def test_is_it_me_or_upstream(pair: tuple[Report, Report], asked: Client, hub: Hub) -> None:
    _, head = pair
    slug = Report.objects.get(repository__full_name=FALCON).platform.slug
    ended = asked("findings", f"{hub.url}/reports/{head.public_id}/findings/")
    assert ended.code == 0, ended.err
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines == [
        "looked for in 1 other reports of the commit and 0 of the base "
        "(unknown: where this commit left main is not known)",
        "verdict outcome test elsewhere message",
        f"elsewhere failed test_foo TestFoo test_a {slug} at the commit: failed boom",
        "here failed test_foo TestFoo test_c nowhere bang",
    ]
    assert asked("findings", head.public_id, "--outcome", "lost").out.splitlines() == [ended.out.splitlines()[0]]


def test_a_test_is_found_and_has_a_history(pair: tuple[Report, Report], asked: Client, hub: Hub) -> None:
    publish(reports=9)
    catalogue.fill_search(steps=1)
    number = Test.objects.get(name="test_b").pk
    found = asked("search", "TestFoo", "test_b")
    assert (found.code, [line.split() for line in found.out.splitlines()]) == (
        0,
        [["number", "test"], [str(number), "test_foo", "TestFoo", "test_b"]],
    )
    ended = asked("history", number)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[:2] == [
        "test_foo TestFoo test_b",
        "variant default (there are: default), in the newest 3 reports",
    ]
    assert [line.split()[2:] for line in lines[3:]] == [
        [SHA[:12], "passed", "1", "0.100"],
        ["unknown", "failed", "1", "0.100", "no"],
    ]
    assert asked("history", f"{hub.url}/tests/{number}/?variant=x").out == ended.out
    assert asked("history", number, "--variant", "slow").code == 0


def test_below_l2_members_ask_with_their_token(hub: Hub, reporting: Reporting, asked: Client) -> None:
    private = reported(reporting({KESTREL: 1})[KESTREL], ended("test_a", "failed", "mine"))
    refused = asked("findings", private.public_id)
    assert refused.code == 3
    assert "set ACCELHUB_API_TOKEN" in refused.err
    member = member_of(private.platform)
    token = create_api_token(user=member, note="ci", actor=actor_of(member), now=now())
    shown = asked("findings", private.public_id, env={"ACCELHUB_API_TOKEN": token})
    assert (shown.code, "mine" in shown.out) == (0, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "previous", "no-id"),
        ("history", "test_a"),
        ("search", "TestFoo", "--limit", "0"),
        ("compare", f"https://elsewhere.example/reports/{REPORT_ID}/", REPORT_ID),
    ],
)
def test_what_cannot_be_asked_is_said_before_anybody_is(
    cli: Client, recorder: Recorder, arguments: tuple[str, ...]
) -> None:
    assert (cli(*arguments).code, recorder.asked) == (2, [])


def test_pages_are_followed_at_the_hub_that_was_asked(cli: Client, recorder: Recorder) -> None:
    def page(name: str, following: Any) -> Says:
        return Says(200, {"results": [{"id": 1, "name": name}], "next": following})

    recorder.answers = [page("one", "https://elsewhere.example/api/v1/tests/?cursor=WzFd&q=evil"), page("two", None)]
    ended = cli("search", "test", "--limit", "150")
    assert (ended.code, ended.out) == (0, "number  test\n1       one\n1       two\n")
    assert [asked.path for asked in recorder.asked] == [
        "/api/v1/tests/?q=test&limit=100",
        "/api/v1/tests/?q=test&cursor=WzFd&limit=100",
    ]


@pytest.mark.parametrize("body", [{}, {"results": 7}, [1], {"results": [1, {"test": [], "elsewhere": [3]}], "next": 7}])
@pytest.mark.parametrize("command", [("compare", "base", REPORT_ID), ("findings", REPORT_ID), ("history", "7")])
def test_an_answer_that_is_none_of_a_hub_is_an_error_or_shown_as_it_is(
    cli: Client, recorder: Recorder, body: Any, command: tuple[str, ...]
) -> None:
    recorder.answers = [Says(200, body)]
    ended = cli(*command)
    assert ended.code == (0 if isinstance(body, dict) and isinstance(body.get("results"), list) else 5)
    assert "Traceback" not in ended.err


def test_what_a_hub_answers_cannot_give_orders_to_terminal_or_ci(cli: Client, recorder: Recorder) -> None:
    evil = "\n::set-env name=PATH::/evil\x1b[2J\u202e##[error]"
    row = {"verdict": evil, "outcome": evil, "test": {"name": evil}, "message": evil, "elsewhere": [{"platform": evil}]}
    recorder.answers = [Says(200, {"results": [row], "looked_at": {"commit": evil, "base_is": evil}})]
    table, whole = cli("findings", REPORT_ID), cli("findings", REPORT_ID, "--json")
    for shown in (table, whole):
        assert shown.code == 0
        for sign in ("\x1b", "\u202e", "##["):
            assert sign not in shown.out + shown.err
        assert not any(line.lstrip().startswith("::") for line in shown.out.splitlines())
    assert json.loads(whole.out)["results"] == [row]
