"""The life of a quarantine: its verbs, what they leave in the log, and what they refuse."""

import datetime
import threading
from typing import Any

import pytest
from django.db import IntegrityError, connections, transaction

from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.errors import Problem
from apps.platforms.models import Platform
from apps.quarantine import services
from apps.quarantine.enums import ReasonClass, Source, State, Verb
from apps.quarantine.models import Member, Quarantine
from apps.quarantine.policy import HUB, TRANSITIONS
from apps.quarantine.room import room_of
from apps.results.aliases import alias_test
from apps.results.exclusions import excluded
from apps.results.models import Exclusion, Report, Test
from tests.factories import reports
from tests.factories.listing import TESTS, listed
from tests.factories.tests import catalogued
from tests.live import ClonedDatabase

NOW = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
EXPIRY = datetime.timedelta(hours=HUB.expiry)


def platform(level: int = 2) -> Platform:
    return listed({"kestrel/torch": level})["kestrel/torch"].platform


def proposed(of: Platform | None, *tests: Test, at: datetime.datetime = NOW, **values: Any) -> Quarantine:
    common: dict[str, Any] = {
        "variant": "default",
        "source": Source.VENDOR,
        "reason_class": ReasonClass.TIMING,
        "reason": "it races",
        "owner": "ada",
    }
    numbers = [test.pk for test in tests]
    return services.propose(platform=of, tests=numbers, actor=TESTS, now=at, **common | values)


def in_force(of: Platform, *tests: Test, at: datetime.datetime = NOW, **values: Any) -> Quarantine:
    made = proposed(of, *tests, at=at, **values)
    return services.put_in_force(quarantine=made, revision=made.revision, is_bound=True, actor=TESTS, now=at)


def moved(made: Quarantine, verb: str, at: datetime.datetime = NOW, **values: Any) -> Quarantine:
    service = getattr(services, verb)
    return service(quarantine=made, revision=made.revision, actor=TESTS, now=at, **values)


def refused(code: str, call: Any, *args: Any, **values: Any) -> str:
    with pytest.raises(Problem) as caught:
        call(*args, **values)
    assert caught.value.code == code
    return caught.value.detail


def summaries() -> list[tuple[str, str, bool]]:
    events = Event.objects.filter(subject_kind="quarantine").order_by("seq")
    return [(event.action, body_of(event)["summary"], event.is_decision) for event in events]


@pytest.mark.django_db
def test_a_whole_life_leaves_its_events_and_its_effect() -> None:
    kestrel, test = platform(), catalogued("test_a")
    made = proposed(kestrel, test)
    assert (made.state, made.tests, Exclusion.objects.count()) == (State.PROPOSED, 1, 0)
    made = moved(made, "put_in_force", is_bound=True)
    assert Exclusion.objects.values("source", "source_id", "test_id", "from_at", "until_at", "reason").get() == {
        "source": "quarantine",
        "source_id": str(made.public_id),
        "test_id": test.pk,
        "from_at": NOW,
        "until_at": NOW + EXPIRY,
        "reason": "it races",
    }
    made = moved(made, "renew", NOW + DAY, reason="the fix is under review", is_bound=True)
    assert (made.expires_at, Exclusion.objects.get().until_at) == (NOW + EXPIRY * 2, NOW + EXPIRY * 2)
    made = moved(made, "propose_release", NOW + DAY * 2, reason="fixed", fix_sha="a" * 40, fix_place=7)
    assert (made.state, made.fix_place) == (State.RELEASE_PROPOSED, 7)
    made = moved(made, "keep", NOW + DAY * 3, reason="two passes are not enough")
    assert (made.state, made.fix_place) == (State.IN_FORCE, None)
    made = moved(made, "propose_release", NOW + DAY * 4, reason="fixed")
    made = moved(made, "release", NOW + DAY * 5, reason="20 passes", proof="20 of 20 passes, 0 red")
    assert (made.state, made.ended_at, made.end_reason) == (State.RELEASED, NOW + DAY * 5, "20 passes")
    assert Exclusion.objects.get().until_at == NOW + DAY * 5
    assert list(Member.objects.values_list("is_open", flat=True)) == [False]
    made = moved(made, "reopen", NOW + DAY * 6, reason="flaky again on a newer commit")
    assert (made.state, made.ended_at, Member.objects.get().is_open) == (State.PROPOSED, None, True)
    label = "test_x TestX test_a on torch (default)"
    until = f"{NOW + EXPIRY:%Y-%m-%d}", f"{NOW + EXPIRY * 2:%Y-%m-%d}"
    assert summaries() == [
        ("quarantine.proposed", f"Quarantine proposed: {label}", True),
        ("quarantine.put_in_force", f"In quarantine until {until[0]}: {label}", True),
        ("quarantine.renewed", f"Renewed until {until[1]}: {label}", True),
        ("quarantine.release_proposed", f"Release proposed: {label}", True),
        ("quarantine.kept", f"Release refused: {label}", True),
        ("quarantine.release_proposed", f"Release proposed: {label}", True),
        ("quarantine.released", f"Released (20 of 20 passes, 0 red): {label}", True),
        ("quarantine.reopened", f"Flaky again after its release: {label}", True),
    ]


@pytest.mark.django_db
def test_what_a_private_platforms_tests_do_is_no_public_decision() -> None:
    proposed(platform(level=1), catalogued("test_secret"))
    assert [is_decision for _, _, is_decision in summaries()] == [False]


@pytest.mark.django_db
def test_a_result_is_judged_by_the_list_in_force_when_it_came() -> None:
    kestrel, test, other = platform(), catalogued("test_a"), catalogued("test_b")
    made = in_force(kestrel, test)
    repository = kestrel.repositories.get()

    def judged(at: datetime.datetime, variant: str = "default") -> list[int]:
        came = reports.report(repository, received_at=at, variant=variant, failed=2)
        return sorted(excluded(came, [test, other]))

    second = datetime.timedelta(seconds=1)
    assert judged(NOW - second) == []
    assert judged(NOW) == [test.pk]
    assert judged(NOW, variant="slow") == []
    assert judged(NOW + EXPIRY - second) == [test.pk]
    assert judged(NOW + EXPIRY) == []
    services.end(quarantine=made, verb=Verb.BREAK, reason="fails always", actor=TESTS, now=NOW + DAY)
    assert (judged(NOW + DAY - second), judged(NOW + DAY)) == ([test.pk], [])


@pytest.mark.django_db
def test_one_platforms_quarantine_is_no_others() -> None:
    test = catalogued("test_a")
    both = listed({"kestrel/torch": 2, "osprey/torch": 2})
    in_force(both["kestrel/torch"].platform, test)
    came = reports.report(both["osprey/torch"], received_at=NOW + DAY, failed=1)
    assert excluded(came, [test]) == {}
    assert in_force(both["osprey/torch"].platform, test).state == State.IN_FORCE


def renamed(old: Test, new: Test) -> None:
    alias_test(old=old, new=new, reason="renamed", actor=TESTS, now=NOW)


@pytest.mark.django_db
@pytest.mark.parametrize("values", [{}, {"pattern": "test_x.py::TestX::test_{}"}], ids=["by test", "by pattern"])
@pytest.mark.parametrize("said", ["older", "old", "new"])
def test_a_quarantine_holds_for_every_name_of_a_renamed_test(said: str, values: dict[str, str]) -> None:
    kestrel = platform()
    names = {name: catalogued(f"test_{name}") for name in ("older", "old", "new", "other")}
    if values:
        in_force(kestrel, pattern=values["pattern"].format(said))
    else:
        in_force(kestrel, names[said])
    came = reports.report(kestrel.repositories.get(), received_at=NOW + DAY, failed=4)
    assert sorted(excluded(came, names.values())) == [names[said].pk]
    renamed(names["old"], names["new"])
    renamed(names["older"], names["new"])
    same = [names[name] for name in ("older", "old", "new")]
    assert sorted(excluded(came, names.values())) == sorted(test.pk for test in same)
    assert {one.source for one in excluded(came, [names["new"]]).values()} == {"quarantine"}
    assert excluded(came, [names["other"]]) == {}


@pytest.mark.django_db
def test_what_is_listed_apart_takes_two_queries(django_assert_num_queries: Any) -> None:
    kestrel = platform()
    tests = [catalogued(f"test_{number}") for number in range(3)]
    came = reports.report(kestrel.repositories.get(), received_at=NOW + DAY, failed=3)
    with django_assert_num_queries(1):
        assert excluded(came, tests) == {}
    in_force(kestrel, *tests)
    for some in (tests[:1], tests):
        with django_assert_num_queries(2):
            assert sorted(excluded(came, some)) == sorted(test.pk for test in some)


@pytest.mark.django_db
def test_another_name_of_a_test_is_no_other_test() -> None:
    kestrel, old, new = platform(), catalogued("test_old"), catalogued("test_new")
    made = in_force(kestrel, old)
    renamed(old, new)
    assert "test_x TestX test_old already stands" in refused("quarantine_open", proposed, kestrel, new)
    services.end(quarantine=made, verb=Verb.EXPIRE, reason="over", actor=TESTS, now=NOW + EXPIRY)
    assert proposed(kestrel, new, at=NOW + EXPIRY + DAY).previous == made


@pytest.mark.django_db
def test_a_test_stands_in_one_open_quarantine_of_a_platform_and_variant() -> None:
    kestrel, test = platform(), catalogued("test_a")
    made = proposed(kestrel, test)
    assert "test_x TestX test_a already stands" in refused("quarantine_open", proposed, kestrel, test)
    assert proposed(kestrel, test, variant="slow").state == State.PROPOSED
    moved(made, "decline", reason="no evidence")
    assert proposed(kestrel, test).state == State.PROPOSED


@pytest.mark.django_db
def test_an_unknown_platform_is_without_effect_until_it_is_named() -> None:
    kestrel, test = platform(), catalogued("test_a")
    made = proposed(None, test, said="all")
    assert (made.state, made.said, services.is_placeholder("all")) == (State.UNCLEAR, "all", True)
    refused("quarantine_state", moved, made, "put_in_force", is_bound=False)
    assert Exclusion.objects.count() == 0
    made = moved(made, "name_platform", platform=kestrel)
    assert (made.state, made.platform) == (State.PROPOSED, kestrel)
    taken = proposed(None, test, said="npu?")
    refused("quarantine_open", moved, taken, "name_platform", platform=kestrel)
    assert Quarantine.objects.get(pk=taken.pk).state == State.UNCLEAR


@pytest.mark.django_db
def test_renewals_count_over_records_that_were_made_again() -> None:
    kestrel, test = platform(), catalogued("test_a")
    first = in_force(kestrel, test)
    refused("malformed", moved, first, "renew", reason=" ", is_bound=True)
    first = moved(first, "renew", reason="wait for the driver", is_bound=True)
    assert "1 may follow" in refused("quarantine_renewed", moved, first, "renew", reason="again", is_bound=True)
    services.end(quarantine=first, verb=Verb.EXPIRE, reason="its time is over", actor=TESTS, now=NOW + DAY)
    second = in_force(kestrel, test, at=NOW + DAY * 2)
    assert second.previous == first
    refused("quarantine_renewed", moved, second, "renew", NOW + DAY * 2, reason="again", is_bound=True)
    services.end(quarantine=second, verb=Verb.EXPIRE, reason="its time is over", actor=TESTS, now=NOW + DAY * 3)
    third = proposed(kestrel, test, at=NOW + DAY * 4)
    refused("quarantine_renewed", moved, third, "put_in_force", NOW + DAY * 4, is_bound=True)
    assert moved(third, "put_in_force", NOW + DAY * 4, is_bound=False).state == State.IN_FORCE


@pytest.mark.django_db
def test_a_cap_binds_vendors_and_not_who_decides() -> None:
    kestrel = platform()
    tests = [catalogued(f"test_{number}") for number in range(HUB.cap_least + 1)]
    made = proposed(kestrel, *tests)
    assert f"{HUB.cap_least} may be at once" in refused("quarantine_cap", moved, made, "put_in_force", is_bound=True)
    assert Exclusion.objects.count() == 0
    assert moved(made, "put_in_force", is_bound=False).tests == HUB.cap_least + 1


@pytest.mark.django_db
def test_a_budget_is_not_refilled_by_closing_and_making_again() -> None:
    kestrel = platform()
    many = [catalogued(f"test_{number}") for number in range(HUB.cap_least)]
    others = [catalogued(f"test_other_{number}") for number in range(HUB.cap_least)]
    made = in_force(kestrel, *many)
    services.end(quarantine=made, verb=Verb.EXPIRE, reason="over", actor=TESTS, now=NOW + EXPIRY)
    later = NOW + EXPIRY + DAY
    again = proposed(kestrel, *others, at=later)
    detail = refused("quarantine_budget", moved, again, "put_in_force", later, is_bound=True)
    assert detail.startswith(
        "budget_days: 300 test-days are used or given away and this asks for 300 more; 450 may be used in 90 days"
    )
    shorter = moved(again, "put_in_force", later, is_bound=True, expires_at=later + DAY * 14)
    assert shorter.expires_at == later + DAY * 14


@pytest.mark.django_db
def test_a_budget_is_not_given_away_twice() -> None:
    kestrel = platform()
    tests = [catalogued(f"test_{number}") for number in range(HUB.cap_least)]
    first, second = in_force(kestrel, *tests[:5]), in_force(kestrel, *tests[5:])
    moved(first, "renew", reason="wait for the driver", is_bound=True)
    detail = refused("quarantine_budget", moved, second, "renew", reason="wait for the driver", is_bound=True)
    assert detail.startswith("budget_days: 450 test-days are used or given away and this asks for 150 more")


@pytest.mark.django_db
def test_what_was_used_before_it_was_reopened_stays_used() -> None:
    kestrel, test = platform(), catalogued("test_a")
    made = moved(in_force(kestrel, test), "propose_release", reason="fixed")
    made = moved(made, "release", NOW + DAY * 10, reason="20 passes", proof="20 of 20 passes, 0 red")
    made = moved(made, "reopen", NOW + DAY * 11, reason="flaky again")
    assert room_of(kestrel, "default", HUB, now=NOW + DAY * 11).used_days == 10
    moved(made, "put_in_force", NOW + DAY * 12, is_bound=True)
    assert room_of(kestrel, "default", HUB, now=NOW + DAY * 12).used_days == 40


@pytest.mark.django_db
def test_what_is_over_is_not_renewed() -> None:
    made = in_force(platform(), catalogued("test_a"))
    later = NOW + EXPIRY
    assert "2026-12-20 12:00" in refused("quarantine_over", moved, made, "renew", later, reason="x", is_bound=False)
    assert Exclusion.objects.get().until_at == later


@pytest.mark.django_db
def test_nothing_holds_back_in_time_or_longer_than_the_rules_say() -> None:
    kestrel, test = platform(), catalogued("test_a")
    made = proposed(kestrel, test)
    refused("malformed", moved, made, "put_in_force", is_bound=True, expires_at=NOW + EXPIRY + DAY)
    refused("malformed", moved, made, "put_in_force", is_bound=True, expires_at=NOW - DAY)
    made = moved(made, "put_in_force", is_bound=True, effective_from=NOW - DAY)
    assert made.effective_from == NOW


@pytest.mark.django_db
def test_a_planned_one_that_ends_before_it_begins_has_no_effect() -> None:
    kestrel, test = platform(), catalogued("test_a")
    made = proposed(kestrel, test)
    made = moved(made, "put_in_force", is_bound=True, effective_from=NOW + DAY * 2)
    services.end(quarantine=made, verb=Verb.BREAK, reason="fails always", actor=TESTS, now=NOW + DAY)
    assert Exclusion.objects.count() == 0


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"reason": " "}, "reason"),
        ({"owner": ""}, "owner"),
        ({"owner": "x" * 40}, "owner"),
        ({"variant": " "}, "variant"),
        ({"issue_url": "javascript:alert(1)"}, "issue_url"),
        ({"issue_url": "http://example.com/1"}, "issue_url"),
        ({"pattern": "test_ops.py"}, "tests"),
    ],
)
def test_what_cannot_be_proposed_is_refused_by_field(values: dict[str, Any], field: str) -> None:
    detail = refused("malformed", proposed, platform(), catalogued("test_a"), **values)
    assert detail.startswith(f"{field}: ")
    assert Quarantine.objects.count() == 0


@pytest.mark.django_db
@pytest.mark.parametrize("pattern", ["*", "::", "a::b::c::d", "ab*", "x" * 501, "test_ops.py::"])
def test_a_pattern_that_fits_everything_is_none(pattern: str) -> None:
    refused("malformed", proposed, platform(), pattern=pattern)


@pytest.mark.django_db
def test_nothing_named_and_unknown_tests_are_refused() -> None:
    kestrel = platform()
    assert refused("malformed", proposed, kestrel).startswith("tests: name one test or more")
    ghost = Test(pk=2**40)
    assert refused("malformed", proposed, kestrel, ghost).startswith("tests: one of them is no test")


@pytest.mark.django_db
@pytest.mark.parametrize("state", list(State))
def test_what_the_life_does_not_know_is_refused_and_changes_nothing(state: State) -> None:
    kestrel, test = platform(), catalogued("test_a")
    made = proposed(kestrel, test)
    ended = (
        {"ended_at": NOW, "end_reason": "x"}
        if state in (State.RELEASED, State.EXPIRED, State.VANISHED, State.BROKEN, State.DECLINED)
        else {}
    )
    in_time = {"effective_from": NOW, "expires_at": NOW + DAY}
    Quarantine.objects.filter(pk=made.pk).update(state=state, **in_time, **ended)
    before = Quarantine.objects.values().get()
    verbs: dict[Verb, tuple[str, dict[str, Any]]] = {
        Verb.PUT_IN_FORCE: ("put_in_force", {"is_bound": False}),
        Verb.RENEW: ("renew", {"reason": "x", "is_bound": False}),
        Verb.PROPOSE_RELEASE: ("propose_release", {"reason": "x"}),
        Verb.KEEP: ("keep", {"reason": "x"}),
        Verb.DECLINE: ("decline", {"reason": "x"}),
        Verb.RELEASE: ("release", {"reason": "x", "proof": "20 of 20 passes"}),
        Verb.REOPEN: ("reopen", {"reason": "x"}),
    }
    made.refresh_from_db()
    for verb, (service, values) in verbs.items():
        if (state, verb) not in TRANSITIONS:
            refused("quarantine_state", moved, made, service, **values)
    assert Quarantine.objects.values().get() == before


def test_of_two_at_the_same_moment_one_is_told_to_look_again(cloned_database: ClonedDatabase) -> None:
    kestrel, test = platform(), catalogued("test_a")
    made = proposed(kestrel, test)
    both = threading.Barrier(2, timeout=30)
    said: list[str] = []

    def act() -> None:
        both.wait()
        try:
            moved(made, "put_in_force", is_bound=True)
            said.append("done")
        except Problem as problem:
            said.append(problem.code)
        connections.close_all()

    threads = [threading.Thread(target=act) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == ["done", "quarantine_stale"]
    assert Exclusion.objects.count() == 1
    assert [action for action, _, _ in summaries()] == ["quarantine.proposed", "quarantine.put_in_force"]


def test_a_pattern_counts_the_tests_of_the_last_report(cloned_database: ClonedDatabase, storage_folder: Any) -> None:
    from tests.results.reporter import junit, passing

    kestrel = platform()
    cases = [passing("test_a_1"), passing("test_a_2"), passing("test_b")]
    reports.read_report(kestrel.repositories.get(), junit(*cases))
    made = proposed(kestrel, pattern="test_foo.py::TestFoo::test_a*")
    assert made.tests == 2
    made = moved(made, "put_in_force", is_bound=True)
    exclusion = Exclusion.objects.get()
    assert (exclusion.pattern, exclusion.test) == ("test_foo.py::TestFoo::test_a*", None)
    came = Report.objects.get()
    Report.objects.update(received_at=NOW)
    came.refresh_from_db()
    found = excluded(came, Test.objects.order_by("name"))
    assert [Test.objects.get(pk=number).name for number in found] == ["test_a_1", "test_a_2"]


@pytest.mark.django_db
def test_the_database_refuses_what_must_not_be() -> None:
    kestrel, test = platform(), catalogued("test_a")
    made = in_force(kestrel, test)
    rows = Quarantine.objects.filter(pk=made.pk)
    changes: tuple[dict[str, Any], ...] = (
        {"expires_at": None},
        {"state": State.RELEASED},
        {"platform": None},
        {"owner": ""},
        {"ended_at": NOW},
        {"state": "forever"},
    )
    for change in changes:
        with pytest.raises(IntegrityError), transaction.atomic():
            rows.update(**change)
    with pytest.raises(IntegrityError), transaction.atomic():
        Member.objects.create(quarantine=made, platform=kestrel, variant="default", test=test)
