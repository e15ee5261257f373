"""What the hub makes of evidence: it proposes, reopens, and ends what fails always. From bytes to records."""

import datetime
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core import mail

from apps.audit.models import Event
from apps.core import wakeups
from apps.core.models import Wakeup
from apps.platforms.models import Repository
from apps.quarantine import detection, services, sweep
from apps.quarantine.enums import Source, State, Verb
from apps.quarantine.models import Member, Quarantine, Streak
from apps.quarantine.policy import HUB, UPSTREAM, Entry, Seen
from apps.quarantine.proofs import proof_of
from apps.relay.models import Commit
from apps.results.aliases import alias_test
from apps.results.models import Test
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.tests import catalogued
from tests.governance.test_notices import send_all
from tests.live import ClonedDatabase
from tests.quarantine.test_evidence import GREEN, HOUR, NOW, RED, came
from tests.quarantine.test_services import in_force as services_in_force
from tests.results.reporter import ended, failing, passing

DAY = 24 * HOUR

pytestmark = pytest.mark.usefixtures("cloned_database", "storage_folder")


@pytest.fixture
def kestrel(cloned_database: ClonedDatabase, storage_folder: Path) -> Repository:
    return listed({"kestrel/torch": (2, {"oncalls": ["ada", "mona"]})})["kestrel/torch"]


def sha(commit: int) -> str:
    return f"{commit:040x}"


def flaked(repository: Repository, *names: str, commit: int = 1, **fields: Any) -> None:
    """A report in which these tests failed and then passed."""
    came(repository, *(case(name) for name in names for case in (failing, passing)), head_sha=sha(commit), **fields)


def detected(repository: Repository, at: datetime.datetime = NOW + DAY, variant: str = "default") -> int:
    return detection.detect(place=detection.Place(repository.platform, variant), now=at)


def records() -> list[tuple[list[str], str]]:
    return [
        ([member.test.name for member in one.members.select_related("test").order_by("test__name")], one.state)
        for one in Quarantine.objects.order_by("pk")
    ]


def became(*, old: str, new: str) -> None:
    """A test was renamed."""
    before, after = Test.objects.get(name=old), Test.objects.get(name=new)
    alias_test(old=before, new=after, reason="renamed", actor=TESTS, now=NOW)


def in_force(kestrel: Repository, at: datetime.datetime, **values: Any) -> Quarantine:
    made = Quarantine.objects.get(state=State.PROPOSED)
    return services.put_in_force(quarantine=made, revision=made.revision, is_bound=True, actor=TESTS, now=at, **values)


# --- entering -----------------------------------------------------------------------------------------------------


def test_one_run_is_not_enough_and_two_on_two_commits_are(kestrel: Repository) -> None:
    flaked(kestrel, "test_a", commit=1)
    assert (detected(kestrel), records()) == (0, [])
    flaked(kestrel, "test_a", commit=1, hour=1)
    assert (detected(kestrel), records()) == (0, [])
    flaked(kestrel, "test_a", commit=2, hour=2)
    assert (detected(kestrel), records()) == (1, [(["test_a"], "proposed")])
    made = Quarantine.objects.get()
    assert (made.source, made.owner, made.is_aggregate, made.reason) == (
        Source.HUB,
        "ada",
        False,
        "Red and green on one commit in 3 jobs, 3 runs, 2 commits within 14 days, last on 2026-11-20 14:00.",
    )
    assert Event.objects.filter(action="quarantine.proposed", actor_label="AccelHub").count() == 1
    assert (detected(kestrel), len(records())) == (0, 1)


def test_the_hub_puts_nothing_in_force(kestrel: Repository) -> None:
    for commit in range(1, 9):
        flaked(kestrel, "test_a", commit=commit, hour=commit)
        detected(kestrel)
    assert records() == [(["test_a"], "proposed")]


def test_many_of_one_file_that_enter_at_once_are_one_record(kestrel: Repository) -> None:
    names = [f"test_{n}" for n in range(5)]
    for commit in (1, 2, 3):
        flaked(kestrel, *names, commit=commit, hour=commit)
    assert detected(kestrel) == 1
    assert records() == [(names, "proposed")]
    assert Quarantine.objects.get().is_aggregate


def test_the_owner_is_an_oncall_else_a_member_else_the_maintainers(kestrel: Repository) -> None:
    platform = kestrel.platform
    assert detection.owner_of(platform) == "ada"
    Repository.objects.update(oncalls=[])
    assert detection.owner_of(platform) == "maintainers"
    member_of(platform, username="grace")
    assert detection.owner_of(platform) == "grace"


def test_a_regression_is_never_proposed(kestrel: Repository) -> None:
    for commit in (1, 2):
        flaked(kestrel, "test_a", commit=commit, hour=commit)
    for commit in range(3, 8):
        came(kestrel, RED, head_sha=sha(commit), hour=commit)
    assert (detected(kestrel), records()) == (0, [])


def test_a_proposal_of_what_turns_out_to_fail_always_is_declined(kestrel: Repository) -> None:
    for commit in (1, 2):
        flaked(kestrel, "test_a", commit=commit, hour=commit)
    detected(kestrel)
    for commit in range(3, 8):
        came(kestrel, RED, head_sha=sha(commit), hour=commit)
    assert (detected(kestrel), records()) == (1, [(["test_a"], "declined")])


def test_what_is_in_force_and_fails_always_ends_as_broken(kestrel: Repository) -> None:
    for commit in (1, 2):
        flaked(kestrel, "test_a", commit=commit, hour=commit)
    detected(kestrel)
    in_force(kestrel, NOW + 2 * HOUR)
    for commit in range(3, 8):
        came(kestrel, RED, head_sha=sha(commit), hour=commit)
    assert (detected(kestrel), records()) == (1, [(["test_a"], "broken")])
    assert Quarantine.objects.get().end_reason == (
        "test_foo TestFoo test_a was red in every run since 2026-11-20 15:00, 5 on 5 commits: a regression, no flake."
    )


def test_what_people_declined_comes_back_on_new_evidence_alone(kestrel: Repository) -> None:
    for commit in (1, 2):
        flaked(kestrel, "test_a", commit=commit, hour=commit)
    detected(kestrel)
    made = Quarantine.objects.get()
    services.decline(quarantine=made, revision=made.revision, reason="mended", actor=TESTS, now=NOW + 3 * HOUR)
    assert detected(kestrel) == 0
    flaked(kestrel, "test_a", commit=4, hour=4)
    assert detected(kestrel) == 0
    flaked(kestrel, "test_a", commit=5, hour=5)
    assert (detected(kestrel), records()) == (1, [(["test_a"], "declined"), (["test_a"], "proposed")])


def test_a_test_that_a_pattern_fits_stands_in_it(kestrel: Repository) -> None:
    flaked(kestrel, "test_a", commit=1)
    values: dict[str, Any] = {"reason_class": "timing", "reason": "it races", "owner": "ada", "source": Source.VENDOR}
    services.propose(
        platform=kestrel.platform, variant="default", tests=[], pattern="test_foo.py", actor=TESTS, now=NOW, **values
    )
    flaked(kestrel, "test_a", "test_b", commit=2, hour=2)
    flaked(kestrel, "test_b", commit=3, hour=3)
    assert detected(kestrel) == 0


def test_flakes_under_a_former_name_are_the_tests_own(kestrel: Repository) -> None:
    flaked(kestrel, "test_old", commit=1)
    flaked(kestrel, "test_new", commit=2, hour=1)
    assert detected(kestrel) == 0
    became(old="test_old", new="test_new")
    assert (detected(kestrel), records()) == (1, [(["test_new"], "proposed")])


def test_a_preview_says_what_another_rule_set_would_flag(kestrel: Repository) -> None:
    Commit.objects.create(sha=sha(3), parent_sha=sha(2), position=3, placed_at=NOW)
    for run in range(3):
        flaked(kestrel, "test_a", commit=3, hour=run)
    flaked(kestrel, "test_b", commit=1)
    flaked(kestrel, "test_b", commit=2, hour=3)
    a, b = Test.objects.get(name="test_a").pk, Test.objects.get(name="test_b").pk
    ((present, changed),) = detection.preview(UPSTREAM, platforms=[kestrel.platform], now=NOW + 4 * HOUR)
    assert (list(present.tests), list(changed.tests)) == ([b], [a])
    assert Quarantine.objects.count() == 0


def test_somebody_who_was_faster_is_no_failure(kestrel: Repository) -> None:
    flaked(kestrel, "test_a")
    test = Test.objects.get(name="test_a")
    entry = Entry("", {test.pk: Seen(2, 2, 2, NOW, is_flaky=True)})
    place = detection.Place(kestrel.platform, "default")
    assert [detection._propose(place, entry, HUB, NOW) for _ in range(2)] == [True, False]


def test_a_test_that_stands_in_a_record_under_another_name_is_not_proposed_again(kestrel: Repository) -> None:
    for commit in (1, 2):
        flaked(kestrel, "test_old", commit=commit, hour=commit)
    detected(kestrel)
    for commit in (3, 4):
        flaked(kestrel, "test_new", commit=commit, hour=commit)
    became(old="test_old", new="test_new")
    assert (detected(kestrel), records()) == (0, [(["test_old"], "proposed")])


def test_a_regression_goes_on_under_the_new_name(kestrel: Repository) -> None:
    for commit in (1, 2):
        flaked(kestrel, "test_old", commit=commit, hour=commit)
    detected(kestrel)
    in_force(kestrel, NOW + 2 * HOUR)
    for commit in range(3, 6):
        came(kestrel, failing("test_old"), head_sha=sha(commit), hour=commit)
    came(kestrel, ended("test_new", "skipped"), head_sha=sha(6), hour=6)
    became(old="test_old", new="test_new")
    for commit in (7, 8):
        came(kestrel, failing("test_new"), head_sha=sha(commit), hour=commit)
    streak = Streak.objects.get()
    assert (streak.test.name, streak.runs, streak.is_raised) == ("test_new", 5, True)
    assert (detected(kestrel), records()) == (1, [(["test_old"], "broken")])
    came(kestrel, passing("test_new"), head_sha=sha(9), hour=9)
    assert not Streak.objects.exists()


# --- leaving ------------------------------------------------------------------------------------------------------


def on_main(*commits: int) -> None:
    Commit.objects.bulk_create(
        Commit(sha=sha(commit), parent_sha=sha(commit - 1), position=commit, placed_at=NOW) for commit in commits
    )


def quarantined(kestrel: Repository) -> Quarantine:
    """In force since NOW + 3 hours, for flakes on commits 1 and 2."""
    for commit in (1, 2):
        flaked(kestrel, "test_a", commit=commit, hour=commit)
    detected(kestrel, NOW + 3 * HOUR)
    return in_force(kestrel, NOW + 3 * HOUR)


def test_a_release_is_proposed_when_enough_passes_on_later_commits_prove_it(kestrel: Repository) -> None:
    on_main(*range(1, 40))
    made = quarantined(kestrel)
    came(kestrel, RED, head_sha=sha(3), hour=4)
    for number in range(HUB.leave_passes):
        assert sweep.propose_releases(now=NOW + 9 * DAY) == 0
        came(kestrel, GREEN, head_sha=sha(4 + number), hour=24 + 9 * number)
    came(kestrel, ended("test_a", "skipped"), head_sha=sha(30), hour=200)
    proof = proof_of(made, HUB, now=NOW + 9 * DAY)
    assert (proof.passes, proof.reds, proof.words) == (20, 1, "")
    assert sweep.propose_releases(now=NOW + 9 * DAY) == 1
    made.refresh_from_db()
    assert (made.state, made.fix_place, made.fix_sha) == (State.RELEASE_PROPOSED, 4, sha(4))
    assert proof_of(made, HUB, now=NOW + 9 * DAY).is_whole
    services.keep(quarantine=made, revision=made.revision, reason="not yet", actor=TESTS, now=NOW + 9 * DAY)
    assert sweep.propose_releases(now=NOW + 9 * DAY) == 0


def released(kestrel: Repository) -> Quarantine:
    made = quarantined(kestrel)
    values: dict[str, Any] = {"quarantine": made, "reason": "mended", "actor": TESTS}
    made = services.propose_release(**values, revision=made.revision, now=NOW + 5 * HOUR, fix_sha=sha(10), fix_place=10)
    return services.release(
        **values | {"quarantine": made, "proof": "seen"}, revision=made.revision, now=NOW + 6 * HOUR
    )


def test_a_flake_on_an_older_commit_does_not_reopen_and_a_new_one_does(kestrel: Repository) -> None:
    on_main(*range(1, 12))
    made = released(kestrel)
    flaked(kestrel, "test_a", commit=9, hour=7)
    flaked(kestrel, "test_a", commit=99, hour=8)
    assert (
        detection._reopen(
            detection.Place(kestrel.platform, "default"),
            detection.flakes_of(detection.Place(kestrel.platform, "default"), HUB, NOW + DAY),
            NOW + DAY,
        )
        == 0
    )
    flaked(kestrel, "test_a", commit=10, hour=9)
    assert detected(kestrel) == 1
    made.refresh_from_db()
    assert (records(), made.reason) == (
        [(["test_a"], "proposed")],
        "Flaky again in 1 runs, last on 2026-11-20 21:00.",
    )


def test_a_new_name_changes_nothing_about_leaving(kestrel: Repository) -> None:
    on_main(*range(1, 12))
    made = quarantined(kestrel)
    Quarantine.objects.update(expires_at=NOW + 300 * DAY)
    came(kestrel, passing("test_new"), head_sha=sha(4), hour=4)
    became(old="test_a", new="test_new")
    assert proof_of(made, HUB, now=NOW + DAY).passes == 1
    came(kestrel, ended("test_new", "skipped"), head_sha=sha(5), hour=20 * 24)
    assert sweep.vanish(now=NOW + 40 * DAY) == 0
    assert Member.objects.get(quarantine=made).last_seen_at == NOW + 20 * DAY


def test_a_flake_under_the_new_name_reopens(kestrel: Repository) -> None:
    on_main(*range(1, 12))
    made = released(kestrel)
    flaked(kestrel, "test_new", commit=10, hour=9)
    assert detected(kestrel) == 0
    became(old="test_a", new="test_new")
    assert detected(kestrel) == 1
    made.refresh_from_db()
    assert made.state == State.PROPOSED


def test_it_expires_at_its_end(kestrel: Repository) -> None:
    made = quarantined(kestrel)
    assert made.expires_at is not None
    assert sweep.expire(now=made.expires_at - HOUR) == 0
    assert (sweep.expire(now=made.expires_at), records()) == (1, [(["test_a"], "expired")])


def test_it_vanishes_when_no_report_names_it_for_thirty_days(kestrel: Repository) -> None:
    made = quarantined(kestrel)
    Quarantine.objects.update(expires_at=NOW + 300 * DAY)
    came(kestrel, ended("test_a", "skipped"), head_sha=sha(5), hour=10 * 24)
    came(kestrel, passing("test_b"), head_sha=sha(6), hour=35 * 24)
    assert sweep.vanish(now=NOW + 39 * DAY) == 0
    assert Member.objects.get(quarantine=made).last_seen_at == NOW + 10 * DAY
    assert (sweep.vanish(now=NOW + 41 * DAY), records()) == (1, [(["test_a"], "vanished")])


# --- who is told --------------------------------------------------------------------------------------------------


def announced() -> list[mail.EmailMessage]:
    """The e-mails that the ends of quarantines become."""
    Wakeup.objects.exclude(topic="quarantine_broken").delete()
    wakeups.drain()
    return send_all()


@pytest.mark.parametrize(("level", "told"), [(2, ["ada", "grace"]), (1, ["grace"])])
def test_a_quarantine_that_ends_as_broken_is_announced(kestrel: Repository, level: int, told: list[str]) -> None:
    Repository.objects.update(level=level)
    member_of(kestrel.platform, username="grace", email="grace@kestrel.example")
    member_of(kestrel.platform, username="silent", email="")
    member_of(kestrel.platform, username="gone", email="gone@kestrel.example", is_active=False)
    user(username="ada", github_login="Ada", email="ada@kestrel.example")
    user(username="mona", github_login="", email="mona@elsewhere.example")
    for commit in (1, 2):
        flaked(kestrel, "test_a", commit=commit, hour=commit, level=level)
    detected(kestrel)
    in_force(kestrel, NOW + 2 * HOUR)
    for commit in range(3, 8):
        came(kestrel, RED, head_sha=sha(commit), hour=commit, level=level)
    assert announced() == []
    detected(kestrel)
    made = Quarantine.objects.get()
    sent = announced()
    assert sorted(message.to[0].partition("@")[0] for message in sent) == told
    assert {(message.subject, message.body) for message in sent} == {
        (
            "[AccelHub] Ended: fails always: test_foo TestFoo test_a on torch (default)",
            "Ended: fails always: test_foo TestFoo test_a on torch (default)\n\n"
            f"Why:\n\n> {made.end_reason}\n\n"
            "Next: whoever looks after the test mends it, or what it tests. Its failures count again.\n\n"
            f"{settings.BASE_URL}/quarantines/{made.public_id}/\n\n"
            f"--\nAccelHub, as of {NOW + DAY:%Y-%m-%d %H:%M:%S} UTC. Nobody reads answers to this.\n",
        )
    }
    assert (detected(kestrel), announced()) == (0, [])


def test_what_expires_is_not_announced(kestrel: Repository) -> None:
    member_of(kestrel.platform, username="grace", email="grace@kestrel.example")
    made = quarantined(kestrel)
    assert made.expires_at is not None
    assert (sweep.expire(now=made.expires_at), announced()) == (1, [])


def test_hostile_names_make_a_letter_all_the_same(kestrel: Repository) -> None:
    member_of(kestrel.platform, username="grace", email="grace@kestrel.example")
    hostile = catalogued("test_x\r\nBcc: all@elsewhere.example\n" + "y" * 500)
    made = services_in_force(kestrel.platform, hostile)
    services.end(quarantine=made, verb=Verb.BREAK, reason="red\r\nin every run", actor=TESTS, now=NOW + HOUR)
    (message,) = announced()
    assert message.subject.startswith("[AccelHub] Ended: fails always: test_x TestX test_x")
    assert (len(message.subject) < 170, "\n" in message.subject, message.recipients()) == (
        True,
        False,
        ["grace@kestrel.example"],
    )
