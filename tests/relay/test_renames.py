"""A repository under another name, another id, or another owner: what its callbacks come to, and what people decide."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core import alarms
from apps.core.clock import now
from apps.core.models import Alarm, Wakeup
from apps.platforms.allowlist import EVERY_EVENT, Entry, dump, parse
from apps.platforms.models import NameChange, Repository, Transfer
from apps.platforms.services import import_allowlist
from apps.platforms.tasks import check_name, check_names, confirm_name, confirm_names, enqueue_names
from apps.relay import holds
from apps.relay.holds import decide_transfer
from apps.relay.models import Callback, Job, Rejection
from apps.results import services as results
from apps.results.models import DayFigures
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.pages import Page
from tests.relay.downstream import Downstream, answer, refusal
from tests.relay.test_callback import APPLIED, DUPLICATE, FEN, IGNORED, KESTREL, dispatch

pytestmark = pytest.mark.django_db
RENAMED, MOVED = "kestrel-demo/renamed", "osprey-demo/torch-kestrel"
HELD = (200, {"ok": True, "status": "held", "job": True})


@pytest.fixture
def kestrel(downstream: Callable[..., Downstream], client: Client) -> Downstream:
    """Listed at L2 and pinned, with one delivery dispatched to it; one job of it has ended."""
    made = downstream(KESTREL, repository_id=5001, owner_id=6001)
    listed({KESTREL: 2})
    dispatch(client)
    made.start()
    made.end()
    return made


def under(kestrel: Downstream, name: str) -> Downstream:
    """The same repository after GitHub calls it otherwise."""
    kestrel.github.rename_repository(kestrel.full_name, name)
    return Downstream(name, kestrel.github, kestrel.client, kestrel.run_id)


def last_event() -> dict[str, Any]:
    body = body_of(Event.objects.order_by("-seq")[0])
    return {key: body[key] for key in ("action", "summary", "before", "after", "reason", "is_decision")}


def names() -> list[str]:
    return list(Repository.objects.order_by("pk").values_list("full_name", flat=True))


# --- another name -----------------------------------------------------------------------------------------------


def test_a_new_name_is_taken_over_once_github_confirms_it(kestrel: Downstream) -> None:
    renamed = under(kestrel, RENAMED)
    assert answer(renamed.start(job_name="test")) == APPLIED
    assert answer(renamed.end(job_name="test")) == APPLIED
    change = NameChange.objects.get()
    assert (change.old_name, change.new_name, change.confirmed_at, names()) == (KESTREL, RENAMED, None, [KESTREL])
    keys = list(Wakeup.objects.filter(topic="repository_renamed").values_list("key", flat=True))
    assert keys == [str(change.pk)]
    assert confirm_name(change.pk) is True
    assert names() == [RENAMED]
    assert last_event() == {
        "action": "repository.renamed",
        "summary": f"{KESTREL} is called {RENAMED} on GitHub, with the same id 5001",
        "before": {"full_name": KESTREL},
        "after": {"full_name": RENAMED},
        "reason": "asked GitHub",
        "is_decision": True,
    }
    events = Event.objects.count()
    assert answer(renamed.start(job_name="lint")) == APPLIED
    assert (confirm_name(change.pk), Event.objects.count(), NameChange.objects.count()) == (False, events, 1)
    page = Page(kestrel.client.get("/platforms/kestrel-demo-torch-kestrel/"))
    assert KESTREL in page.facts["contacts-1"]["Formerly"]
    assert f"{KESTREL} is called {RENAMED} on GitHub" in page.text


def test_a_name_that_github_does_not_confirm_is_not_taken_over(kestrel: Downstream) -> None:
    kestrel.github.add_repository("stranger-demo/x", repository_id=5999)
    for claimed in ("stranger-demo/x", "nobody-demo/nothing"):
        token = kestrel.token(repository=claimed)
        assert answer(kestrel.post(kestrel.body(job_name=claimed), token=token)) == APPLIED
    assert confirm_names() == 2
    assert [confirm_name(pk) for pk in NameChange.objects.values_list("pk", flat=True)] == [False, False]
    assert names() == [KESTREL]
    # GitHub's no is final; where it cannot say, it is asked again.
    assert list(NameChange.objects.values_list("new_name", flat=True)) == ["nobody-demo/nothing"]


def test_a_confirmation_waits_until_github_answers(kestrel: Downstream) -> None:
    under(kestrel, RENAMED).start(job_name="test")
    change = NameChange.objects.get()
    kestrel.github.fail("^/repos/", status=503, times=1)
    assert (confirm_name(change.pk), names()) == (False, [KESTREL])
    assert (confirm_name(change.pk), names()) == (True, [RENAMED])


def test_a_new_name_that_another_listed_repository_bears_is_left_to_people(
    kestrel: Downstream, caplog: pytest.LogCaptureFixture
) -> None:
    listed({KESTREL: 2, RENAMED: 2})
    assert answer(under(kestrel, RENAMED).start(job_name="test")) == APPLIED
    assert (confirm_name(NameChange.objects.get().pk), names()) == (False, [KESTREL, RENAMED])
    assert "take one of them off the allowlist" in caplog.text


def import_names(levels: dict[str, int]) -> int:
    """Import an allowlist of these. Returns how much it changed."""
    text = dump([Entry(level, name, "", (), frozenset(EVERY_EVENT)) for name, level in levels.items()])
    return len(import_allowlist(allowlist=parse(text), source="a.yml", sha256="0" * 64, actor=TESTS, now=now()))


def test_an_allowlist_with_the_old_name_means_the_renamed_repository(kestrel: Downstream) -> None:
    under(kestrel, RENAMED).start(job_name="test")
    confirm_name(NameChange.objects.get().pk)
    before = Event.objects.count()
    for spelled in (KESTREL, KESTREL.upper(), RENAMED):
        assert import_names({spelled: 2}) == 0
        assert (names(), Event.objects.count()) == ([RENAMED], before)
    assert import_names({KESTREL: 1}) == 1
    assert list(Repository.objects.values_list("full_name", "level")) == [(RENAMED, 1)]


def test_an_allowlist_with_both_names_lists_the_present_one_and_a_stranger(kestrel: Downstream) -> None:
    under(kestrel, RENAMED).start(job_name="test")
    confirm_name(NameChange.objects.get().pk)
    assert import_names({RENAMED: 4, KESTREL: 1}) == 2
    rows = Repository.objects.order_by("pk").values_list("full_name", "level", "github_id")
    assert list(rows) == [(RENAMED, 4, 5001), (KESTREL, 1, None)]


def test_another_case_of_letters_is_no_other_name(kestrel: Downstream) -> None:
    token = kestrel.token(repository=KESTREL.upper())
    assert answer(kestrel.post(kestrel.body(job_name="test"), token=token)) == APPLIED
    assert NameChange.objects.count() == 0


def test_the_wakeup_hands_on_to_the_task(kestrel: Downstream, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(confirm_name, "delay", seen.append)
    enqueue_names(["7", "8"])
    assert seen == [7, 8]


def test_a_rename_is_noticed_although_nothing_is_heard_under_the_new_name(
    kestrel: Downstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    under(kestrel, RENAMED)
    asked: list[int] = []
    monkeypatch.setattr(check_name, "delay", asked.append)
    assert check_names() == 1
    check_name(asked[0])
    assert (names(), last_event()["action"]) == ([RENAMED], "repository.renamed")
    events = Event.objects.count()
    check_name(asked[0])
    kestrel.github.fail("^/repos/", status=503, times=5)
    check_name(asked[0])
    assert (names(), Event.objects.count()) == ([RENAMED], events)


def test_a_move_or_a_takeover_is_noticed_the_same_way(kestrel: Downstream) -> None:
    alarms.forget()
    repository = Repository.objects.get()
    under(kestrel, MOVED)
    check_name(repository.pk)
    assert (names(), Transfer.objects.get().new_name) == ([KESTREL], MOVED)
    kestrel.github.add_repository(KESTREL)
    check_name(repository.pk)
    assert list(Alarm.objects.values_list("kind", "key")) == [("identity_replaced", str(repository.pk))]


# --- another id -------------------------------------------------------------------------------------------------


def test_another_id_under_a_listed_name_is_refused_counted_and_alarmed(kestrel: Downstream) -> None:
    alarms.forget()
    kestrel.github.replace_repository(KESTREL)
    for _ in range(3):
        assert refusal(kestrel.start(job_name="test")) == (403, "identity_replaced", "repository_id")
    assert list(Rejection.objects.values_list("code", "count")) == [("identity_replaced", 3)]
    assert list(Alarm.objects.values_list("kind", "times")) == [("identity_replaced", 1)]
    kestrel.client.force_login(user(Role.OPERATOR))
    (row,) = Page(kestrel.client.get("/console/")).tables["alarms"]
    assert row[0] == "Another repository speaks under a listed name"
    assert f"{KESTREL} was listed as id 5001 of owner 6001" in row[1]


# --- another owner ----------------------------------------------------------------------------------------------


@pytest.fixture
def moved(kestrel: Downstream) -> Downstream:
    """The same repository, transferred to another owner; its first job there is held."""
    made = under(kestrel, MOVED)
    assert answer(made.start(job_name="test")) == HELD
    return made


def figures() -> dict[str, int]:
    """What counts, by bucket."""
    repository = Repository.objects.get()
    days = {at.astimezone(datetime.UTC).date() for at in Job.objects.values_list("first_seen_at", flat=True)}
    results.count_days([(repository.pk, day) for day in days], now=now())
    row = DayFigures.objects.get()
    buckets = ("success", "failure", "in_progress", "superseded")
    return {bucket: getattr(row, bucket) for bucket in buckets if getattr(row, bucket)}


def test_what_a_new_owner_sends_is_held_flagged_and_outside_every_figure(moved: Downstream) -> None:
    assert answer(moved.end("failure", job_name="test")) == HELD
    assert answer(moved.end("failure", job_name="test")) == HELD
    held = Job.objects.get(job_name="test")
    assert (held.status, held.flags, held.conclusion) == ("completed", ["held"], "failure")
    assert list(held.callbacks.order_by("pk").values_list("answer", flat=True)) == ["held", "held"]
    assert figures() == {"success": 1}
    assert (names(), Repository.objects.get().github_owner_id) == ([KESTREL], 6001)
    transfer = Transfer.objects.get()
    assert (transfer.old_owner_id, transfer.new_name, transfer.state) == (6001, MOVED, "open")
    assert last_event() == {
        "action": "repository.transfer_held",
        "summary": f"{KESTREL} spoke as {MOVED}, under another owner: held until somebody decides",
        "before": {"github_owner_id": "6001"},
        "after": {"github_owner_id": str(transfer.new_owner_id), "full_name": MOVED},
        "reason": "",
        "is_decision": False,
    }
    page = Page(moved.client.get("/platforms/kestrel-demo-torch-kestrel/"))
    assert MOVED in page.facts["contacts-1"]["New owner"]
    assert "1 d ago" not in page.text


def test_a_held_attempt_supersedes_nothing_and_the_page_of_the_pull_request_leaves_it_out(moved: Downstream) -> None:
    again = moved.post(
        moved.body(conclusion="failure", run_attempt="2", check_run_id="457"), token=moved.token(run_attempt="2")
    )
    assert answer(again) == HELD
    assert figures() == {"success": 1}
    assert Page(moved.client.get("/pr/184233/")).text.count("failure") == 0


def test_a_held_callback_touches_nothing_that_was_reported_before(moved: Downstream, kestrel: Downstream) -> None:
    Job.objects.filter(job_name="build").update(start_seen_at=None, flags=["start_lost"])
    before = Job.objects.filter(job_name="build").values().get()
    assert [answer(moved.start()), answer(moved.end())] == [HELD, HELD]
    assert refusal(moved.end("failure")) == (409, "completion_conflict", "workflow.conclusion")
    assert Job.objects.filter(job_name="build").values().get() == before


def test_an_end_under_a_new_owner_holds_the_job_that_began_before(kestrel: Downstream) -> None:
    kestrel.start(job_name="test")
    assert answer(under(kestrel, MOVED).end(job_name="test")) == HELD
    assert figures() == {"success": 1}


def test_the_same_token_and_body_again_is_held_and_after_acceptance_a_duplicate(moved: Downstream) -> None:
    body, token = moved.body(job_name="again"), moved.token()
    assert [answer(moved.post(body, token=token)) for _ in range(2)] == [HELD, HELD]
    decide_transfer(transfer=Transfer.objects.get(), is_accepted=True, reason="both say so", actor=TESTS, now=now())
    assert answer(moved.post(body, token=token)) == DUPLICATE
    assert Job.objects.get(job_name="again").callbacks.count() == 1


@pytest.mark.parametrize("reads", ["the transfer", "the owner"])
def test_an_owner_who_is_accepted_while_a_callback_is_on_its_way_leaves_nothing_held(
    moved: Downstream, monkeypatch: pytest.MonkeyPatch, reads: str
) -> None:
    real = holds.is_held

    def accept() -> None:
        if (transfer := Transfer.objects.get()).state == "open":
            decide_transfer(transfer=transfer, is_accepted=True, reason="both say so", actor=TESTS, now=now())

    def raced(*args: Any) -> bool:
        if reads == "the owner":  # decided before the question is asked, after the owner was read
            accept()
        is_held = real(*args)
        accept()
        return is_held

    monkeypatch.setattr(holds, "is_held", raced)
    assert answer(moved.end(job_name="lint")) == APPLIED
    assert list(Job.objects.values_list("job_name", "flags").order_by("job_name")) == [
        ("build", []),
        ("lint", ["start_lost"]),
        ("test", []),
    ]
    assert Transfer.objects.count() == 1


@pytest.mark.parametrize("level", [1, 2])
def test_what_a_new_owner_sends_ends_no_silence_before_that_owner_is_accepted(moved: Downstream, level: int) -> None:
    listed({KESTREL: level})
    two_days_ago = now() - datetime.timedelta(hours=48, minutes=1)
    Callback.objects.filter(answer="applied").update(received_at=two_days_ago)
    moved.start(job_name="lint")
    moved.end(job_name="lint")
    moved.client.force_login(member_of(Transfer.objects.get().repository.platform))
    facts = Page(moved.client.get("/platforms/kestrel-demo-torch-kestrel/")).facts["contacts-1"]
    assert facts["Last callback"] == "▲ silent no callback for 48 hours"
    decide_transfer(transfer=Transfer.objects.get(), is_accepted=True, reason="both say so", actor=TESTS, now=now())
    facts = Page(moved.client.get("/platforms/kestrel-demo-torch-kestrel/")).facts["contacts-1"]
    assert facts["Last callback"] in {f"{seconds} s ago" for seconds in range(60)}


def test_a_night_that_is_held_has_no_verdict(moved: Downstream) -> None:
    body = moved.body(delivery_id="nightly-1", conclusion="failure") | {"event_type": "nightly"}
    assert answer(moved.post(body)) == HELD
    page = Page(moved.client.get("/platforms/kestrel-demo-torch-kestrel/?view=nightly"))
    assert [row[1:3] for row in page.tables["jobs-head"]] == [("held", "held: a new owner waits for a decision")]


def test_below_l2_a_new_owner_is_asked_about_too_and_nothing_is_public(kestrel: Downstream) -> None:
    listed({KESTREL: 1})
    assert answer(under(kestrel, MOVED).start(job_name="test")) == IGNORED
    assert (Transfer.objects.count(), Job.objects.count()) == (1, 1)


def page_of(transfer: Transfer) -> str:
    return f"/transfers/{transfer.public_id}/"


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.MAINTAINER])
def test_accepted_the_owner_is_pinned_and_what_was_held_counts(moved: Downstream, role: Role) -> None:
    moved.end("failure", job_name="test")
    transfer = Transfer.objects.get()
    client = moved.client
    client.force_login(user(role, username="ada"))
    assert [row[:2] for row in Page(client.get("/console/")).tables["transfers"]] == [
        (f"torch-kestrel {KESTREL}", MOVED)
    ]
    page = Page(client.get(page_of(transfer)))
    assert page.heading == f"A new owner of {KESTREL}"
    assert [row[1].split(",")[0] for row in page.tables["held"]] == [f"CI / test run {moved.run_id}"]
    response = client.post(page_of(transfer), {"act": "accept", "reason": "announced by both"})
    assert (response.status_code, response.headers["Location"]) == (302, page_of(transfer))
    assert last_event() == {
        "action": "repository.transfer_accepted",
        "summary": f"The new owner of {KESTREL}, now {MOVED}, is accepted",
        "before": {"github_owner_id": "6001"},
        "after": {"github_owner_id": str(transfer.new_owner_id)},
        "reason": "announced by both",
        "is_decision": True,
    }
    assert Job.objects.get(job_name="test").flags == []
    assert figures() == {"success": 1, "failure": 1}
    day = Job.objects.get(job_name="test").first_seen_at.astimezone(datetime.UTC).date()
    assert Wakeup.objects.filter(topic="job_changed", key=f"{transfer.repository_id}:{day}").exists()
    assert answer(moved.start(job_name="lint")) == APPLIED
    confirm_name(NameChange.objects.get().pk)
    assert (names(), Repository.objects.get().github_owner_id) == ([MOVED], transfer.new_owner_id)
    assert "transfers" not in Page(client.get("/console/")).tables


def test_refused_what_was_held_stays_out_and_what_comes_is_refused(moved: Downstream) -> None:
    moved.end("failure", job_name="test")
    transfer = Transfer.objects.get()
    moved.client.force_login(user(Role.OPERATOR))
    moved.client.post(page_of(transfer), {"act": "refuse", "reason": "nobody knows them"})
    assert last_event()["action"] == "repository.transfer_refused"
    assert Job.objects.get(job_name="test").flags == ["held"]
    assert figures() == {"success": 1}
    assert refusal(moved.start(job_name="lint")) == (403, "identity_replaced", "repository_id")
    assert Repository.objects.get().github_owner_id == 6001
    # Looked at again, they can still be accepted.
    moved.client.post(page_of(transfer), {"act": "accept", "reason": "they wrote"})
    assert (answer(moved.start(job_name="lint")), figures()) == (
        APPLIED,
        {"success": 1, "failure": 1, "in_progress": 1},
    )


def test_a_decision_needs_a_reason_and_is_made_once(moved: Downstream) -> None:
    transfer = Transfer.objects.get()
    client = moved.client
    client.force_login(user(Role.OPERATOR))
    before = Event.objects.count()
    assert "This field is required." in Page(client.post(page_of(transfer), {"act": "accept", "reason": " "})).text
    assert client.post(page_of(transfer), {"act": "other", "reason": "x"}).status_code == 404
    assert (Event.objects.count(), Transfer.objects.get().state) == (before, "open")
    client.post(page_of(transfer), {"act": "accept", "reason": "x"})
    late = client.post(page_of(transfer), {"act": "refuse", "reason": "x"})
    assert f"Somebody has decided about {MOVED} meanwhile." in Page(late).text
    assert (Transfer.objects.get().state, Event.objects.count()) == ("accepted", before + 1)


def test_only_who_may_decide_does(moved: Downstream) -> None:
    transfer, client = Transfer.objects.get(), moved.client
    assert client.get(page_of(transfer)).status_code == 302
    for person in (user(), member_of(transfer.repository.platform)):
        client.force_login(person)
        assert [client.get(page_of(transfer)).status_code, client.post(page_of(transfer)).status_code] == [403, 403]
    assert Transfer.objects.get().state == "open"


def test_jobs_that_another_owner_sent_are_not_released(moved: Downstream) -> None:
    """Two owners after each other: accepting the second leaves what the first sent where it is."""
    again = under(moved, "raptor-demo/torch-kestrel")
    assert answer(again.start(job_name="lint")) == HELD
    second = Transfer.objects.get(new_name="raptor-demo/torch-kestrel")
    moved.client.force_login(user(Role.OPERATOR))
    moved.client.post(page_of(second), {"act": "accept", "reason": "x"})
    flags = Job.objects.order_by("pk").values_list("job_name", "flags")
    assert list(flags) == [("build", []), ("test", ["held"]), ("lint", [])]


@pytest.mark.parametrize("rows", [1, 3])
def test_the_page_asks_the_database_as_often_for_one_held_job_as_for_three(
    moved: Downstream, rows: int, django_assert_num_queries: Any
) -> None:
    for number in range(rows - 1):
        moved.start(job_name=f"shard {number}")
    moved.client.force_login(user(Role.OPERATOR))
    with django_assert_num_queries(7):
        page = Page(moved.client.get(page_of(Transfer.objects.get())))
    assert len(page.tables["held"]) == rows


def test_another_repository_is_none_of_it(moved: Downstream, downstream: Callable[..., Downstream]) -> None:
    fen = downstream(FEN)
    listed({KESTREL: 2, FEN: 2})
    dispatch(moved.client, "d-2")
    assert answer(fen.post(fen.body("d-2"))) == APPLIED
    assert Callback.objects.filter(repository__full_name=FEN, answer="held").count() == 0
