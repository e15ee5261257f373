"""Where upstream's file is the authority, a decision opens a pull request, and is in force when the file says so."""

import datetime
from typing import Any

import pytest

from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.audit.services import Actor, command_actor
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.models import Wakeup
from apps.platforms import edits, tasks
from apps.platforms.edits import open_pull_request, sweep
from apps.platforms.models import AllowlistEdit, Repository
from apps.platforms.services import change_level
from apps.platforms.sync_policy import OPENING_GIVEN_UP_AFTER, OPENING_LOST_AFTER
from tests.factories.upstream import PATH, Upstream

pytestmark = pytest.mark.django_db

LISTED = """\
# Ask before you touch this.
L1:
  - acme/one: alice  # since spring
L2:
  - acme/two: {events: [nightly]}
L3:
  npu:
    acme/three: [bob]
"""
ADA = command_actor("tests")


def decided(name: str = "acme/one", level: int = 2, *, actor: Actor = ADA, reason: str = "60 days green") -> Event:
    repository = Repository.objects.get(full_name=name)
    return change_level(repository=repository, level=level, reason=reason, actor=actor, now=now())


def level_of(name: str = "acme/one") -> int:
    return Repository.objects.get(full_name=name).level


def edit() -> AllowlistEdit:
    return AllowlistEdit.objects.get()


def row(*names: str) -> tuple[Any, ...]:
    return AllowlistEdit.objects.values_list(*names).get()


def newest() -> dict[str, Any]:
    event = Event.objects.first()
    assert event is not None
    return body_of(event)


def test_a_decision_is_on_record_and_not_in_force(upstream: Upstream) -> None:
    upstream.says(LISTED)
    event = decided()
    assert level_of() == 1
    body = body_of(event)
    for name in ("format", "seq", "at", "actor", "subject"):
        del body[name]
    assert body == {
        "action": "repository.level_decided",
        "summary": "acme/one: L1 to L2 decided, in force when upstream's file says so",
        "before": {"level": "L1", "device": "", "oncalls": ["alice"], "events": ["nightly", "pull_request"]},
        "after": {"level": "L2", "device": "", "oncalls": ["alice"], "events": ["nightly", "pull_request"]},
        "reason": "60 days green",
        "evidence": {"file": "pytorch/pytorch/.github/allowlist.yml"},
        "is_decision": True,
    }
    assert row("event_seq", "level_before", "level", "state", "pull_number") == (event.seq, 1, 2, "pending", None)
    assert list(Wakeup.objects.filter(topic="allowlist_edit_pending").values_list("key", flat=True)) == [str(edit().pk)]


def test_its_pull_request_changes_one_entry_and_no_other_byte(upstream: Upstream) -> None:
    upstream.says(LISTED)
    event = decided(reason="green\n```\n@everyone #1")
    assert upstream.open_pull_requests() == ["opened"]
    (pull,) = upstream.held.pulls
    assert (pull.title, pull.head, pull.base) == (
        "[CRCR] acme/one: L1 to L2",
        f"accelhub/acme/one-{event.seq}",
        "main",
    )
    assert pull.body == (
        f"Decision #{event.seq} of AccelHub, by operator, by manage.py tests: "
        f"http://127.0.0.1:8000/decisions/{event.seq}/\n\n```text\ngreen\n'''\n@everyone #1\n```\n\n"
        "Merging this puts the decision in force; closing it puts the decision back."
    )
    assert upstream.held.read(PATH, branch=pull.head).decode() == LISTED.replace(
        "  - acme/one: alice  # since spring\nL2:\n  - acme/two: {events: [nightly]}\n",
        "L2:\n  - acme/two: {events: [nightly]}\n  - acme/one: alice  # since spring\n",
    )
    assert upstream.text == LISTED
    assert row("state", "pull_number", "pull_url", "error") == (
        *("opened", 1, "https://github.com/pytorch/pytorch/pull/1"),
        "",
    )
    assert (newest()["action"], newest()["is_decision"]) == ("repository.pull_request_opened", False)
    upstream.round()
    assert (level_of(), edit().state) == (1, "opened")


@pytest.mark.parametrize("end", ["merge", "land"])
def test_it_is_in_force_when_the_file_says_so(upstream: Upstream, end: str) -> None:
    upstream.says(LISTED)
    event = decided()
    upstream.open_pull_requests()
    sha = getattr(upstream.held, end)(1)  # upstream's bot lands a commit, and GitHub calls that closed
    upstream.round()
    assert (level_of(), row("state", "commit_sha", "error")) == (2, ("merged", sha, ""))
    body = newest()
    assert (body["action"], body["summary"]) == ("repository.level_changed", "acme/one raised from L1 to L2")
    assert body["reason"] == f"decision #{event.seq}, in pytorch/pytorch/.github/allowlist.yml at {sha[:12]}"
    assert (body["evidence"]["decision"], body["evidence"]["commit"], body["evidence"]["pull_request"]) == (
        *(event.seq, sha),
        "https://github.com/pytorch/pytorch/pull/1",
    )
    interval = Repository.objects.get(full_name="acme/one").level_intervals.first()
    assert interval is not None
    assert (interval.level, interval.event_seq) == (2, body["seq"])
    count = Event.objects.count()
    upstream.round()
    assert Event.objects.count() == count


def test_a_decision_about_an_entry_that_is_to_go(upstream: Upstream) -> None:
    upstream.says(LISTED)
    decided("acme/three", 0)
    upstream.open_pull_requests()
    upstream.held.merge(1)
    upstream.round()
    assert (upstream.text, level_of("acme/three"), edit().state) == (
        LISTED.replace("  npu:\n    acme/three: [bob]\n", ""),
        *(0, "merged"),
    )


def test_closed_without_that_the_decision_is_put_back(upstream: Upstream) -> None:
    upstream.says(LISTED)
    event = decided()
    upstream.open_pull_requests()
    upstream.held.close(1)
    upstream.round()
    words = "pull request #1 was closed without being merged"
    assert (level_of(), row("state", "error")) == (1, ("closed", words))
    body = newest()
    assert {name: body[name] for name in ("action", "summary", "reason", "evidence", "is_decision")} == {
        "action": "repository.decision_put_back",
        "summary": f"acme/one stays at L1: decision #{event.seq} is put back",
        "reason": words,
        "evidence": {"decision": event.seq, "pull_request": "https://github.com/pytorch/pytorch/pull/1"},
        "is_decision": True,
    }
    assert Wakeup.objects.filter(topic="decision_put_back", key=str(edit().pk)).exists()
    count = Event.objects.count()
    upstream.round()
    assert Event.objects.count() == count
    assert decided().seq == count + 1  # it can be decided anew


def test_while_the_file_is_not_taken_nothing_is_put_back(upstream: Upstream) -> None:
    upstream.says(LISTED)
    decided()
    upstream.open_pull_requests()
    upstream.held.close(1)
    upstream.says("")
    assert edit().state == "opened"
    upstream.says(LISTED)
    assert edit().state == "closed"


def test_merged_and_changed_again_is_merged(upstream: Upstream) -> None:
    upstream.says(LISTED)
    decided()
    upstream.open_pull_requests()
    sha = upstream.held.merge(1)
    upstream.says(LISTED)
    assert (level_of(), row("state", "commit_sha")) == (1, ("merged", sha))


def test_no_second_decision_while_one_waits(upstream: Upstream) -> None:
    upstream.says(LISTED)
    event = decided()
    with pytest.raises(Problem) as caught:
        decided(level=0)
    assert (caught.value.code, caught.value.detail) == (
        "decision_waits",
        f"Decision #{event.seq} about acme/one still waits for upstream's file: have its pull request merged or "
        "closed, then decide again.",
    )
    assert decided("acme/two", 1).seq == event.seq + 1


def test_what_somebody_else_wrote_into_the_file_meanwhile_needs_no_pull_request(upstream: Upstream) -> None:
    upstream.says(LISTED)
    decided()
    upstream.push(LISTED.replace("L1:\n  - acme/one: alice  # since spring\nL2:", "L1:\nL2:\n  - acme/one: alice"))
    assert upstream.open_pull_requests() == ["pending"]
    assert edit().error == "the file says so already: the next round takes it"
    upstream.round()
    assert (level_of(), edit().state, upstream.held.pulls) == (2, "merged", [])


# --- what fails on the way ---

STEPS = {
    "looking for the pull request": "/pulls",
    "the main branch": "/git/refs?/heads/main",
    "the file": "/contents/",
    "the branch": "/git/refs$",
}


@pytest.mark.parametrize("status", [502, 0, 409])
@pytest.mark.parametrize("path", STEPS.values(), ids=STEPS)
def test_whichever_step_fails_the_next_attempt_goes_on_from_there(upstream: Upstream, path: str, status: int) -> None:
    upstream.says(LISTED)
    decided()
    upstream.github.fail(path, status)
    assert upstream.open_pull_requests() == ["pending"]
    assert edit().error.startswith("GitHub ")
    assert upstream.open_pull_requests() == ["opened"]
    assert (len(upstream.held.pulls), edit().error) == (1, "")


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_a_worker_that_died_after_writing_is_followed_by_one_that_finds_it(upstream: Upstream, method: str) -> None:
    upstream.says(LISTED)
    decided()
    upstream.open_pull_requests()
    (pull,) = upstream.held.pulls
    AllowlistEdit.objects.update(
        state="opening", pull_number=None, pull_url="", changed_at=now() - OPENING_LOST_AFTER * 2
    )
    if method == "PUT":  # it died before the pull request
        upstream.held._pulls.clear()
    assert sweep(now=now()) == 1
    assert upstream.open_pull_requests() == ["opened"]
    assert [one.head for one in upstream.held.pulls] == [pull.head]
    assert len(upstream.held.history(pull.head, PATH)) == 2  # the file, and one edit of it


def test_a_file_that_moved_on_is_no_obstacle(upstream: Upstream) -> None:
    upstream.says(LISTED)
    decided()
    upstream.github.fail("/pulls", 502, times=2)
    upstream.open_pull_requests()
    upstream.says(LISTED.replace("# Ask before", "# Do ask before"))
    upstream.github.heal()
    assert upstream.open_pull_requests() == ["opened"]
    upstream.held.merge(1)
    assert upstream.text.startswith("# Do ask before")


def test_what_github_refuses_is_put_back_with_its_words(upstream: Upstream) -> None:
    upstream.says(LISTED)
    event = decided()
    upstream.github.fail("/git/refs$", 403, message="Resource not accessible by integration")
    assert upstream.open_pull_requests() == ["failed"]
    words = "GitHub answered 403: Resource not accessible by integration"
    assert row("state", "error") == ("failed", words)
    assert (newest()["action"], newest()["reason"]) == (
        "repository.decision_put_back",
        f"no pull request could be opened: {words}",
    )
    assert newest()["evidence"] == {"decision": event.seq, "pull_request": ""}
    assert Wakeup.objects.filter(topic="decision_put_back", key=str(edit().pk)).exists()


def test_a_file_that_cannot_be_edited_by_lines_is_said(upstream: Upstream) -> None:
    upstream.says("L1: [acme/one]\n")
    decided()
    assert upstream.open_pull_requests() == ["failed"]
    assert edit().error == (
        "pytorch/pytorch/.github/allowlist.yml cannot be edited: L1 stands in brackets: write one entry to a line."
    )


def test_a_branch_that_is_gone_is_said(upstream: Upstream) -> None:
    upstream.says(LISTED)
    decided()
    upstream.github.fail("/git/refs?/heads/main", 404, message="Not Found")
    assert upstream.open_pull_requests() == ["failed"]
    assert edit().error == "GitHub answered 404: pytorch/pytorch has no branch main"


def test_after_a_day_without_github_the_decision_is_put_back(upstream: Upstream) -> None:
    upstream.says(LISTED)
    decided()
    upstream.github.fail("/pulls", 502, times=9)
    assert open_pull_request(edit_pk=edit().pk, now=edit().decided_at + OPENING_GIVEN_UP_AFTER) == "pending"
    late = edit().decided_at + OPENING_GIVEN_UP_AFTER + datetime.timedelta(minutes=1)
    assert open_pull_request(edit_pk=edit().pk, now=late) == "failed"


def test_only_one_opens_it(upstream: Upstream) -> None:
    upstream.says(LISTED)
    decided()
    AllowlistEdit.objects.update(state="opening")
    assert open_pull_request(edit_pk=edit().pk, now=now()) is None
    assert sweep(now=now()) == 0


def test_who_was_given_up_for_lost_does_not_overwrite_the_next_attempt(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    upstream.says(LISTED)
    decided()
    sound = edits._open

    def slow(taken: AllowlistEdit) -> Any:
        outcome = sound(taken)
        AllowlistEdit.objects.update(state="pending", changed_at=now())
        return outcome

    monkeypatch.setattr(edits, "_open", slow)
    upstream.open_pull_requests()
    assert row("state", "pull_number") == ("pending", None)
    assert "was taken back while its pull request was opened" in caplog.text


def test_the_tasks_go_the_same_way(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.core import wakeups

    upstream.push(LISTED)
    tasks.sync_allowlist()
    decided()
    asked: list[int] = []
    monkeypatch.setattr(tasks.open_pull_request, "delay", asked.append)
    wakeups.drain()
    assert asked == [edit().pk]
    assert tasks.open_pull_request(asked[0]) == "opened"
    AllowlistEdit.objects.update(state="pending")
    tasks.sync_allowlist()
    assert Wakeup.objects.filter(topic="allowlist_edit_pending", key=str(edit().pk)).exists()
