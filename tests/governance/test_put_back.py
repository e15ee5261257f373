"""Proposals where upstream's file decides, and the e-mails about a file that is not taken."""

import pytest
from django.conf import settings
from django.core import mail
from django.test import Client

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.core import wakeups
from apps.core.clock import now
from apps.core.errors import Problem
from apps.governance.models import Notice, Proposal, Transition
from apps.governance.notices import send_notice
from apps.platforms.models import AllowlistAlarm, AllowlistEdit, Repository
from tests.factories.listing import user
from tests.factories.pages import Page
from tests.factories.proposals import accepted, fresh, maintainer, proposal
from tests.factories.upstream import Upstream

pytestmark = pytest.mark.django_db
LISTED = "L1:\n  - acme/one\n"


def drain(monkeypatch: pytest.MonkeyPatch) -> None:
    """What wake-ups do in the database; nothing is sent."""
    from apps.governance import tasks as governance_tasks
    from apps.platforms import tasks as platform_tasks

    for task in (
        *(governance_tasks.send_notice, platform_tasks.open_pull_request, platform_tasks.pin_repository),
        platform_tasks.sync_allowlist,
    ):
        monkeypatch.setattr(task, "delay", lambda *args: None)
    wakeups.drain()


def send_all() -> list[mail.EmailMessage]:
    mail.outbox.clear()
    for pk in Notice.objects.filter(state="pending").order_by("pk").values_list("pk", flat=True):
        send_notice(notice_pk=pk, now=now())
    return list(mail.outbox)


def edit() -> AllowlistEdit:
    return AllowlistEdit.objects.get()


def history(made: Proposal) -> list[tuple[str, str, str, int | None]]:
    rows = Transition.objects.filter(proposal=made).order_by("pk")
    return [(row.verb, row.state, row.actor_label, row.event_seq) for row in rows]


def test_an_accepted_proposal_is_listed_when_the_file_says_so(upstream: Upstream, client: Client) -> None:
    upstream.says(LISTED)
    made = accepted(proposal("zephyr/torch", device="zv2"), by=maintainer("ada"))
    repository = Repository.objects.get(full_name="zephyr/torch")
    assert (made.state, made.repository, repository.level) == ("accepted", repository, 0)
    assert (edit().level_before, edit().level, edit().oncalls, edit().events) == (
        *(0, 1, ["zoe", "yann"]),
        ["pull_request"],
    )
    message = send_all()[-1]
    assert message.subject == "[AccelHub] zephyr/torch is accepted for L1"
    assert (
        "ada accepted the proposal: zephyr/torch will be listed at L1 when upstream's file says so.\n\nThe reason:\n\n"
        "> the card is there\n\nNext: upstream merges the pull request on its allowlist, linked from the proposal's "
        "page."
    ) in message.body
    upstream.open_pull_requests()
    client.force_login(made.proposer)
    page = Page(client.get(f"/proposals/{made.public_id}/"))
    assert "◆ waits for its pull request Decision" in page.text
    upstream.held.merge(1)
    assert upstream.text == (
        "L1:\n  - acme/one\n  - zephyr/torch:\n      oncalls: zoe, yann\n      events: [pull_request]\n"
    )
    upstream.round()
    repository.refresh_from_db()
    assert (repository.level, repository.oncalls, repository.events) == (1, ["zoe", "yann"], ["pull_request"])
    assert (edit().state, fresh(made).state) == ("merged", "accepted")


def test_while_it_waits_nobody_proposes_the_repository_again(upstream: Upstream) -> None:
    upstream.says(LISTED)
    accepted(proposal("zephyr/torch"))
    with pytest.raises(Problem) as caught:
        proposal("Zephyr/Torch")
    assert (caught.value.code, caught.value.detail) == (
        "already_listed",
        f"full_name: decision #{edit().event_seq} about zephyr/torch waits for upstream's file. Wait for it, or ask a "
        "maintainer.",
    )


@pytest.mark.parametrize("end", ["closed", "refused"])
def test_when_the_file_will_not_say_so_the_proposal_waits_again(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    upstream.says(LISTED)
    user(Role.MAINTAINER, username="ada", email="ada@upstream.example")
    made = accepted(proposal("zephyr/torch"))
    first = edit().event_seq
    Notice.objects.all().delete()
    if end == "refused":
        upstream.github.fail("/git/refs$", 403, message="no")
        upstream.open_pull_requests()
        words = "GitHub answered 403: no"
    else:
        upstream.open_pull_requests()
        upstream.held.close(1)
        upstream.round()
        words = "pull request #1 was closed without being merged"
    drain(monkeypatch)
    again = fresh(made)
    assert (again.state, again.revision, again.platform, again.repository) == ("waiting", 1, None, None)
    assert history(made)[-1] == ("put_back", "waiting", "AccelHub", first)
    (message,) = send_all()
    assert (message.to, message.subject) == (
        ["ada@upstream.example"],
        "[AccelHub] zephyr/torch waits for a decision",
    )
    assert (
        "The proposal of zephyr/torch for L1 was accepted, and upstream's file does not say so.\n\n"
        f"How its pull request ended:\n\n> {words}\n\nNext: the maintainers: a maintainer accepts it"
    ) in message.body
    assert Event.objects.filter(action="proposal.put_back").count() == 1
    accepted(again)  # on the same submission
    assert [verb for verb, *_ in history(made)] == ["submit", "accept", "put_back", "accept"]
    upstream.open_pull_requests()
    upstream.held.merge(upstream.held.pulls[-1].number)
    upstream.round()
    assert Repository.objects.get(full_name="zephyr/torch").level == 1


def test_it_stays_accepted_where_somebody_proposed_the_repository_meanwhile(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.says(LISTED)
    made = accepted(proposal("zephyr/torch"))
    upstream.open_pull_requests()
    upstream.held.close(1)
    upstream.round()
    proposal("zephyr/torch")
    drain(monkeypatch)
    assert fresh(made).state == "accepted"
    assert not Event.objects.filter(action="proposal.put_back").exists()


def test_a_maintainer_sees_what_acceptance_means_here(upstream: Upstream, client: Client) -> None:
    upstream.says(LISTED)
    made = proposal("zephyr/torch")
    client.force_login(maintainer())
    given = {"accept-reason": "the card is there", "accept-revision": "1"}
    page = Page(client.post(f"/proposals/{made.public_id}/accept/", given, follow=True))
    assert f"Decision #{edit().event_seq}: zephyr/torch is listed at L1 when upstream's file says so." in page.text


class TestAlarm:
    @pytest.fixture(autouse=True)
    def _people(self) -> None:
        for name, role in (("ada", Role.MAINTAINER), ("otto", Role.OPERATOR), ("amy", Role.ADMIN), ("vera", None)):
            user(role, username=name, email=f"{name}@upstream.example")
        user(Role.OPERATOR, username="without")

    def test_who_looks_after_the_allowlist_hears_of_it_once(
        self, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        upstream.says("L3:\n  npu:\n    acme/one:\n    acme/two:\nL1:\n  - acme/three\n")
        upstream.says("L1:\n  - acme/three\n")
        for _ in range(2):
            drain(monkeypatch)
            upstream.round()
        sent = send_all()
        assert sorted(message.to[0].partition("@")[0] for message in sent) == ["ada", "amy", "otto"]
        alarm = AllowlistAlarm.objects.get()
        assert {(message.subject, message.body) for message in sent} == {
            (
                "[AccelHub] Allowlist file not taken: much is gone",
                "The allowlist file upstream is not taken. The last good copy stays in force.\n\n"
                "More than 20 % of the entries are gone at once, and more than 2; or more than 1 of those at L3 and "
                "L4. What was seen:\n\n> 2 of 3 entries are gone: acme/one (L3), acme/two (L3)\n\n"
                "Next: somebody repairs the file, or a maintainer accepts it as it is.\n\n"
                f"{settings.BASE_URL}/allowlist/\n\n"
                f"--\nAccelHub, as of {alarm.raised_at:%Y-%m-%d %H:%M:%S} UTC. Nobody reads answers to this.\n",
            )
        }
        assert send_all() == []

    def test_one_that_only_a_repair_ends_says_so(self, upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
        upstream.says("<html>")
        drain(monkeypatch)
        assert {message.subject for message in send_all()} == {"[AccelHub] Allowlist file not taken: a web page"}
        assert all("Next: somebody repairs the file.\n" in message.body for message in mail.outbox)

    def test_who_left_meanwhile_is_not_written_to(self, upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
        upstream.says("")
        drain(monkeypatch)
        User.objects.update(is_active=False)
        assert send_all() == []
