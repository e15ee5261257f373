"""The commit graph: main's order from pushes, merge bases from GitHub, gaps and forced pushes, and what is unknown."""

import datetime
import random
from typing import Any

import pytest
from django.test import Client

from apps.core.backoff import ATTEMPTS_MAX, BACKOFF_SECONDS
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.relay import graph
from apps.relay.graph_selectors import Base, base_of, is_after, nearest_tested_ancestor, place_of
from apps.relay.models import Commit, MainPush, MergeBase
from apps.simulator.standin import GitHubStandIn
from tests.factories.jobs import job
from tests.factories.listing import listed
from tests.factories.pages import Page
from tests.relay.downstream import send_webhook

pytestmark = pytest.mark.django_db
ZEROS = "0" * 40


def sha(number: int) -> str:
    return f"{number:040x}"


@pytest.fixture(autouse=True)
def upstream(github: GitHubStandIn) -> None:
    github.add_repository("pytorch/pytorch")


@pytest.fixture
def main(client: Client, github: GitHubStandIn) -> Any:
    return Main(client, github)


class Main:
    """Upstream's main: what is pushed there is on GitHub, and its webhook comes here unless it is missed."""

    def __init__(self, client: Client, github: GitHubStandIn) -> None:
        self.client, self.github = client, github
        self.line = [sha(100)]
        self.count = 0
        github.commits.add(sha(100), branch="main")

    def push(self, *shas: str, onto: str = "", is_missed: bool = False, told: bool = True) -> None:
        before, forced = self.line[-1], bool(onto)
        if onto:
            self.line = self.line[: self.line.index(onto) + 1]
        self.github.commits.add(*shas, onto=self.line[-1], branch="main")
        self.line += shas
        self.count += 1
        body = {
            "repository": {"full_name": "pytorch/pytorch"},
            "ref": "refs/heads/main",
            "before": before,
            "after": self.line[-1],
            "forced": forced,
            "commits": [{"id": one} for one in shas] if told else [],
        }
        if not is_missed:
            send_webhook(self.client, body, event="push", delivery_id=f"push-{self.count}")

    def pull(self, number: int, head: str, base: str, *, on_github: bool = True) -> None:
        if on_github:
            self.github.commits.add(head, onto=base)
        body = {
            "action": "opened",
            "number": number,
            "repository": {"full_name": "pytorch/pytorch"},
            "pull_request": {"number": number, "title": "Fold", "head": {"sha": head, "ref": "x"}},
        }
        send_webhook(self.client, body, delivery_id=f"pull-{number}-{head[-4:]}")


def settle(*, later: float = 0.0) -> int:
    return graph.settle(now=now() + datetime.timedelta(seconds=later))


def placed() -> list[tuple[str, str, int | None]]:
    rows = Commit.objects.filter(position__isnull=False).order_by("position")
    return list(rows.values_list("sha", "parent_sha", "position"))


def asked(github: GitHubStandIn) -> list[str]:
    return [request.path.rpartition("/")[2] for request in github.requests if "/compare/" in request.path]


def test_pushes_put_main_in_order_without_asking_github(main: Main, github: GitHubStandIn) -> None:
    main.push(sha(101))
    main.push(sha(102), sha(103))
    assert Wakeup.objects.filter(topic="graph_pending").count() == 1
    settle()
    assert placed() == [
        (sha(100), "", 0),
        (sha(101), sha(100), 1),
        (sha(102), sha(101), 2),
        (sha(103), sha(102), 3),
    ]
    assert (asked(github), settle()) == ([], 0)


def test_a_pull_request_that_left_main_where_a_push_was_missed_stands_there(main: Main, github: GitHubStandIn) -> None:
    main.push(sha(101))
    settle()
    main.push(sha(102), sha(103), is_missed=True)
    main.pull(7, sha(701), sha(102))
    settle()
    assert base_of(7, sha(701)) == Base(sha(102), 1)
    assert [position for *_, position in placed()] == [0, 1, 2, 3]
    assert asked(github) == [f"main...{sha(701)}", f"{sha(101)}...main"]
    # The push that comes after all changes nothing.
    main.push(sha(104))
    settle()
    assert base_of(7, sha(701)) == Base(sha(102), 2)


def test_a_missed_webhook_is_a_gap_that_github_fills(main: Main, github: GitHubStandIn) -> None:
    main.push(sha(101))
    main.push(sha(102), is_missed=True)
    main.push(sha(103))
    settle()
    assert [row[0] for row in placed()] == main.line
    assert asked(github) == [f"{sha(101)}...main"]


def test_a_push_that_does_not_tell_all_its_commits_is_asked_about(main: Main) -> None:
    main.push(sha(101))
    main.push(sha(102), sha(103), told=False)
    settle()
    assert [row[0] for row in placed()] == main.line


def test_a_forced_push_takes_commits_off_main(main: Main) -> None:
    main.push(sha(101), sha(102), sha(103))
    settle()
    main.push(sha(201), onto=sha(101))
    settle()
    assert placed() == [(sha(100), "", 0), (sha(101), sha(100), 1), (sha(201), sha(101), 2)]
    assert list(Commit.objects.filter(position=None).values_list("sha", flat=True)) == [sha(102), sha(103)]


def test_a_forced_push_back_is_only_shorter(main: Main) -> None:
    main.push(sha(101), sha(102))
    settle()
    main.push(onto=sha(101))
    settle()
    assert [row[0] for row in placed()] == [sha(100), sha(101)]


def test_webhooks_in_the_wrong_order_end_in_the_right_one(main: Main) -> None:
    main.push(sha(101))
    main.push(sha(102), is_missed=True)
    main.push(sha(103))
    settle()
    body = {"repository": {"full_name": "pytorch/pytorch"}, "ref": "refs/heads/main", "forced": False}
    late = body | {"before": sha(101), "after": sha(102), "commits": [{"id": sha(102)}]}
    send_webhook(main.client, late, event="push", delivery_id="late")
    settle()
    assert [row[0] for row in placed()] == main.line
    assert set(MainPush.objects.values_list("state", flat=True)) == {"known"}


def test_other_refs_and_a_deleted_main_ask_nothing(client: Client) -> None:
    body = {"repository": {"full_name": "pytorch/pytorch"}, "before": sha(1), "after": sha(2), "commits": []}
    send_webhook(client, body | {"ref": "refs/tags/v1"}, event="push", delivery_id="tag")
    send_webhook(client, body | {"ref": "refs/heads/main", "after": ZEROS}, event="push", delivery_id="gone")
    assert MainPush.objects.count() == 0


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_pushed_missed_or_forced_main_is_as_github_has_it(main: Main, seed: int) -> None:
    rng, number = random.Random(seed), 101
    for _ in range(25):
        fresh = [sha(number + n) for n in range(rng.randint(1, 3))]
        number += 3
        onto = rng.choice(main.line[-4:]) if rng.random() < 0.3 else ""
        main.push(*fresh, onto=onto, is_missed=rng.random() < 0.3, told=rng.random() < 0.8)
        if rng.random() < 0.5:
            settle()
    main.push(sha(9_999))
    settle()
    known = [row[0] for row in placed()]
    assert known == main.line[-len(known) :]
    assert len(known) > 1
    assert MainPush.objects.filter(state="pending").count() == 0


def test_a_long_gap_is_read_over_several_runs(main: Main, github: GitHubStandIn) -> None:
    main.push(sha(101))
    settle()
    main.push(*(sha(1_000 + n) for n in range(1_050)), is_missed=True)
    main.push(sha(9_999))
    settle()
    assert len(placed()) == 2 + 1_000
    assert MainPush.objects.order_by("-pk")[0].error == "51 commits are still to be read"
    settle(later=31)
    assert [row[0] for row in placed()] == main.line


# --- merge bases ------------------------------------------------------------------------------------------------


def test_a_heads_base_is_where_it_left_main(main: Main, github: GitHubStandIn) -> None:
    main.push(sha(101), sha(102), sha(103))
    main.pull(7, sha(701), sha(101))
    assert base_of(7, sha(701)) == Base(None, None)
    settle()
    assert base_of(7, sha(701)) == Base(sha(101), 2)
    assert asked(github) == [f"main...{sha(701)}"]
    main.push(sha(104))
    settle()
    assert (base_of(7, sha(701)), settle()) == (Base(sha(101), 3), 0)
    # The gate may say something else of a head whose base is known.
    assert list(Wakeup.objects.filter(topic="base_known").values_list("key", flat=True)) == [sha(701)]


def test_a_base_from_before_the_hubs_time_gets_its_place(main: Main, github: GitHubStandIn) -> None:
    main.push(sha(101), sha(102), is_missed=True)
    main.pull(7, sha(701), sha(100))
    settle()
    assert (base_of(7, sha(701)), place_of(sha(100)), place_of(sha(102))) == (Base(sha(100), 2), -2, 0)


def test_each_head_of_a_pull_request_has_its_own_base(main: Main) -> None:
    main.push(sha(101), sha(102))
    main.pull(7, sha(701), sha(101))
    main.pull(7, sha(702), sha(102))
    settle()
    assert (base_of(7, sha(701)), base_of(7, sha(702))) == (Base(sha(101), 1), Base(sha(102), 0))


def test_github_is_asked_again_and_in_the_end_it_stays_unknown(main: Main, github: GitHubStandIn) -> None:
    main.push(sha(101))
    main.pull(7, sha(701), sha(101))
    github.fail("/compare/", status=502)
    settle()
    row = MergeBase.objects.get()
    assert (row.state, row.attempts, row.error) == ("pending", 1, "GitHub answered 502")
    assert row.due_at < now() + datetime.timedelta(seconds=BACKOFF_SECONDS[0])
    MergeBase.objects.update(due_at=now() + datetime.timedelta(seconds=30))
    assert (settle(later=20), settle(later=31)) == (0, 1)
    assert base_of(7, sha(701)) == Base(sha(101), 0)
    main.pull(8, sha(801), sha(101), on_github=False)
    for n in range(ATTEMPTS_MAX + 1):
        settle(later=4_000 * n)
    row = MergeBase.objects.get(pr_number=8)
    assert (row.state, row.attempts, row.error) == ("unknown", ATTEMPTS_MAX, "GitHub answered 404: Not Found")
    assert base_of(8, sha(801)) == Base(None, None)


# --- what it answers --------------------------------------------------------------------------------------------


def test_after_a_fix_is_yes_no_or_unknown(main: Main) -> None:
    main.push(sha(101), sha(102), sha(103))
    main.pull(7, sha(701), sha(101))
    main.pull(8, sha(801), sha(103))
    settle()
    fix = sha(102)
    assert [is_after(one, fix) for one in (sha(101), fix, sha(103))] == [False, True, True]
    assert [is_after(one, fix) for one in (sha(701), sha(801))] == [False, True]
    assert (is_after(sha(5), fix), is_after(sha(103), sha(5))) == (None, None)


def test_the_nearest_tested_ancestor_has_an_end_that_says_something(main: Main) -> None:
    made = listed({"acme/torch": 2, "other/torch": 2})
    acme, other = made["acme/torch"], made["other/torch"]
    main.push(*(sha(101 + n) for n in range(6)))
    main.pull(7, sha(701), sha(104))
    settle()
    job(acme, "success", head_sha=sha(101), event_type="push")
    job(acme, "failure", head_sha=sha(102), event_type="nightly")
    job(acme, "cancelled", head_sha=sha(103), event_type="push")
    job(acme, "", head_sha=sha(104), event_type="push")
    job(other, "success", head_sha=sha(104), event_type="push")
    job(acme, "success", head_sha=sha(105), event_type="push", flags=["held"])
    job(acme, "timed_out", head_sha=sha(105), event_type="push", flags=["inferred"])
    job(acme, "success", head_sha=sha(106), event_type="push")

    def nearest(one: str) -> str | None:
        found = nearest_tested_ancestor(one, acme)
        return found.sha if found else None

    assert [nearest(sha(n)) for n in (100, 101, 104, 105, 106)] == [
        *(None, sha(101), sha(102), sha(102)),
        sha(106),
    ]
    assert (nearest(sha(701)), nearest(sha(5))) == (sha(102), None)
    tested = nearest_tested_ancestor(sha(701), other)
    assert tested is not None
    assert tested.sha == sha(104)


# --- pages ------------------------------------------------------------------------------------------------------


def fan_out() -> None:
    from apps.relay import tasks
    from apps.relay.models import Delivery

    tasks.fan_out_deliveries([str(delivery.pk) for delivery in Delivery.objects.all()])


def test_a_pull_requests_page_says_its_base(main: Main, client: Client) -> None:
    main.push(sha(101), sha(102))
    main.pull(7, sha(701), sha(101))
    fan_out()
    assert "base unknown" in Page(client.get("/pr/7/")).text
    settle()
    assert f"base {sha(101)[:12]}, 1 commit behind main" in Page(client.get("/pr/7/")).text


def test_a_commits_page_says_its_place(main: Main, client: Client) -> None:
    main.push(sha(2**159 + 1), sha(2**159 + 2 + 2**130))
    first, second = main.line[1:]
    main.pull(7, sha(701), first)
    settle()
    fan_out()
    page = Page(client.get(f"/commit/{first}/"))
    assert page.facts["place"] == {
        "Place": "1 commit behind the newest",
        "Parent": sha(100)[:12],
        "Next": second[:12],
        "Pull requests from here": "#7",
    }
    assert Page(client.get(f"/commit/{second}/")).facts["place"] == {
        "Place": "the newest commit",
        "Parent": first[:12],
        "Next": "none yet",
        "Pull requests from here": "none known",
    }
    assert Page(client.get(f"/commit/{sha(100)}/")).facts["place"]["Parent"] == "unknown"
    main.push(sha(201), onto=first)
    settle()
    assert Page(client.get(f"/commit/{second}/")).facts["place"]["Place"] == "not on main any more"
