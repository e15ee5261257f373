"""`/allowlist/`, and where else pages say that upstream's file decides."""

from typing import Any

import pytest
from django.test import Client, override_settings

from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.audit.services import command_actor
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.platforms.models import AllowlistAlarm, AllowlistEdit, Repository
from apps.platforms.services import change_level
from apps.platforms.sync_policy import PUT_BACK_SHOWN_FOR
from tests.factories.listing import listed, user
from tests.factories.pages import Page
from tests.factories.upstream import Upstream

pytestmark = pytest.mark.django_db
URL = "/allowlist/"

LISTED = "L1:\n  - acme/one: alice\nL2:\n  - acme/two\nL3:\n  npu:\n    acme/three: [bob]\n    acme/four:\n"
SHRUNK = "L1:\n  - acme/one: <b>\nL2:\n  - acme/two\n".replace("<b>", "zoe")


@pytest.fixture
def maintainer(client: Client) -> Client:
    client.force_login(user(Role.MAINTAINER, username="ada"))
    return client


def decided(name: str, level: int) -> Event:
    repository = Repository.objects.get(full_name=name)
    return change_level(repository=repository, level=level, reason="so", actor=command_actor("tests"), now=now())


def test_where_the_hub_decides_it_says_so(maintainer: Client) -> None:
    listed({"acme/one": 1})
    page = Page(maintainer.get(URL))
    assert (page.heading, page.tables) == ("Allowlist", {})
    assert "This hub is the authority: what is decided here is in force at once, 1 repositories are listed" in page.text
    assert "/allowlist.yml" in page.links


def test_without_an_alarm_it_shows_the_copy_in_force(maintainer: Client, upstream: Upstream) -> None:
    sha = upstream.says(LISTED)
    page = Page(maintainer.get(URL))
    assert page.tables == {}
    shown = page.facts["copy"]
    assert (shown["Commit"], list(shown)) == (sha[:12], ["Commit", "Taken", "GitHub last answered"])
    assert shown["Taken"] == shown["GitHub last answered"]
    assert "kept upstream in pytorch/pytorch/.github/allowlist.yml, branch main" in maintainer.get(
        URL
    ).content.decode().replace('<span class="mono">', "").replace("</span>,", ",")
    assert "The hub and the file say the same." in page.text
    assert "alarm" not in page.facts


def test_before_the_first_round_there_is_nothing_to_compare(maintainer: Client, upstream: Upstream) -> None:
    page = Page(maintainer.get(URL))
    assert page.facts["copy"] == {"Commit": "no data", "Taken": "never", "GitHub last answered": "never"}
    assert "The file cannot be compared" in page.text


def test_a_file_that_is_not_taken_is_compared_with_what_is_in_force(maintainer: Client, upstream: Upstream) -> None:
    upstream.says(LISTED)
    sha = upstream.says(SHRUNK + "L4:\n  - new/one\n")
    page = Page(maintainer.get(URL))
    assert page.facts["alarm"] == {
        "Why": "■ much is gone More than 20 % of the entries are gone at once, and more than 2; or more than 1 of "
        "those at L3 and L4.",
        "Seen": "2 of 4 entries are gone: acme/four (L3), acme/three (L3)",
        "Commit": sha[:12],
        "Next": "somebody repairs the file, or a maintainer accepts it as it is",
    }
    both = "nightly, pull_request"
    assert page.tables["drift"] == [
        ("acme/one", "○ changed", f"L1 · alice · {both}", f"L1 · zoe · {both}"),
        ("new/one", "◆ added", "not listed", f"L4 · {both}"),
        ("acme/three", "■ removed", f"L3 npu · bob · {both}", "not listed"),
        ("acme/four", "■ removed", f"L3 npu · {both}", "not listed"),
    ]


@pytest.mark.parametrize("bad", ["", "<html>", "L9:\n"])
def test_a_file_that_is_no_list_cannot_be_compared_or_accepted(
    maintainer: Client, upstream: Upstream, bad: str
) -> None:
    upstream.says(LISTED)
    upstream.says(bad)
    answer = maintainer.get(URL)
    assert Page(answer).facts["alarm"]["Next"] == "somebody repairs the file"
    assert 'name="reason"' not in answer.content.decode()
    alarm = AllowlistAlarm.objects.get()
    refused = maintainer.post(URL, {"alarm": alarm.public_id, "reason": "yes"})
    assert refused.status_code == 409
    assert "This alarm is not open any more, or not one to accept: look again." in refused.content.decode()


def test_a_maintainer_may_say_that_the_file_means_it(maintainer: Client, upstream: Upstream) -> None:
    upstream.says(LISTED)
    sha = upstream.says(SHRUNK)
    alarm = AllowlistAlarm.objects.get()
    answer = maintainer.post(URL, {"alarm": str(alarm.public_id), "reason": " both left "})
    assert (answer.status_code, answer.headers["Location"]) == (302, URL)
    event = Event.objects.get(action="allowlist.file_accepted")
    body = body_of(event)
    assert {name: body[name] for name in ("summary", "reason", "evidence", "is_decision", "subject")} == {
        "summary": f"The allowlist file is to be taken as it is at {sha[:12]}",
        "reason": "both left",
        "evidence": {
            "guard": "shrink",
            "seen": "2 of 4 entries are gone: acme/four (L3), acme/three (L3)",
            "commit": sha,
        },
        "is_decision": True,
        "subject": {
            "kind": "allowlist",
            "id": ".github/allowlist.yml",
            "label": "pytorch/pytorch/.github/allowlist.yml",
        },
    }
    assert body["actor"]["label"] == "ada"
    assert Wakeup.objects.filter(topic="allowlist_sync_wanted").count() == 1
    page = Page(maintainer.get(URL))
    assert page.facts["alarm"]["Next"] == f"Decision #{event.seq}: taken as it is with the next round"
    assert maintainer.post(URL, {"alarm": str(alarm.public_id), "reason": "again"}).status_code == 409
    upstream.round()
    assert Repository.objects.filter(level__gt=0).count() == 2
    assert not AllowlistAlarm.objects.filter(cleared_at=None).exists()


def test_what_is_accepted_is_one_commit(maintainer: Client, upstream: Upstream) -> None:
    upstream.says(LISTED)
    upstream.says(SHRUNK)
    maintainer.post(URL, {"alarm": str(AllowlistAlarm.objects.get().public_id), "reason": "both left"})
    upstream.says(SHRUNK.replace("L2:\n  - acme/two\n", ""))
    assert Repository.objects.filter(level__gt=0).count() == 4
    assert AllowlistAlarm.objects.filter(cleared_at=None).count() == 1


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"reason": ""}, "This field is required."),
        ({"reason": "x" * 2_001}, "Ensure this value has at most 2000 characters (it has 2001)."),
        ({"alarm": "x"}, "Enter a valid UUID."),
        ({"alarm": "00000000-0000-0000-0000-000000000000"}, "There is no such alarm: look again."),
    ],
)
def test_what_cannot_be_accepted_is_said(
    maintainer: Client, upstream: Upstream, form: dict[str, str], words: str
) -> None:
    upstream.says(LISTED)
    upstream.says(SHRUNK)
    given = {"alarm": str(AllowlistAlarm.objects.get().public_id), "reason": "both left"} | form
    assert words in maintainer.post(URL, given).content.decode()
    assert not Event.objects.filter(action="allowlist.file_accepted").exists()


def test_an_operator_looks_and_does_not_accept(client: Client, upstream: Upstream) -> None:
    upstream.says(LISTED)
    upstream.says(SHRUNK)
    client.force_login(user(Role.OPERATOR))
    assert 'name="reason"' not in client.get(URL).content.decode()
    given = {"alarm": str(AllowlistAlarm.objects.get().public_id), "reason": "both left"}
    assert client.post(URL, given).status_code == 403
    assert not Event.objects.filter(action="allowlist.file_accepted").exists()
    assert 'href="/console/"' in client.get("/policy/").content.decode()
    console = Page(client.get("/console/"))
    assert "The allowlist file is not taken" in console.text
    assert URL in console.links


def test_what_waits_and_what_was_put_back_stands_on_every_page_about_it(maintainer: Client, upstream: Upstream) -> None:
    upstream.says(LISTED)
    waits, closed = decided("acme/two", 1), decided("acme/one", 2)
    upstream.open_pull_requests()
    upstream.held.close(2)
    upstream.demote("acme/three", SHRUNK)
    upstream.round()
    rows = [
        ("two acme/two", f"#{waits.seq} to L1", "◆ waits for its pull request", "#1"),
        (
            "one acme/one",
            f"#{closed.seq} to L2",
            "⊘ pull request closed, not in force pull request #2 was closed without being merged",
            "#2",
        ),
    ]
    for url in (URL, "/console/"):
        tables = Page(maintainer.get(url)).tables
        assert [row[:-1] for row in tables["edits"]] == rows
        assert [row[:-1] for row in tables["demotions"]] == [
            ("three acme/three", "#3 [CRCR] Demote acme/three from L3 to L2")
        ]
        assert all(row[-1].endswith(" s ago") for name in ("edits", "demotions") for row in tables[name])
    assert "◆ waits for its pull request Decision" in Page(maintainer.get("/platforms/acme-two/")).text
    assert "⊘ pull request closed, not in force Decision" in Page(maintainer.get("/platforms/acme-one/")).text
    three = Page(maintainer.get("/platforms/acme-three/")).text
    assert "acme/three gets no new check runs while pull request #3 is open: [CRCR] Demote acme/three" in three
    directory = {row[0]: row[2] for row in Page(maintainer.get("/platforms/")).tables[""]}
    assert directory["three"] == "L3 acme/three ▲ demotion proposed upstream"
    assert directory["two"] == "L2 acme/two"
    page = Page(maintainer.get(f"/decisions/{waits.seq}/"))
    assert page.facts["why"]["Since then"] == "◆ waits for its pull request pull request #1"
    assert "https://github.com/pytorch/pytorch/pull/1" in page.links


def test_what_was_put_back_is_shown_until_it_is_decided_anew_or_old(maintainer: Client, upstream: Upstream) -> None:
    upstream.says(LISTED)
    decided("acme/one", 2)
    upstream.open_pull_requests()
    upstream.held.close(1)
    upstream.round()
    AllowlistEdit.objects.update(changed_at=now() - PUT_BACK_SHOWN_FOR)
    assert "edits" not in Page(maintainer.get(URL)).tables
    AllowlistEdit.objects.update(changed_at=now())
    again = decided("acme/one", 2)
    assert [row[1] for row in Page(maintainer.get(URL)).tables["edits"]] == [f"#{again.seq} to L2"]


def test_the_level_page_says_that_the_file_decides(maintainer: Client, upstream: Upstream) -> None:
    upstream.says(LISTED)
    url = "/repositories/acme/one/level/"
    page = Page(maintainer.get(url))
    assert "Opens a pull request on pytorch/pytorch/.github/allowlist.yml, in force when that is merged" in page.text
    answer = maintainer.post(url, {"level": "2", "reason": "60 days green", "expected_level": "1"}, follow=True)
    event = Event.objects.get(action="repository.level_decided")
    assert f"Decision #{event.seq}: acme/one is at L2 when upstream's file says so." in Page(answer).text
    assert Repository.objects.get(full_name="acme/one").level == 1
    refused = maintainer.post(url, {"level": "0", "reason": "no", "expected_level": "1"})
    assert f"Decision #{event.seq} about acme/one still waits for upstream's file" in Page(refused).text


def test_the_api_answers_with_a_decision_that_waits(maintainer: Client, upstream: Upstream) -> None:
    upstream.says(LISTED)
    url = "/api/v1/repositories/acme/one/level/"
    body: dict[str, Any] = {"level": "L2", "reason": "60 days green"}
    answer = maintainer.post(url, body, content_type="application/json")
    assert (answer.status_code, answer.json()["action"]) == (200, "repository.level_decided")
    again = maintainer.post(url, body, content_type="application/json")
    assert (again.status_code, again.json()["code"]) == (409, "decision_waits")


@pytest.mark.parametrize("rows", [1, 3])
def test_the_page_asks_the_database_as_often_for_one_row_as_for_three(
    maintainer: Client, upstream: Upstream, rows: int, django_assert_num_queries: Any
) -> None:
    text = "L1:\n" + "".join(f"  - acme/r{number}\n" for number in range(rows))
    upstream.says(text)
    for number in range(rows):
        decided(f"acme/r{number}", 2)
        upstream.demote(f"acme/r{number}", f"{text}L2:\n")
    upstream.round()
    with django_assert_num_queries(11):
        tables = Page(maintainer.get(URL)).tables
    assert [len(tables[name]) for name in ("edits", "demotions")] == [rows, rows]


def test_in_a_hub_that_owns_the_list_nothing_of_this_is_asked(
    maintainer: Client, upstream: Upstream, django_assert_num_queries: Any
) -> None:
    upstream.says(LISTED)
    decided("acme/one", 2)
    upstream.demote("acme/three", SHRUNK)
    upstream.round()
    with override_settings(ALLOWLIST_AUTHORITY="hub"):
        assert set(Page(maintainer.get("/console/")).tables) == set()
        assert "waits" not in Page(maintainer.get("/platforms/acme-one/")).text
