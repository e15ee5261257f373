"""A notice: opened by nights, ended by nights, or by a decision after its deadline; never a silent flip."""

import datetime
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from apps.accounts.models import Organisation, User
from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.workdays import deadline
from apps.governance.models import Notice
from apps.governance.nights import evaluate_field
from apps.levels.falling import answer_notice, demote, follow_nights, lift_notice
from apps.levels.models import FallNotice, WayBack
from apps.levels.tasks import follow_falling
from apps.levels.ways_back import follow_ways_back
from apps.platforms.calendars import declare_calendar
from apps.platforms.models import Repository
from apps.platforms.services import change_level
from apps.policies.policy import Use
from tests.factories.jobs import callback, dispatch
from tests.factories.listing import TESTS, listed, user
from tests.factories.pages import Page
from tests.levels.falling import DAY, NAME, PASS, TIMEOUT, Scene, bad_nights, night, scene, state_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def zephyr() -> Scene:
    return scene()


def opened(found: Scene) -> FallNotice:
    """A notice on three bad nights, whose deadline has passed by now."""
    last = bad_nights(found.repository)
    assert follow_nights(now=last + datetime.timedelta(hours=1)) == 1
    return FallNotice.objects.select_related("repository__platform").get()


def told(action: str) -> list[str]:
    """Who was written to about the newest event of an action, in order of their names."""
    event = Event.objects.filter(action=action).latest("seq")
    return sorted(Notice.objects.filter(event_seq=event.seq).values_list("user__username", flat=True))


def decide(notice: FallNotice, by: User, **values: Any) -> Event:
    seen = notice.repository.evaluations.filter(use=Use.STAY).latest("day").day
    given: dict[str, Any] = {"reason": "no way to stay", "expected_level": 3, "seen_night": seen, "now": now()}
    return demote(notice=notice, by=by, **(given | values))


def test_the_same_criterion_in_as_many_nights_in_a_row_opens_a_notice(zephyr: Scene) -> None:
    declare_calendar(platform=zephyr.repository.platform, calendar="DE", actor=TESTS, now=now())
    last = bad_nights(zephyr.repository)
    at = last + datetime.timedelta(hours=1)
    assert [follow_nights(now=at), follow_nights(now=at)] == [1, 0]
    notice = FallNotice.objects.get()
    ends = deadline(at, 10, "DE")
    assert (notice.criteria, notice.level, notice.policy_number, notice.calendar) == ([PASS], 3, 0, "DE")
    assert (notice.deadline_at, notice.state, notice.dwell_days) == (ends, "open", 3)
    assert notice.way_back == "Meets Job pass rate >= 88 %, in 3 nights in a row."
    assert [(one["day"], [row["criterion"] for row in one["results"]]) for one in notice.figures] == [
        ((last - back * DAY).date().isoformat(), [PASS]) for back in range(3)
    ]
    body = body_of(Event.objects.get(seq=notice.event_seq))
    assert body["summary"] == ("Notice to zephyr/torch: what staying at L3 asks for was not met in 3 nights in a row")
    assert "in working days of DE" in body["reason"]
    assert told("fallnotice.opened") == ["ada", "zoe"]
    assert zephyr.fresh().level == 3


def test_silence_opens_one_too_through_the_nights_themselves() -> None:
    found = scene(2).repository
    callback(found, at=now() - 30 * DAY)
    dispatch(found, at=now() - 20 * DAY)
    for back in (2, 1, 0):
        evaluate_field(now=now() - back * DAY)
    assert follow_falling() == 1
    assert FallNotice.objects.get().criteria == ["L2.stay.silent_days"]


@pytest.mark.parametrize(
    "failing",
    [
        [(PASS,), (PASS,)],
        [(PASS,), (), (PASS,)],
        [(PASS,), (TIMEOUT,), (PASS,)],
    ],
    ids=["too few", "one was met", "another criterion"],
)
def test_fewer_or_other_nights_open_none(zephyr: Scene, failing: list[tuple[str, ...]]) -> None:
    for back, keys in enumerate(failing):
        night(zephyr.repository, now() - back * DAY, keys)
    assert (follow_nights(now=now()), FallNotice.objects.count()) == (0, 0)


def test_no_result_and_a_waiver_are_not_a_night_that_was_not_met(zephyr: Scene) -> None:
    for back in range(3):
        night(zephyr.repository, now() - back * DAY, (TIMEOUT,), unknown=(PASS,), waived=(TIMEOUT,))
    assert follow_nights(now=now()) == 0


def test_a_missing_night_breaks_nothing_and_counts_for_nothing(zephyr: Scene) -> None:
    for back in (5, 3, 0):
        night(zephyr.repository, now() - back * DAY, (PASS,))
    assert follow_nights(now=now()) == 1


def test_nights_before_the_level_count_for_nothing(zephyr: Scene) -> None:
    bad_nights(zephyr.repository, last=now() - 41 * DAY)
    assert follow_nights(now=now()) == 0


def test_one_is_open_for_a_repository(zephyr: Scene) -> None:
    notice = opened(zephyr)
    notice.pk, notice.event_seq = None, notice.event_seq + 1_000
    notice.public_id = "00000000-0000-0000-0000-000000000001"
    with pytest.raises(IntegrityError, match="levels_notice_one_open"), transaction.atomic():
        notice.save(force_insert=True)


def test_met_again_in_a_row_ends_it_by_itself(zephyr: Scene) -> None:
    notice = opened(zephyr)
    for back in (9, 8):
        night(zephyr.repository, now() - back * DAY, (TIMEOUT,))
    assert (follow_nights(now=now()), state_of(notice)) == (0, "open")
    night(zephyr.repository, now() - 7 * DAY, (TIMEOUT,))
    assert (follow_nights(now=now()), state_of(notice)) == (1, "met_again")
    ended = FallNotice.objects.get()
    assert (ended.ended_by, ended.ended_why) == ("AccelHub", "Met in 3 nights in a row.")
    assert told("fallnotice.met_again") == ["ada", "zoe"]
    # The nights before the end do not open another; three later ones do.
    assert follow_nights(now=now()) == 0


def test_a_night_without_a_result_is_not_met_again(zephyr: Scene) -> None:
    notice = opened(zephyr)
    for back in (9, 8, 7):
        night(zephyr.repository, now() - back * DAY, unknown=(PASS,))
    assert (follow_nights(now=now()), state_of(notice)) == (0, "open")


def test_a_demotion_lowers_by_one_level_after_the_deadline_on_the_notice(zephyr: Scene) -> None:
    notice = opened(zephyr)
    changed = decide(notice, zephyr.ada)
    body = body_of(changed)
    assert (zephyr.fresh().level, state_of(notice)) == (2, "demoted")
    assert (body["before"]["level"], body["after"]["level"], body["reason"]) == ("L3", "L2", "no way to stay")
    assert f"/notices/{notice.public_id}/" in body["evidence"]["text"]
    assert told("fallnotice.demoted") == ["ada", "zoe"]
    way = WayBack.objects.get()
    assert (way.level, way.event_seq, way.reached_at) == (3, changed.seq, None)
    assert "L3.rise.pass_rate" in way.criteria


def test_nobody_is_demoted_before_the_deadline(zephyr: Scene) -> None:
    notice = opened(zephyr)
    with pytest.raises(Problem) as refused:
        decide(notice, zephyr.ada, now=notice.deadline_at - datetime.timedelta(seconds=1))
    assert (refused.value.code, zephyr.fresh().level) == ("notice_early", 3)


def test_postgresql_keeps_a_demotion_after_the_deadline_too(zephyr: Scene) -> None:
    notice = opened(zephyr)
    early = {"state": "demoted", "ended_at": notice.opened_at, "ended_by": "ada", "ended_why": "now"}
    with pytest.raises(IntegrityError, match="levels_notice_after_deadline"), transaction.atomic():
        FallNotice.objects.update(**early)


def test_a_decision_on_stale_evidence_is_told_what_changed_since(zephyr: Scene) -> None:
    notice = opened(zephyr)
    seen = zephyr.repository.evaluations.latest("day").day
    night(zephyr.repository, now() - DAY, (TIMEOUT,))
    with pytest.raises(Problem) as refused:
        decide(notice, zephyr.ada, seen_night=seen)
    assert (refused.value.code, refused.value.detail) == (
        "evidence_stale",
        f"Since the night of {seen}: {PASS} was not met and is met.",
    )
    assert zephyr.fresh().level == 3
    with pytest.raises(Problem) as stale:
        decide(notice, zephyr.ada, expected_level=4)
    assert (stale.value.code, state_of(notice)) == ("level_stale", "open")


def test_a_maintainer_lifts_it_and_old_nights_open_no_other(zephyr: Scene) -> None:
    notice = opened(zephyr)
    lift_notice(notice=notice, reason="an outage of ours", by=zephyr.ada, now=now())
    assert (state_of(notice), zephyr.fresh().level, follow_nights(now=now())) == ("lifted", 3, 0)
    assert told("fallnotice.lifted") == ["ada", "zoe"]
    for again in (
        lambda: lift_notice(notice=notice, reason="again", by=zephyr.ada, now=now()),
        lambda: decide(notice, zephyr.ada),
        lambda: answer_notice(notice=notice, text="late", by=zephyr.zoe, now=now()),
    ):
        with pytest.raises(Problem) as refused:
            again()
        assert refused.value.code == "notice_stale"


def test_nobody_decides_about_their_own(zephyr: Scene) -> None:
    works = Organisation.objects.create(slug="zephyr-works", name="Zephyr Works", created_at=now())
    User.objects.filter(pk=zephyr.zoe.pk).update(organisation=works)
    colleague = user(Role.MAINTAINER, organisation=works)
    notice = opened(zephyr)
    for verb in (
        lambda: decide(notice, colleague),
        lambda: lift_notice(notice=notice, reason="ours", by=colleague, now=now()),
    ):
        with pytest.raises(Problem) as refused:
            verb()
        assert refused.value.code == "recusal"
    assert (state_of(notice), zephyr.fresh().level) == ("open", 3)


@pytest.mark.parametrize("level", [2, 1], ids=["still evaluated", "no longer"])
def test_another_change_of_level_supersedes_it(zephyr: Scene, level: int) -> None:
    notice = opened(zephyr)
    change_level(repository=zephyr.fresh(), level=level, reason="for another cause", actor=TESTS, now=now())
    assert (follow_nights(now=now()), state_of(notice)) == (1, "superseded")
    assert Event.objects.filter(action="fallnotice.superseded").count() == 1


def test_the_way_back_is_told_of_once(zephyr: Scene) -> None:
    decide(opened(zephyr), zephyr.ada)
    fallen = zephyr.fresh()
    night(fallen, now() + DAY, ("L3.rise.pass_rate",), use=Use.RISE)
    assert follow_ways_back(now=now() + DAY) == 0
    night(fallen, now() + 2 * DAY, use=Use.RISE)
    assert [follow_ways_back(now=now() + 2 * DAY), follow_ways_back(now=now() + 2 * DAY)] == [1, 0]
    event = Event.objects.get(action="repository.way_back_reached")
    assert body_of(event)["summary"] == "zephyr/torch can be proposed for L3 again"
    assert told("repository.way_back_reached") == ["ada", "zoe"]


HOSTILE = "<script>alert(1)</script>\n=cmd|' /C calc'!A0"


def test_the_vendors_answer_is_text_and_pauses_nothing(zephyr: Scene, client: Client) -> None:
    notice = opened(zephyr)
    page = f"/notices/{notice.public_id}/"
    client.force_login(zephyr.zoe)
    assert client.post(page, {"act": "answer", "text": HOSTILE}).status_code == 302
    answer = client.get(page)
    assert "<script>alert" not in answer.content.decode()
    assert "<script>alert(1)</script> =cmd" in Page(answer).text
    assert FallNotice.objects.get().deadline_at == notice.deadline_at
    client.post(page, {"act": "answer", "text": "a\u202eb"})
    assert notice.answers.count() == 1
    assert client.post(page, {"act": "lift", "reason": "mine"}).status_code == 403
    assert client.post(page, {"act": "x"}).status_code == 404


def test_a_maintainer_decides_on_the_page_that_says_what_was_seen(zephyr: Scene, client: Client) -> None:
    notice = opened(zephyr)
    page = f"/notices/{notice.public_id}/"
    seen = zephyr.repository.evaluations.latest("day").day
    client.force_login(zephyr.ada)
    shown = client.get(page).content.decode()
    assert f'name="seen_night" value="{seen}"' in shown
    assert "The deadline has passed" in shown
    assert client.post(page, {"act": "answer", "text": "mine"}).status_code == 403
    sent = {"act": "demote", "reason": "so it is", "expected_level": 3, "seen_night": str(seen)}
    night(zephyr.repository, now() - DAY)
    refused = client.post(page, sent)
    assert (refused.status_code, f"{PASS} was not met and is met" in Page(refused).text) == (409, True)
    sent["seen_night"] = str((now() - DAY).date())
    assert client.post(page, sent).status_code == 302
    assert (zephyr.fresh().level, state_of(notice)) == (2, "demoted")
    assert "demoted" in Page(client.get("/notices/")).text


def test_the_platforms_page_shows_what_is_open(zephyr: Scene, client: Client) -> None:
    notice = opened(zephyr)
    page = client.get("/platforms/zephyr-torch/").content.decode()
    assert f"/notices/{notice.public_id}/" in page
    assert notice.way_back in Page(client.get("/platforms/zephyr-torch/")).text
    lift_notice(notice=notice, reason="over", by=zephyr.ada, now=now())
    assert "Notice: its" not in client.get("/platforms/zephyr-torch/").content.decode()


def test_programs_read_and_decide(zephyr: Scene, client: Client) -> None:
    notice = opened(zephyr)
    one = f"/api/v1/notices/{notice.public_id}/"
    rows = client.get("/api/v1/notices/?state=open&platform=zephyr-torch").json()["results"]
    assert [(row["id"], row["repository"], row["criteria"]) for row in rows] == [(str(notice.public_id), NAME, [PASS])]
    assert client.get("/api/v1/notices/?state=lifted").json()["results"] == []
    assert client.get("/api/v1/notices/?state=x").status_code == 400
    assert client.get("/api/v1/notices/?format=csv").content.decode().startswith("id,repository,platform,level,state")

    def post(verb: str, **body: Any) -> tuple[int, Any]:
        answer = client.post(f"{one}{verb}/", body, content_type="application/json")
        return answer.status_code, answer.json().get("code")

    assert post("answer", text="x") == (401, "not_signed_in")
    client.force_login(zephyr.zoe)
    assert post("answer", text="our lab moved") == (200, None)
    assert post("lift", reason="mine") == (403, "not_permitted")
    client.force_login(zephyr.ada)
    whole = client.get(one).json()
    assert [answer["text"] for answer in whole["answers"]] == ["our lab moved"]
    assert whole["figures"] == notice.figures
    assert post("nothing") == (404, "not_found")
    assert post("demote", reason="x", expected_level="L9", seen_night=whole["newest_night"]) == (400, "malformed")
    assert post("demote", reason="x", expected_level="L4", seen_night=whole["newest_night"]) == (409, "level_stale")
    assert post("demote", reason="x", expected_level="L3", seen_night=whole["newest_night"]) == (200, None)
    assert post("lift", reason="x") == (409, "notice_stale")
    assert client.get(one).json()["state"] == "demoted"


@pytest.mark.parametrize("rows", [1, 3])
def test_the_list_costs_the_same_for_more_rows(client: Client, rows: int, django_assert_num_queries: Any) -> None:
    names = [f"v{number}/torch" for number in range(rows)]
    for repository in listed(dict.fromkeys(names, 3), now=now() - 40 * DAY).values():
        bad_nights(repository)
    assert follow_nights(now=now()) == rows
    for address in ("/notices/", "/api/v1/notices/"):
        with django_assert_num_queries(2 if address == "/notices/" else 1):
            assert client.get(address).status_code == 200


def test_a_probe_gets_none() -> None:
    found = scene().repository
    Repository.objects.update(is_probe=True)
    bad_nights(found)
    assert follow_nights(now=now()) == 0
