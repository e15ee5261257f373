"""`/platforms/<slug>/`: one platform's standing, jobs, levels over time and decisions, to anyone."""

import datetime
from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.core.clock import now
from apps.platforms.models import Repository
from apps.platforms.pins import note_refusal
from apps.platforms.services import change_level
from apps.relay.models import Dispatch
from apps.results.services import recount
from tests.factories.jobs import callback, days_ago, dispatch, job
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = "/platforms/acme-torch/"


def minutes(number: int) -> datetime.timedelta:
    return datetime.timedelta(minutes=number)


def platform(client: Client, **query: Any) -> Page:
    answer = client.get(URL, query)
    assert answer.status_code == 200
    return Page(answer)


def acme(level: int = 2, **options: Any) -> Repository:
    return listed({"acme/torch": (level, options)}, now=days_ago(9))["acme/torch"]


def test_the_standing_says_level_and_since_when(client: Client) -> None:
    repository = acme(1)
    listed({"acme/torch": (3, {"device": "npu", "oncalls": ["alice", "bob"], "events": ["nightly"]})}, now=days_ago(4))
    page = platform(client)
    began, raised = (interval.started_at for interval in repository.level_intervals.order_by("started_at"))
    assert page.heading == "torch"
    assert page.items["standing-1"] == [
        f"L1 Onboarding {began:%Y-%m-%d}",
        "L2 Observation passed over",
        f"● L3 Stable since {raised:%Y-%m-%d} · 4 d",
        "L4 Mature check: on every pull request",
    ]
    assert page.facts["contacts-1"] == {
        "Device": "npu label ciflow/crcr/npu",
        "Oncalls": "alice, bob",
        "Last callback": "never",
        "Takes part in": "nightly",
        "Identity": "not pinned yet: GitHub is asked in the background",
    }


def test_a_repository_that_github_did_not_pin_says_why_and_when(client: Client) -> None:
    repository = listed({"acme/torch": 1})["acme/torch"]
    note_refusal(repository_id=repository.pk, words="GitHub answered 404: Not\0 Found", now=days_ago(3))
    assert platform(client).facts["contacts-1"]["Identity"] == (
        "not pinned yet: GitHub answered 404: Not Found asked 3 d ago; asked again at its first callback and every 10 "
        "minutes"
    )
    listed({})
    assert platform(client).facts["contacts-1"]["Identity"].endswith("Not Found asked 3 d ago")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("github_api", "GitHub id 501 of owner 401 asked GitHub, 3 d ago"),
        ("first_sight", "GitHub id 501 of owner 401 ▲ first callback, GitHub could not be asked, 3 d ago"),
    ],
)
def test_the_page_says_how_far_the_identity_can_be_trusted(client: Client, source: str, words: str) -> None:
    acme()
    Repository.objects.update(github_id=501, github_owner_id=401, pin_source=source, pinned_at=days_ago(3))
    assert platform(client).facts["contacts-1"]["Identity"] == words


def test_a_platform_off_the_allowlist_is_still_there(client: Client) -> None:
    job(acme(), "success", run_id="7")
    listed({"other/torch": 1})
    page = platform(client, view="all")
    assert "Not on the allowlist: upstream events are not sent" in page.text
    assert len(page.tables["jobs-head"]) == 1


def test_every_figure_stands_with_what_it_rests_on(client: Client) -> None:
    repository = acme()
    sent = dispatch(repository, at=days_ago(3))
    for conclusion in ("success", "success", "failure", "timed_out"):
        job(repository, conclusion, at=days_ago(3) + minutes(5), dispatch=sent)
    recount(days=14, now=now())
    assert [row[1:] for row in platform(client).tables["figures"]] == [
        # The downstream told no times of its own: upstream's formulas read none of these jobs.
        ("50.0 % upstream's formula: no data", "2 of 4 ended jobs"),
        ("50.0 %", "2 of 4 ended jobs"),
        ("50.0 %", "2 of 4 first attempts that ended"),
        ("25.0 % upstream's formula: no data", "1 of 4 ended jobs"),
        ("0.0 % upstream's formula: no data", "0 of 3 ended jobs with a known run time"),
        ("5 min upstream's formula: no data", "4 first attempts that reported their start"),
        ("15 min upstream's formula: no data", "4 runs that ended"),
        ("100.0 %", "1 of 1 dispatches whose answer is due"),
        ("0", "0 of 1 dispatches whose answer is due"),
        ("no data", "0 red ends that were acknowledged"),
        ("0.0 %", "0 of 2 red ends"),
    ]


def test_a_platform_without_jobs_has_no_figures_but_no_zeros_either(client: Client) -> None:
    acme()
    assert {row[1] for row in platform(client).tables["figures"]} == {"no data"}


def test_jobs_stand_by_pull_request_with_the_worst_of_their_words(client: Client) -> None:
    repository = acme()
    first = dispatch(
        repository, at=days_ago(5), pr_number=4711, head_sha="ab" * 20, title="Make it fast", action="opened"
    )
    dispatch(repository, at=days_ago(4), pr_number=4712, head_sha="cd" * 20, title="Make it right", action="opened")
    job(repository, "success", dispatch=first, job_name="build", run_id="1")
    job(repository, "failure", dispatch=first, job_name="test", run_id="1")
    job(repository, "success", dispatch=first, job_name="test", run_id="1", run_attempt=2)
    page = platform(client)
    assert page.tables["jobs-head"] == [
        ("#4712 Make it right cdcdcdc opened", "◔ dispatched", "no answer yet", "4 d ago"),
        ("#4711 Make it fast abababa opened", "● success", "● build ● test", "5 d ago"),
    ]
    assert {"/pr/4711/", f"/commit/{'ab' * 20}/"} <= set(page.links)


def test_commits_and_nightlies_have_lists_of_their_own(client: Client) -> None:
    repository = acme()
    pushed = dispatch(
        repository, at=days_ago(5), event="push", pr_number=None, ref="refs/heads/main", head_sha="ef" * 20
    )
    job(repository, "failure", dispatch=pushed, event_type="push", job_name="build")
    job(repository, "success", event_type="nightly", run_id="9", head_sha="ef" * 20, at=days_ago(2))
    assert platform(client, view="commits").tables["jobs-head"] == [
        ("refs/heads/main efefefe", "■ failure", "■ build", "5 d ago")
    ]
    assert platform(client, view="nightly").tables["jobs-head"] == [
        ("efefefe nightly", "● success", "● test-ops", "2 d ago")
    ]


def test_all_jobs_stand_newest_first_with_their_trust(client: Client) -> None:
    repository = acme()
    first = dispatch(repository, pr_number=4711, head_sha="ab" * 20)
    job(
        repository,
        "success",
        at=days_ago(8),
        run_id="1",
        event_type="nightly",
        flags=["start_lost"],
        start_seen_at=None,
    )
    job(repository, "failure", at=days_ago(7), run_id="2", run_attempt=1, passed=9, failed=1, skipped=0, total=10)
    job(repository, "failure", at=days_ago(7), run_id="2", run_attempt=2, passed=9, failed=1, skipped=0, total=10)
    job(repository, "success", at=days_ago(6), run_id="3", bucket="contradicted", failed=1, passed=9, total=10)
    job(repository, at=days_ago(5), run_id="4", job_name="", dispatch=first, pr_number=4711, head_sha="ab" * 20)
    assert platform(client, view="all").tables["jobs-head"] == [
        ("◐ in progress", "CI run 4", "PR #4711 abababa", "not reported", "5 d ago"),
        ("✕ contradicted ✕ contradicted", "CI / test-ops run 3", "pull_request no data", "9 of 10", "6 d ago"),
        ("■ failure ○ self-reported", "CI / test-ops run 2, attempt 2", "pull_request no data", "9 of 10", "7 d ago"),
        ("◇ superseded ○ self-reported", "CI / test-ops run 2", "pull_request no data", "9 of 10", "7 d ago"),
        (
            "● success ○ self-reported",
            "CI / test-ops run 1, the start was never reported",
            "nightly no data",
            "not reported",
            "8 d ago",
        ),
    ]


def test_another_platforms_jobs_are_not_its_own(client: Client) -> None:
    made = listed({"acme/torch": 2, "other/torch": 2})
    job(made["other/torch"], "success", workflow="theirs")
    job(made["acme/torch"], "success", workflow="ours")
    assert [row[1].split()[0] for row in platform(client, view="all").tables["jobs-head"]] == ["ours"]


@pytest.mark.parametrize(("page", "runs"), [("1", (51, 2)), ("2", (1, 1)), ("x", (51, 2)), ("99", (1, 1))])
def test_fifty_jobs_stand_on_a_page(client: Client, page: str, runs: tuple[int, int]) -> None:
    repository = acme()
    at = days_ago(3)
    for number in range(1, 52):
        job(repository, "success", at=at, run_id=str(number))
    seen = platform(client, page=page, view="all").tables["jobs-head"]
    assert (int(seen[0][1].split()[-1]), int(seen[-1][1].split()[-1])) == runs


def test_the_level_history_and_the_decisions_behind_it(client: Client) -> None:
    repository = acme(1)
    change_level(repository=repository, level=2, reason="60 days green", actor=TESTS, now=days_ago(4))
    listed({"acme/torch": (2, {"oncalls": ["alice"]}), "other/torch": 1}, now=days_ago(3))
    page = platform(client)
    assert page.tables["history"] == [("L2", "4 d ago", "now", "#2"), ("L1", "9 d ago", "4 d ago", "#1")]
    assert [text.split(" by ")[0] for text in page.items["decisions"]] == [
        "acme/torch: oncalls changed",
        "acme/torch raised from L1 to L2",
        "acme/torch listed at L1",
    ]
    assert [link for link in page.links if link.startswith("/decisions/")][:2] == ["/decisions/2/", "/decisions/1/"]


def test_what_can_be_done_is_offered_to_who_may_do_it(client: Client) -> None:
    repository = acme()
    acts = {"/repositories/acme/torch/level/", "/platforms/acme-torch/name/"}
    people = [None, member_of(repository.platform), user(Role.OPERATOR), user(Role.MAINTAINER), user(Role.ADMIN)]
    offered = []
    for person in people:
        client.logout()
        if person:
            client.force_login(person)
        offered.append(acts & set(platform(client).links))
    assert offered == [set(), set(), set(), acts, acts]


def test_an_unknown_platform_is_not_found(client: Client) -> None:
    assert client.get("/platforms/nobody/").status_code == 404


@pytest.mark.parametrize("rows", [1, 3])
def test_the_page_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, rows: int, django_assert_num_queries: Any
) -> None:
    made = listed({f"acme/torch-{number}": 1 for number in range(rows)}, now=days_ago(9))
    for repository in made.values():
        change_level(repository=repository, level=2, reason="60 days green", actor=TESTS, now=now())
        job(repository, "success", dispatch=dispatch(repository))
    first = made["acme/torch-0"].platform
    Repository.objects.update(platform=first)
    with django_assert_num_queries(25):
        page = Page(client.get(f"/platforms/{first.slug}/"))
    assert (len(page.tables["jobs-head"]), len(page.tables["history"])) == (rows, 2 * rows)


# --- the live list of jobs --------------------------------------------------------------------------------------

PART = {"HX-Request": "true", "HX-Target": "jobs"}


def test_a_lowered_platform_keeps_what_was_public_and_an_open_page_hears_of_it(client: Client) -> None:
    repository = acme()
    answered = job(repository, "success", dispatch=dispatch(repository))
    dispatch(repository)
    tag = {"If-None-Match": client.get(URL, headers=PART).headers["ETag"]}
    assert client.get(URL, headers=PART | tag).status_code == 304
    change_level(repository=repository, level=1, reason="asked", actor=TESTS, now=now())
    for view in ("pr", "all"):
        again = client.get(URL, {"view": view}, headers=PART | tag)
        text = again.content.decode()
        shown = (again.status_code, text.count(f"/jobs/{answered.public_id}/"), "no answer yet" in text)
        assert shown == (200, 1, False)


def test_a_dispatch_that_is_sent_changes_the_list(client: Client) -> None:
    repository = acme()
    sent = dispatch(repository)
    Dispatch.objects.filter(pk=sent.pk).update(state="pending", sent_at=None)
    tag = {"If-None-Match": client.get(URL, headers=PART).headers["ETag"]}
    assert client.get(URL, headers=PART | tag).status_code == 304
    Dispatch.objects.filter(pk=sent.pk).update(state="sent", sent_at=now())
    assert client.get(URL, headers=PART | tag).status_code == 200


def test_a_visitor_does_not_hear_private_callbacks_come_in(client: Client) -> None:
    repository = acme(1)
    callback(repository, workflow="hush", run_id="1")
    tag = {"If-None-Match": client.get(URL, headers=PART).headers["ETag"]}
    callback(repository, workflow="hush", run_id="2")
    assert client.get(URL, headers=PART | tag).status_code == 304
