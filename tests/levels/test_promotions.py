"""Rising to L3 and L4: frozen evidence, approvals, objections, recusal. Each rule has a test named after it."""

import datetime
from typing import Any

import pytest

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.core.clock import now
from apps.core.errors import Problem
from apps.governance.models import Notice, Waiver
from apps.governance.waiving import grant_waiver, withdraw_waiver
from apps.levels.enums import Form, PromotionState
from apps.levels.freezing import Item
from apps.levels.models import Approval, Promotion
from apps.levels.promoting import (
    approve,
    decline,
    freeze_anew,
    newest_bundle,
    object_to,
    open_promotion,
    recused,
    standing_of,
    take_due,
    withdraw,
)
from apps.levels.promotion_policy import RULES
from apps.platforms.models import LevelInterval, Repository
from apps.platforms.services import add_member
from apps.results.services import count_days
from tests.factories.jobs import job
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.policies import policy_in_force
from tests.factories.promotions import CARD, DAY, maintainer, midday, promotion, proven

pytestmark = pytest.mark.django_db


def refused(act: Any, **fields: Any) -> tuple[str, str]:
    with pytest.raises(Problem) as problem:
        act(**({"now": now()} | fields))
    return problem.value.code, problem.value.detail


def yes(made: Promotion, by: User, **fields: Any) -> Any:
    revision = Promotion.objects.get(pk=made.pk).revision
    values: dict[str, Any] = {"reason": "all figures hold", "expected_revision": revision, "by": by, "now": now()}
    return approve(promotion=made, **(values | fields))


def level_of(made: Promotion) -> int:
    return Repository.objects.get(pk=made.repository_id).level


def state_of(made: Promotion) -> str:
    return Promotion.objects.get(pk=made.pk).state


def spoil(repository: Repository, failures: int = 40) -> None:
    """So many failures yesterday that the pass rate falls below what L3 asks for."""
    for _ in range(failures):
        job(repository, "failure", at=midday(1))
    count_days([(repository.pk, midday(1).date())], now=now())


def test_frozen_first() -> None:
    """Opening freezes evidence that meets every criterion, with its hash in the log, and tells the maintainers."""
    ada = maintainer()
    User.objects.filter(pk=ada.pk).update(email="ada@upstream.example")
    made = promotion()
    bundle = newest_bundle(made)
    event = Event.objects.get(action="promotion.opened")
    assert (made.target, made.form, made.state) == (3, Form.LAZY, PromotionState.OPEN)
    assert f'"bundle":"{bundle.sha256}"' in event.body
    stated = bundle.opened()["stated"]
    assert (stated["verdict"], stated["sentence"]) == ("met", "Meets all that L3 asks for.")
    assert [notice.user for notice in Notice.objects.filter(event_seq=event.seq)] == [ada]


def test_no_result_never_passes() -> None:
    fresh = listed({"zephyr/torch": 2}, now=midday(50))["zephyr/torch"]
    code, detail = refused(
        open_promotion, repository=fresh, reason="we want it", device="npu", by=member_of(fresh.platform)
    )
    assert (code, detail.split(":")[0]) == ("not_eligible", "Not yet L3")
    spoiled = proven("zephyr/other")
    spoil(spoiled)
    code, detail = refused(
        open_promotion, repository=spoiled, reason="we want it", device="npu", by=member_of(spoiled.platform)
    )
    assert (code, "Job pass rate 41.18 %, asked >= 90 %, over 68 jobs." in detail) == ("not_eligible", True)
    assert not Promotion.objects.exists()


def test_one_step_at_a_time() -> None:
    made = listed({"zephyr/one": 1, "zephyr/four": 4})
    by = maintainer()
    for repository in made.values():
        assert refused(open_promotion, repository=repository, reason="up", by=by)[0] == "level_transition"
    first = promotion()
    assert (
        refused(open_promotion, repository=first.repository, reason="again", device="npu", by=by)[0] == "already_open"
    )


def test_maintainers_decide() -> None:
    """L3 by one maintainer's approval, L4 by those of two organisations."""
    made = promotion(proven(level=3))
    ada = maintainer("Upstream")
    assert yes(made, ada).counted == 1
    assert yes(made, maintainer("Upstream")).counted == 1
    assert refused(yes, made=made, by=ada)[0] == "promotion_stale"
    assert refused(yes, made=made, by=user(Role.MAINTAINER)) == (
        "malformed",
        "organisation: L4 counts maintainers of different organisations, and your account names none. Ask an "
        "administrator to enter it.",
    )
    reached = yes(made, maintainer("Elsewhere"))
    assert (reached.counted, reached.needed, reached.is_approved) == (2, 2, True)
    assert level_of(made) == 3
    take_due(now=made.objections_until)
    assert (level_of(made), state_of(made)) == (4, "approved")


def test_lazy_waits() -> None:
    # So short that the days without new runs do not matter.
    policy_in_force(now(), limits={"objection_working_days": 1})
    made = promotion()
    reached = yes(made, maintainer())
    assert (reached.is_approved, level_of(made)) == (True, 2)
    just_before = made.objections_until - datetime.timedelta(seconds=1)
    assert (take_due(now=just_before), level_of(made)) == (0, 2)
    assert (take_due(now=made.objections_until), level_of(made)) == (1, 3)
    decision = Event.objects.get(seq=Promotion.objects.get(pk=made.pk).event_seq or 0)
    approval = Approval.objects.get()
    assert decision.action == "repository.level_changed"
    assert f'"approvals":["#{approval.event_seq}"],"bundle":"{newest_bundle(made).sha256}"' in decision.body
    interval = LevelInterval.objects.get(repository=made.repository, ended_at=None)
    assert (interval.level, interval.event_seq) == (3, decision.seq)


def test_nobody_about_their_own() -> None:
    """The applicant, their organisation, and who speaks for the platform decide nothing, and it is on record."""
    vendor = maintainer("Zephyr Labs")
    colleague = maintainer("Zephyr Labs")
    repository = proven()
    speaker = maintainer("Third")
    made = promotion(repository, by=vendor)
    add_member(platform=repository.platform, user=speaker, actor=TESTS, now=now())
    for person in (vendor, colleague, speaker):
        for act in (approve, decline):
            assert refused(act, promotion=made, reason="mine", expected_revision=1, by=person)[0] == "recusal"
    assert sorted(recused(made)) == sorted(
        [
            f"{vendor.username} opened it",
            f"{colleague.username} is of the organisation that opened it: Zephyr Labs",
            f"{speaker.username} speaks for {repository.platform.name}",
        ]
    )
    yes(made, maintainer("Elsewhere"))
    body = Event.objects.get(action="promotion.approved").body
    assert all(person.username in body for person in (vendor, colleague, speaker))


def test_objections_cite_and_explicit_answers() -> None:
    made = promotion()
    yes(made, maintainer())
    bob = maintainer()
    said: dict[str, Any] = {"promotion": made, "words": "half of it is build jobs", "expected_revision": 1, "by": bob}
    assert refused(object_to, criterion="", **said)[0] == "malformed"
    assert refused(object_to, criterion="L4.rise.oncalls", **said)[0] == "malformed"
    object_to(criterion="L3.rise.pass_rate", now=now(), **said)
    found = Promotion.objects.get(pk=made.pk)
    assert (found.form, found.revision) == (Form.EXPLICIT, 2)
    # What was approved before it does not count, not even once the time is over.
    assert standing_of(found, now=now()).counted == 0
    assert (take_due(now=made.objections_until), level_of(made)) == (0, 2)
    code, detail = refused(yes, made=made, by=maintainer(), expected_revision=1)
    assert code == "promotion_stale"
    assert f"{bob.username} objected, citing L3.rise.pass_rate" in detail
    assert yes(made, maintainer()).is_approved
    assert (level_of(made), state_of(made)) == (3, "approved")


def test_approvals_see_all() -> None:
    """Evidence that is frozen anew makes earlier approvals void, and begins the time for objections anew."""
    made = promotion(now=now() - DAY)
    yes(made, maintainer())
    freeze_anew(promotion=made, expected_revision=1, by=made.opened_by, now=now())
    found = Promotion.objects.get(pk=made.pk)
    assert (found.revision, found.bundles.count()) == (2, 2)
    assert found.objections_until >= made.objections_until
    assert standing_of(found, now=now()).counted == 0


def _waived() -> Repository:
    """At L3 with one oncall, where L4 asks for two."""
    repository = proven(level=3, oncalls=("zoe",))
    grant_waiver(
        repository=repository,
        criterion="L4.rise.oncalls",
        reason="the second begins in May",
        until_at=now() + 30 * DAY,
        by=maintainer(),
        now=now(),
    )
    return repository


@pytest.mark.parametrize("why", ["age", "policy", "figures", "waiver"])
def test_old_evidence_decides_nothing(why: str) -> None:
    made = promotion(_waived() if why == "waiver" else None)
    later = now()
    if why == "age":
        later = now() + 8 * DAY
        expected = f"It was frozen {now():%Y-%m-%d}, 7 days are the most."
    elif why == "policy":
        policy_in_force(now(), limits={"dwell_days": 4})
        expected, later = "It is of policy 0, policy 1 is in force.", now()
    elif why == "figures":
        spoil(made.repository)
        expected = "Job pass rate: 100 %, met then, now 41.18 %, not met."
    else:
        withdraw_waiver(waiver=Waiver.objects.get(), reason="too early", by=maintainer(), now=now())
        expected, later = "Named oncalls: 1, waived then, now 1, not met.", now()
    code, detail = refused(yes, made=made, by=maintainer(), now=later)
    assert (code, expected in detail) == ("evidence_stale", True), detail
    assert level_of(made) == made.target - 1


def test_what_was_approved_lazily_is_held_when_its_evidence_falls() -> None:
    made = promotion()
    yes(made, maintainer())
    spoil(made.repository)
    assert take_due(now=made.objections_until) == 1
    found = Promotion.objects.get(pk=made.pk)
    assert (found.state, found.form, level_of(made)) == ("open", Form.EXPLICIT, 2)
    assert standing_of(found, now=now()).counted == 0
    assert take_due(now=made.objections_until + DAY) == 0
    assert Event.objects.filter(action="promotion.held").count() == 1


def test_notes_are_answered() -> None:
    """The set of jobs changed: an approval without a word about it is refused."""
    repository = proven()
    job(repository, "success", at=midday(20), job_name="test-gone")
    job(repository, "success", at=midday(1), job_name="test-new")
    count_days([(repository.pk, midday(back).date()) for back in (20, 1)], now=now())
    made = promotion(repository)
    assert newest_bundle(made).opened()["notes"] == [
        "In 14 days, jobs that are gone: test-gone.",
        "In 14 days, new jobs: test-new.",
    ]
    assert refused(yes, made=made, by=maintainer())[1].startswith("note: saw 0 characters")
    yes(made, maintainer(), note="test-gone was renamed")
    assert Approval.objects.get().note == "test-gone was renamed"


def test_declined_and_withdrawn_end_it() -> None:
    made = promotion()
    decline(promotion=made, reason="the oncall never answers", expected_revision=1, by=maintainer(), now=now())
    assert state_of(made) == "declined"
    assert refused(yes, made=made, by=maintainer())[0] == "promotion_stale"
    again = promotion(made.repository)
    withdraw(promotion=again, reason="next month", expected_revision=1, by=again.opened_by, now=now())
    assert (state_of(again), level_of(again)) == ("withdrawn", 2)
    assert take_due(now=again.objections_until) == 0


def test_another_change_of_the_level_overtakes_it() -> None:
    made = promotion()
    yes(made, maintainer())
    listed({"zephyr/torch": 1})
    assert refused(yes, made=made, by=maintainer()) == ("promotion_stale", "zephyr/torch is at L1 now.")
    assert take_due(now=now()) == 1
    assert (state_of(made), level_of(made)) == ("overtaken", 1)


@pytest.mark.parametrize(
    "item",
    [
        Item("hardware", "Not asked"),
        Item("compatibility_card", "", "text"),
        Item("compatibility_card", "Empty"),
        Item("compatibility_card", "Script", "", "javascript:alert(1)"),
        Item("compatibility_card", "Hidden\u202e", "text"),
    ],
)
def test_evidence_is_of_the_web_and_asked_for(item: Item) -> None:
    repository = proven(level=3)
    act: dict[str, Any] = {"repository": repository, "reason": "ready", "by": member_of(repository.platform)}
    assert refused(open_promotion, items=(item,), **act)[0] == "malformed"
    # Without the card the criterion has no result.
    assert refused(open_promotion, **act)[0] == "not_eligible"
    open_promotion(items=(CARD,), now=now(), **act)


def test_every_rule_is_told() -> None:
    """The rules that pages print are these."""
    assert list(RULES) == [
        "frozen_first",
        "no_result_never_passes",
        "one_step_at_a_time",
        "maintainers_decide",
        "nobody_about_their_own",
        "approvals_see_all",
        "lazy_waits",
        "objections_cite",
        "explicit_answers",
        "old_evidence_decides_nothing",
        "notes_are_answered",
    ]
