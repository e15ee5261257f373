"""E-mails about proposals: to whom, saying what, once each, and none lost."""

import datetime
import email
import smtplib
import threading
import time
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.db import connections
from pytest_django import Settings

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.core import wakeups
from apps.core.backoff import ATTEMPTS_MAX, BACKOFF_SECONDS
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.governance import notices, tasks
from apps.governance.models import Notice, Proposal
from apps.governance.notices import send_notice, sweep
from tests.factories.listing import user
from tests.factories.proposals import accepted, maintainer, proposal, resubmitted, returned, withdrawn
from tests.live import ClonedDatabase, Worker

ENOUGH = 60.0


def with_address(name: str, role: Role | None = Role.MAINTAINER, **fields: Any) -> User:
    return user(role, username=name, email=f"{name}@upstream.example", **fields)


def send_all() -> list[mail.EmailMessage]:
    """What the waiting e-mails become."""
    mail.outbox.clear()
    for pk in Notice.objects.filter(state="pending").order_by("pk").values_list("pk", flat=True):
        send_notice(notice_pk=pk, now=now())
    return list(mail.outbox)


def rows() -> list[tuple[str, int, str]]:
    return list(Notice.objects.order_by("pk").values_list("state", "attempts", "error"))


@pytest.fixture
def server(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """What the mail server answers to the next e-mails, one after the other; then it takes them."""
    answers: list[Exception] = []

    class Server(EmailBackend):
        def send_messages(self, messages: Any) -> int:
            if answers:
                raise answers.pop(0)
            return super().send_messages(messages)

    monkeypatch.setattr("django.core.mail.backends.locmem.EmailBackend", Server)
    return answers


@pytest.mark.django_db
class TestWhoHears:
    def test_maintainers_who_have_an_address_hear_of_what_waits(self) -> None:
        with_address("ada")
        with_address("admin", Role.ADMIN)
        user(Role.MAINTAINER, username="without-address")
        with_address("operator", Role.OPERATOR)
        with_address("somebody", None)
        with_address("gone", is_active=False)
        made = proposal(by=with_address("vendor"))
        sent = send_all()
        assert sorted(tuple(message.to) for message in sent) == [("ada@upstream.example",), ("admin@upstream.example",)]
        link = f"{settings.BASE_URL}/proposals/{made.public_id}/"
        at = made.submitted_at.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        assert {(message.subject, message.body) for message in sent} == {
            (
                "[AccelHub] zephyr/torch waits for a decision",
                "vendor proposes zephyr/torch (Zephyr NPU) for L1.\n\n"
                "Next: the maintainers: a maintainer accepts it with a reason, or returns it with what is missing.\n\n"
                f"{link}\n\n"
                f"--\nAccelHub, as of {at}. Nobody reads answers to this.\n",
            )
        }
        assert {message.extra_headers["Auto-Submitted"] for message in sent} == {"auto-generated"}
        # The contact's address is the vendor's own: it stands in no maintainer's letter.
        assert not any("zephyr.example" in message.body for message in sent)

    def test_the_contact_hears_of_both_decisions(self) -> None:
        ada = maintainer("ada")
        made = returned(proposal(), words="Which one?\nAnd where?")
        (message,) = send_all()
        assert (message.to, message.subject) == (["ci@zephyr.example"], "[AccelHub] zephyr/torch was returned")
        assert "What is missing:\n\n> Which one?\n> And where?\n\nNext: the vendor: complete" in message.body
        made = resubmitted(made, contact="new@zephyr.example")
        assert send_all() == []
        accepted(made, by=ada)
        (message,) = send_all()
        assert (message.to, message.subject) == (["new@zephyr.example"], "[AccelHub] zephyr/torch is listed at L1")
        assert "ada accepted the proposal: zephyr/torch is listed at L1.\n\nThe reason:\n\n> the card is there\n" in (
            message.body
        )
        assert "\n\nHow: http://127.0.0.1:8000/docs/first-callback/\n\n" in message.body

    def test_a_completed_one_is_told_to_the_maintainers_and_a_withdrawn_one_to_nobody(self) -> None:
        with_address("ada")
        made = resubmitted(returned(proposal()))
        Notice.objects.exclude(transition__verb="resubmit").delete()
        (message,) = send_all()
        assert (message.to, "What changed:\n\n> zv2\n" in message.body) == (["ada@upstream.example"], True)
        before = Notice.objects.count()
        withdrawn(made)
        assert Notice.objects.count() == before

    def test_who_left_meanwhile_is_not_written_to(self) -> None:
        ada, bob = with_address("ada"), with_address("bob")
        proposal()
        User.objects.filter(pk=ada.pk).update(is_active=False)
        User.objects.filter(pk=bob.pk).update(email="")
        assert send_all() == []
        assert rows() == [("given_up", 1, "nobody to write to")] * 2


@pytest.mark.django_db
class TestDelivery:
    @pytest.fixture(autouse=True)
    def _one(self) -> None:
        with_address("ada")
        proposal()

    def test_one_is_sent_once(self) -> None:
        notice = Notice.objects.get()
        moment = now()
        assert [send_notice(notice_pk=notice.pk, now=moment) for _ in range(2)] == ["sent", None]
        (message,) = mail.outbox
        notice.refresh_from_db()
        assert (notice.state, notice.attempts, notice.error) == ("sent", 1, "")
        assert notice.sent_at is not None
        assert notice.sent_at >= moment
        assert message.extra_headers["Message-ID"] == f"<{notice.public_id}@127.0.0.1>"

    @pytest.mark.parametrize(
        ("answer", "state"),
        [
            (ConnectionRefusedError("no server"), "pending"),
            (TimeoutError("slow"), "pending"),
            (smtplib.SMTPServerDisconnected("gone"), "pending"),
            (smtplib.SMTPAuthenticationError(535, b"bad password"), "pending"),
            (smtplib.SMTPRecipientsRefused({"a@b.example": (450, b"later")}), "pending"),
            (smtplib.SMTPRecipientsRefused({"a@b.example": (550, b"unknown")}), "given_up"),
            (smtplib.SMTPDataError(554, b"spam"), "given_up"),
            (smtplib.SMTPSenderRefused(451, b"later", "a@b.example"), "pending"),
            (ValueError("no address"), "given_up"),
        ],
    )
    def test_what_a_refusal_leads_to(
        self, server: list[Exception], caplog: pytest.LogCaptureFixture, answer: Exception, state: str
    ) -> None:
        server.append(answer)
        assert send_all() == []
        assert rows() == [(state, 1, str(answer))]
        notice = Notice.objects.get()
        # Whose address it was stands in no log of a program.
        assert [record.getMessage() for record in caplog.records if "notices" in record.name] == [
            f"e-mail {notice.public_id} not sent, now {state.replace('_', ' ')}"
        ]

    def test_a_server_that_is_away_is_asked_again_later_and_later(self, server: list[Exception]) -> None:
        server += [ConnectionRefusedError("no server")] * ATTEMPTS_MAX
        for longest in BACKOFF_SECONDS:
            assert send_all() == []
            waiting = Notice.objects.get()
            due = waiting.next_attempt_at
            assert 0 <= (due - waiting.changed_at).total_seconds() <= longest
            Wakeup.objects.all().delete()
            early = due - datetime.timedelta(microseconds=1)
            assert (send_notice(notice_pk=waiting.pk, now=early), sweep(now=early), sweep(now=due)) == (None, 0, 1)
            assert list(Wakeup.objects.values_list("topic", "key")) == [("notice_pending", str(waiting.pk))]
            Notice.objects.update(next_attempt_at=now())
        assert send_all() == []
        assert rows() == [("given_up", ATTEMPTS_MAX, "no server")]
        assert sweep(now=now() + datetime.timedelta(days=9)) == 0

    def test_a_worker_that_died_while_sending_loses_nothing(self) -> None:
        Notice.objects.update(state="sending", attempts=1, changed_at=now())
        assert sweep(now=now()) == 0
        later = now() + datetime.timedelta(hours=1)
        assert sweep(now=later) == 1
        assert rows() == [("pending", 1, "the worker was lost while sending")]
        Notice.objects.update(next_attempt_at=now())
        assert len(send_all()) == 1
        Notice.objects.update(state="sending", attempts=ATTEMPTS_MAX, sent_at=None)
        assert sweep(now=later) == 0
        assert rows()[0][0] == "given_up"

    def test_who_was_given_up_for_lost_does_not_overwrite_the_next_attempt(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def slow(notice: Notice) -> bool:
            Notice.objects.filter(pk=notice.pk).update(state="sending", attempts=2)
            return True

        monkeypatch.setattr(notices, "_send", slow)
        send_all()
        assert rows() == [("sending", 2, "")]
        assert "was taken back while it was sent" in caplog.text

    def test_the_wakeup_leads_to_the_task(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[int] = []
        monkeypatch.setattr(tasks.send_notice, "delay", asked.append)
        wakeups.drain()
        assert asked == [Notice.objects.get().pk]
        assert tasks.send_notice(asked[0]) == "sent"
        assert tasks.sweep_notices() == 0


def test_two_workers_at_once_send_one_email(cloned_database: ClonedDatabase) -> None:
    with_address("ada")
    for number in range(5):
        mail.outbox.clear()
        made = proposal(f"zephyr/torch-{number}")
        pk = Notice.objects.get(transition__proposal=made).pk
        both = threading.Barrier(2, timeout=30)
        outcomes: list[str | None] = []

        def send(pk: int = pk, both: threading.Barrier = both, outcomes: list[str | None] = outcomes) -> None:
            both.wait()
            outcomes.append(send_notice(notice_pk=pk, now=now()))
            connections.close_all()

        threads = [threading.Thread(target=send) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(map(str, outcomes)) == ["None", "sent"]
        assert len(mail.outbox) == 1


def test_a_real_worker_writes_the_file(celery_worker_process: Worker) -> None:
    with_address("ada")
    folder = Path(settings.DATA_DIR) / "mail"
    made = proposal(at=now())
    deadline = time.monotonic() + ENOUGH
    while not Notice.objects.filter(state="sent").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(Notice.objects.values_list("state", "attempts")) == [("sent", 1)], celery_worker_process.log.read_text()
    about = [message for message in map(_read, folder.iterdir()) if str(made.public_id) in str(message.get_payload())]
    assert [(message["To"], message["Subject"]) for message in about] == [
        ("ada@upstream.example", "[AccelHub] zephyr/torch waits for a decision")
    ]
    assert Proposal.objects.get().state == "waiting"


def _read(path: Path) -> Message:
    return email.message_from_string(path.read_text())
