"""Every rule of appeals, by its name."""

import datetime
from typing import Any

import pytest

from apps.accounts.policy import Role
from apps.accounts.services import actor_of
from apps.appeals.enums import Outcome, State
from apps.appeals.models import Appeal, AppealedRow
from apps.appeals.policy import is_overdue, state_at
from apps.appeals.services import remind_overdue, url_of
from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.audit.services import HUB, Subject, record
from apps.core.errors import Problem
from apps.governance.models import Notice
from apps.platforms.models import Platform, Repository
from apps.platforms.services import restore_overturned
from apps.results.models import SetAside
from tests.appeals.field import DAY, HOUR, NOW, Field, organisation
from tests.factories.jobs import job
from tests.factories.listing import listed, member_of, user


def at(day: int, month: int = 11) -> datetime.datetime:
    """Midnight, UTC."""
    return datetime.datetime(2026, month, day, tzinfo=datetime.UTC)


def refused(code: str, act: Any, *args: Any, **values: Any) -> Problem:
    with pytest.raises(Problem) as found:
        act(*args, **values)
    assert found.value.code == code, found.value.detail
    return found.value


# --- who, what, when ---------------------------------------------------------------------------------------------


def test_a_member_contests_a_figure_with_rows(field: Field) -> None:
    made = field.contests(links=["https://ci.example/run/7"])
    assert (made.state, made.stood, made.deadline_at) == (
        "open",
        "Job pass rate: 80.0% over 20 rows in 14 days",
        at(5, 12),
    )
    event = Event.objects.latest("seq")
    body = body_of(event)
    assert (event.action, event.subject_kind, event.subject_id) == ("appeal.opened", "appeal", str(made.public_id))
    assert (body["summary"], body["reason"], body["evidence"]) == (
        "torch appeals pass_rate of zephyr/torch: infrastructure failed",
        "The runner's disk was full.",
        {
            "decision": None,
            "figure": "pass_rate",
            "jobs": [str(one.public_id) for one in field.red],
            "stood": made.stood,
            "links": ["https://ci.example/run/7"],
        },
    )


def test_who_does_not_speak_for_the_platform_appeals_nothing(field: Field) -> None:
    for who in (user(), field.ada):
        refused("not_permitted", field.contests, by=who)
    assert not Appeal.objects.exists()


@pytest.mark.parametrize(
    ("values", "field_name"),
    [
        ({"claim": "procedure"}, "claim"),
        ({"claim": "weather"}, "claim"),
        ({"words": "  "}, "words"),
        ({"words": "x" * 5_001}, "words"),
        ({"figure": "e2e_seconds_p50"}, "figure"),
        ({"days": 13}, "days"),
        ({"links": ["javascript:alert(1)"]}, "links"),
        ({"links": ["https://a.example/\u202egnp"]}, "links"),
        ({"links": ["https://a.example/"] * 11}, "links"),
    ],
)
def test_an_appeal_says_what_and_why(field: Field, values: dict[str, Any], field_name: str) -> None:
    assert refused("malformed", field.contests, **values).field == field_name
    assert not Appeal.objects.exists()


def test_rows_are_ended_pull_request_jobs_of_the_repository_in_the_window(field: Field) -> None:
    other = listed({"zephyr/torch": 3, "fen/torch": 2}, now=NOW)["fen/torch"]
    ours = field.zephyr
    wrong = [
        job(other, "failure", at=NOW - DAY),
        job(ours, at=NOW - DAY),
        job(ours, "failure", at=NOW - DAY, event_type="nightly"),
        job(ours, "failure", at=NOW - 15 * DAY),
    ]
    for one in wrong:
        assert refused("malformed", field.contests, field.red[0], one).field == "jobs"
    many = [job(ours, "failure", at=NOW - DAY) for _ in range(201)]
    assert "at most" in refused("malformed", field.contests, *many).detail
    assert not AppealedRow.objects.exists()


def test_a_figure_is_contested_with_rows(field: Field) -> None:
    from apps.appeals.services import Figure, appeal_figure

    problem = refused(
        "malformed",
        appeal_figure,
        figure=Figure(field.zephyr, "pass_rate", 14),
        said=field.said(),
        by=field.zoe,
        now=NOW,
    )
    assert problem.field == "jobs"


def test_a_decision_is_contested_in_time(field: Field) -> None:
    lowered = field.lowers(field.ada, at=NOW - 30 * DAY)
    refused("appeal_late", field.contests_decision, lowered, at=NOW + HOUR)
    assert field.contests_decision(lowered, at=NOW).decision_seq == lowered.seq


def test_a_decision_that_is_about_no_single_platform_is_not_contested(field: Field) -> None:
    event = Event.objects.filter(action="repository.listed").first()
    assert event is not None
    assert refused("malformed", field.contests_decision, event).field == "decision"


# --- once --------------------------------------------------------------------------------------------------------


def test_the_same_rows_are_not_appealed_twice(field: Field) -> None:
    first = field.contests(*field.red[:2])
    problem = refused("already_appealed", field.contests, *field.red[1:3])
    assert problem.detail == f"jobs: {field.red[1].public_id} stands in the appeal {url_of(first)}, leave it out."
    field.decides(first, Outcome.UPHOLD)
    refused("already_appealed", field.contests, field.red[0])
    assert field.contests(*field.red[2:]).rows.count() == 2


def test_a_withdrawn_appeal_frees_its_rows_and_its_decision(field: Field) -> None:
    lowered = field.lowers(user(Role.MAINTAINER))
    first = field.contests_decision(lowered, *field.red)
    problem = refused("already_appealed", field.contests_decision, lowered)
    assert problem.detail == f"decision: #{lowered.seq} stands in the appeal {url_of(first)}."
    field.withdraws(first)
    second = field.contests_decision(lowered, *field.red)
    assert second.rows.count() == 4
    # Once: else it would go on until somebody decides as the vendor likes.
    field.withdraws(second)
    assert refused("already_appealed", field.contests_decision, lowered).field == "decision"
    assert "withdrawn twice" in refused("already_appealed", field.contests, field.red[0]).detail


# --- the deadline ------------------------------------------------------------------------------------------------


def test_working_days_skip_weekends_and_the_platforms_holidays(field: Field) -> None:
    assert field.contests(field.red[0]).deadline_at == at(5, 12)
    # In Japan Monday the 23rd is Labour Thanksgiving Day.
    Platform.objects.filter(pk=field.platform.pk).update(calendar="JP")
    field.zephyr.refresh_from_db()
    assert field.contests(field.red[1]).deadline_at == at(8, 12)


def test_the_deadline_pauses_once_and_runs_on_by_itself(field: Field) -> None:
    made = field.contests()
    field.pauses(made, 2)
    assert (made.paused_until, made.deadline_at) == (at(25), at(9, 12))
    states = [state_at(made.state, made.paused_until, moment) for moment in (NOW, at(25) - HOUR, at(25))]
    assert states == [State.PAUSED, State.PAUSED, State.OPEN]
    refused("appeal_paused", field.pauses, made, 1, by=field.zoe)
    field.decides(made, Outcome.UPHOLD)
    assert Event.objects.filter(action="appeal.paused").count() == 1


@pytest.mark.parametrize("days", [0, 6])
def test_a_pause_is_bounded(field: Field, days: int) -> None:
    assert refused("malformed", field.pauses, field.contests(), days).field == "days"


def test_the_vendor_may_pause_and_a_stranger_may_not(field: Field) -> None:
    made = field.contests()
    refused("not_permitted", field.pauses, made, by=user())
    field.pauses(made, by=field.zoe)
    assert made.paused_at == NOW


def test_an_overdue_appeal_is_told_once_and_cannot_be_paused(field: Field) -> None:
    made = field.contests()
    assert [remind_overdue(now=moment) for moment in (at(5, 12) - HOUR, at(5, 12), at(6, 12))] == [0, 1, 0]
    assert is_overdue(made.state, made.deadline_at, at(5, 12))
    event = Event.objects.latest("seq")
    assert body_of(event)["summary"] == "Appeal of pass_rate of zephyr/torch is overdue since 2026-12-05 00:00 UTC"
    assert list(Notice.objects.filter(event_seq=event.seq).values_list("user", flat=True)) == [field.ada.pk]
    refused("appeal_overdue", field.pauses, made, 1, at=at(5, 12))
    field.decides(made, at=at(21, 12))
    assert body_of(Event.objects.latest("seq"))["evidence"]["late"] is True
    assert remind_overdue(now=at(22, 12)) == 0


# --- an independent decider ----------------------------------------------------------------------------------------


def test_nobody_decides_about_a_platform_of_their_own_organisation(field: Field) -> None:
    made = field.contests()
    both = user(Role.MAINTAINER, username="zack")
    field.platform.memberships.create(user=both, joined_at=NOW)
    colleague = user(Role.MAINTAINER, username="yann")
    organisation("zephyr-works", field.zoe, colleague)
    for who in (both, colleague):
        refused("recusal", field.decides, made, by=who)
    assert Appeal.objects.get().state == "open"


def test_the_appellant_decides_nothing_after_leaving_the_platform_nor_do_their_colleagues(field: Field) -> None:
    both, colleague = user(Role.MAINTAINER, username="zack"), user(Role.MAINTAINER, username="yann")
    field.platform.memberships.create(user=both, joined_at=NOW)
    made = field.contests(by=both)
    field.platform.memberships.filter(user=both).delete()
    assert refused("recusal", field.decides, made, by=both).detail.startswith("zack made the appeal")
    organisation("left-co", both, colleague)
    refused("recusal", field.decides, made, by=colleague)
    field.decides(made)


def test_who_decided_what_upstreams_file_made_so_does_not_decide_the_appeal(field: Field) -> None:
    bob = user(Role.MAINTAINER, username="bob")
    decided = field.lowers(bob)
    event = record(
        action=Action.LEVEL_CHANGED,
        actor=HUB,
        subject=Subject("repository", str(field.zephyr.public_id), str(field.zephyr)),
        summary="zephyr/torch from L3 to L2",
        before={"level": "L3"},
        after={"level": "L2"},
        evidence={"decision": decided.seq},
        now=NOW,
    )
    assert (
        "bob made the contested decision"
        in refused("recusal", field.decides, field.contests_decision(event), by=bob).detail
    )


def test_neither_the_original_decider_nor_their_organisation_decides(field: Field) -> None:
    bob, carl = user(Role.MAINTAINER, username="bob"), user(Role.MAINTAINER, username="carl")
    organisation("big-co", bob, carl)
    lowered = field.lowers(bob)
    made = field.contests_decision(lowered)
    assert "bob made the contested decision" in refused("recusal", field.decides, made, by=bob).detail
    assert "organisation that made" in refused("recusal", field.decides, made, by=carl).detail
    refused("recusal", field.pauses, made, by=carl)
    organisation("other-co", field.ada)
    field.decides(made)
    assert body_of(Event.objects.latest("seq"))["evidence"]["organisation_of_decider"] == "Other-Co"


def test_only_maintainers_decide(field: Field) -> None:
    refused("not_permitted", field.decides, field.contests(), by=user())


def test_a_stale_decision_says_what_changed(field: Field) -> None:
    made = field.contests()
    seen = Appeal.objects.select_related("platform", "repository").get(pk=made.pk)
    field.pauses(made, by=field.zoe)
    problem = refused("appeal_stale", field.decides, seen)
    assert problem.detail == f"It is paused since {NOW:%Y-%m-%d %H:%M:%S} UTC, by zoe."
    field.decides(made)
    for verb in (field.decides, field.withdraws):
        assert "overturned" in refused("appeal_stale", verb, made).detail


# --- outcomes ----------------------------------------------------------------------------------------------------


def aside() -> set[int]:
    return set(SetAside.objects.values_list("job", flat=True))


def test_upholding_sets_nothing_aside(field: Field) -> None:
    made = field.contests()
    field.decides(made, Outcome.UPHOLD)
    assert (made.state, aside(), Event.objects.latest("seq").action) == ("upheld", set(), "appeal.upheld")
    assert set(made.rows.values_list("is_accepted", flat=True)) == {False}


def test_amending_accepts_some_of_the_rows(field: Field) -> None:
    made, first = field.contests(), field.red[0]
    for rows in ([], field.red):
        assert refused("malformed", field.decides, made, Outcome.AMEND, *rows).field == "accepted"
    stranger = job(field.zephyr, "failure", at=NOW - DAY)
    assert refused("malformed", field.decides, made, Outcome.AMEND, stranger).field == "accepted"
    field.decides(made, Outcome.AMEND, first)
    assert (made.state, aside()) == ("amended", {first.pk})
    event = Event.objects.latest("seq")
    row = SetAside.objects.get()
    assert (row.why, row.source_id, row.url, row.event_seq, row.since) == (
        "infrastructure failed",
        str(made.public_id),
        url_of(made),
        event.seq,
        NOW,
    )
    assert body_of(event)["after"] == {"accepted": [str(first.public_id)], "of_rows": 4}


def test_overturning_accepts_all_rows(field: Field) -> None:
    made = field.contests()
    assert refused("malformed", field.decides, made, Outcome.OVERTURN, field.red[0]).field == "accepted"
    field.decides(made)
    assert (made.state, aside()) == ("overturned", {one.pk for one in field.red})


def test_an_outcome_gives_a_reason(field: Field) -> None:
    assert refused("malformed", field.decides, field.contests(), reason=" ").field == "reason"


def test_members_and_deciders_get_e_mails(field: Field) -> None:
    made = field.contests()
    opened = Event.objects.latest("seq")
    field.decides(made)
    told = {
        seq: sorted(Notice.objects.filter(event_seq=seq).values_list("user__username", flat=True))
        for seq in (opened.seq, Event.objects.latest("seq").seq)
    }
    assert list(told.values()) == [["ada"], ["zoe"]]


# --- the compensating decision -------------------------------------------------------------------------------------


def test_overturning_a_lowering_restores_the_level_at_once(field: Field) -> None:
    lowered = field.lowers(user(Role.MAINTAINER))
    made = field.contests_decision(lowered)
    field.decides(made)
    field.zephyr.refresh_from_db()
    assert made.compensation_seq is not None
    restored = Event.objects.get(seq=made.compensation_seq)
    body = body_of(restored)
    assert (field.zephyr.level_code, restored.action, body["summary"], body["evidence"]) == (
        "L3",
        "repository.level_changed",
        f"zephyr/torch restored to L3: decision #{lowered.seq} was overturned",
        {"appeal": str(made.public_id), "overturned": lowered.seq},
    )
    assert body_of(Event.objects.latest("seq"))["evidence"]["compensation"] == restored.seq


def test_nothing_is_decided_where_the_level_changed_since(field: Field) -> None:
    lowered = field.lowers(user(Role.MAINTAINER))
    made = field.contests_decision(lowered)
    field.lowers(user(Role.MAINTAINER), level=1)
    refused("level_stale", field.decides, made)
    field.zephyr.refresh_from_db()
    assert (field.zephyr.level, Appeal.objects.get().state) == (1, "open")


def test_restoring_reaches_no_level_that_was_not_taken(field: Field) -> None:
    """Not by a raise, not by an event about something else, not twice."""
    ada = actor_of(field.ada)
    listing = Event.objects.filter(action="repository.listed").first()
    lowered = field.lowers(field.ada, level=1)
    restore: dict[str, Any] = {"reason": "x", "actor": ada, "now": NOW, "evidence": {}}
    refused("level_transition", restore_overturned, overturned=listing, **restore)
    restored = restore_overturned(overturned=lowered, **restore)
    assert Repository.objects.get().level == 3
    refused("level_stale", restore_overturned, overturned=lowered, **restore)
    refused("level_transition", restore_overturned, overturned=restored, **restore)
    field.lowers(field.ada, level=2)
    refused("level_stale", restore_overturned, overturned=lowered, **restore)
    assert Repository.objects.get().level == 2


def test_overturning_a_raise_lowers_it_again(field: Field) -> None:
    field.lowers(field.ada, level=1)
    raised = field.lowers(user(Role.MAINTAINER), level=2)
    field.decides(field.contests_decision(raised))
    assert Repository.objects.get().level == 1


def test_a_withdrawn_waiver_is_granted_again_until_its_end(field: Field) -> None:
    from apps.governance.models import Waiver
    from apps.governance.waiving import grant_waiver, withdraw_waiver

    bob, until = user(Role.MAINTAINER), NOW + 20 * DAY
    waiver = grant_waiver(
        repository=field.zephyr, criterion="L3.rise.tenure_days", reason="x", until_at=until, by=bob, now=NOW - DAY
    )
    withdraw_waiver(waiver=waiver, reason="y", by=bob, now=NOW - HOUR)
    made = field.contests_decision(Event.objects.latest("seq"))
    field.decides(made)
    again = Waiver.objects.get(withdrawn_at=None)
    assert (again.until_at, again.event_seq, again.by) == (until, made.compensation_seq, "ada")


def test_a_waiver_that_ran_out_meanwhile_needs_no_compensation(field: Field) -> None:
    from apps.governance.models import Waiver
    from apps.governance.waiving import grant_waiver, withdraw_waiver

    bob = user(Role.MAINTAINER)
    waiver = grant_waiver(
        repository=field.zephyr, criterion="L3.rise.tenure_days", reason="x", until_at=NOW + DAY, by=bob, now=NOW - DAY
    )
    withdraw_waiver(waiver=waiver, reason="y", by=bob, now=NOW - HOUR)
    made = field.contests_decision(Event.objects.latest("seq"))
    field.decides(made, at=NOW + 2 * DAY)
    assert (made.state, made.compensation_seq, Waiver.objects.count()) == ("overturned", None, 1)


def test_a_member_of_another_platform_contests_nothing_of_this_one(field: Field) -> None:
    other = listed({"zephyr/torch": 3, "fen/torch": 2}, now=NOW)["fen/torch"]
    refused("not_permitted", field.contests, by=member_of(other.platform))
