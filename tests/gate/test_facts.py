"""What the gate reads of the rows, as they stood at a moment."""

import datetime
from typing import Any

import pytest

from apps.accounts.models import Organisation
from apps.core.clock import now
from apps.gate import services
from apps.gate.facts import facts_of
from apps.gate.models import StoredVerdict
from apps.gate.rows import Question
from apps.platforms.models import Repository, Transfer
from apps.policies.policy import NUMBERS
from apps.relay.models import Commit, DeclaredOutcome, Job, MergeBase, Omission
from apps.results.exclusions import exclude, move_end
from apps.results.models import Report, Upload
from apps.results.removal import remove_report
from tests.factories.listing import TESTS, listed, member_of
from tests.gate.field import HEAD, KESTREL, NUMBER, PLACE, Field, hours, main_sha

NEW = [("unsatisfied", "blocks", "1 new failure of 1 red test.")]
SATISFIED = [("satisfied", "passes", "1 job passed.")]


def awaits(what: str, until: str = "2026-11-20 18:00") -> list[tuple[str, str, str]]:
    return [("pending", "waits", f"{what}: awaited until {until} UTC.")]


def test_a_success_lets_pass_and_what_is_not_blocking_is_told(gate_field: Field) -> None:
    gate_field.sends(gate_field.kestrel, gate_field.fen)
    gate_field.says("success")
    gate_field.says("failure", repository=gate_field.fen)
    answer = gate_field.asks().answer
    assert (answer.verdict, [(one.repository, one.type, one.sentence) for one in answer.requirements]) == (
        "pass",
        [
            (KESTREL, "satisfied", "1 job passed."),
            ("fen/torch", "informational", "1 failure; L3 never blocks."),
        ],
    )


def test_a_commit_that_nobody_told_of_has_no_answer(gate_field: Field) -> None:
    assert services.ask(Question("ee" * 20, NUMBER, now())) is None
    gate_field.sends(at=1)
    assert services.ask(Question(HEAD, NUMBER, hours(0.5))) is None


def test_what_was_not_there_yet_is_not_seen(gate_field: Field) -> None:
    gate_field.sends()
    gate_field.fails({"test_a": "boom"}, at=2)
    gate_field.reports({"test_b": "other"}, sha=main_sha(PLACE), at=-1)
    assert gate_field.told(1) == ("pending", awaits("No job of it was heard for this commit"))
    assert gate_field.told(2.1) == ("pending", awaits("1 job running"))
    no_tests = "1 job failed, and no report names all tests that did"
    assert gate_field.told(2.18) == ("pending", awaits(no_tests, "2026-11-20 15:10"))
    assert gate_field.told(2.3) == ("fail", NEW)


def test_the_level_that_counts_is_the_one_of_the_moment(gate_field: Field) -> None:
    gate_field.sends()
    gate_field.fails({"test_a": "boom"})
    gate_field.levels(gate_field.kestrel, (3, -100, 0.9), (4, 0.9, 3), (1, 3, None))
    assert gate_field.told(0.8)[0] == "pass"
    assert gate_field.told(1)[0] == "fail"
    # What stands at L1 is nobody's business.
    assert gate_field.told(4) == ("pass", [])


def test_nobody_is_sent_it_while_the_hub_waits(gate_field: Field) -> None:
    gate_field.sends()
    gate_field.kestrel.dispatches.update(state="pending", sent_at=None)
    assert gate_field.told() == ("pending", awaits("The hub has not sent it the event"))


def test_who_was_left_out_says_why(gate_field: Field) -> None:
    gate_field.sends(gate_field.fen)
    sent = gate_field.fen.dispatches.get()
    Omission.objects.create(
        delivery=sent.delivery, repository=gate_field.kestrel, rule="sample", sentence="It takes 10 % of events."
    )
    assert gate_field.told() == ("pass", [("excluded", "passes", "Not sent: It takes 10 % of events.")])


def test_a_part_that_never_came_names_the_nearest_commit(gate_field: Field) -> None:
    gate_field.sends()
    for place in (PLACE - 5, PLACE - 9):
        gate_field.says("success", sha=main_sha(place), number=None, at=-9, event_type="push", delivery_id="main")
    sentence = gate_field.told()[1][0][2]
    assert f"it was heard last at {main_sha(PLACE - 5)[:12]}" in sentence


def test_a_held_job_is_not_heard_and_was_not_before_it_was_accepted(gate_field: Field) -> None:
    gate_field.sends()
    gate_field.says("success", flags=["held"])
    words = "1 job came under a new owner and is held"
    assert gate_field.told() == ("pending", awaits(words))
    Job.objects.update(flags=[])
    Transfer.objects.create(
        repository=gate_field.kestrel,
        old_owner_id=1,
        new_owner_id=2,
        new_name=KESTREL,
        state="accepted",
        opened_at=hours(0.1),
        decided_at=hours(3),
    )
    assert gate_field.told(2) == ("pending", awaits(words))
    assert gate_field.told(3) == ("pass", SATISFIED)


def test_what_was_judged_anew_since_is_unknown_as_of_then(gate_field: Field) -> None:
    gate_field.sends()
    gate_field.says("success", bucket="contradicted", judged_at=hours(3))
    assert gate_field.told(2) == (
        "unknown",
        [("errored", "unknown", "What 1 job said at that moment is not known any more.")],
    )
    assert gate_field.told(3)[1][0][:2] == ("errored", "passes")


def test_a_judgement_that_changed_nothing_leaves_it_known(gate_field: Field) -> None:
    gate_field.sends()
    gate_field.says("success", judged_at=hours(3), verdict="verified")
    assert gate_field.told(2) == ("pass", SATISFIED)


@pytest.mark.parametrize("change", ["read anew", "taken down"])
def test_a_report_that_is_not_as_it_was_is_unknown_as_of_then(gate_field: Field, change: str) -> None:
    gate_field.sends()
    gate_field.fails({"test_a": "boom"})
    report = Report.objects.get()
    if change == "read anew":
        Report.objects.update(revision=2, wanted=2, parsed_at=hours(4))
    else:
        remove_report(report=report, reason="A secret.", actor=TESTS, now=hours(4))
    assert gate_field.told(2)[0] == "unknown"
    assert gate_field.told(5)[0] == "fail"


def test_a_cancellation_by_a_newer_push_is_no_answer(gate_field: Field) -> None:
    gate_field.sends()
    gate_field.says("cancelled")
    assert gate_field.told()[1][0][2].startswith("1 job cancelled")
    gate_field.sends(sha="ef" * 20, at=0.55)
    assert gate_field.told() == ("pending", awaits("No job of it was heard for this commit"))


def test_what_was_silent_while_the_hub_was_out_is_awaited(gate_field: Field) -> None:
    gate_field.sends()
    gate_field.says("timed_out", flags=["inferred", "unheard"])
    assert gate_field.told() == ("pending", awaits("1 job silent while the hub was out"))


@pytest.mark.parametrize(
    ("outcome", "conclusion", "words"),
    [
        ("failure", "failure", "1 job passed."),
        ("failure", "success", "1 job ended otherwise than declared: blocks, by policy."),
        ("informational", "failure", "No job of it was heard for this commit: awaited until 2026-11-20 18:00 UTC."),
    ],
)
def test_a_declaration_counts_while_it_is_declared(
    gate_field: Field, outcome: str, conclusion: str, words: str
) -> None:
    gate_field.sends()
    gate_field.says(conclusion)
    DeclaredOutcome.objects.create(
        repository=gate_field.kestrel,
        workflow="CI",
        job_name="test-ops",
        outcome=outcome,
        reason="known",
        starts_at=hours(-5),
        ends_at=hours(50),
        declared_at=hours(0.8),
        declared_by="ada",
        withdrawn_at=hours(3),
    )
    assert gate_field.told(1)[1][0][2] == words
    assert gate_field.told(0.7) == gate_field.told(0.7)
    plain = "1 job passed." if conclusion == "success" else "1 job failed"
    assert gate_field.told(3)[1][0][2].startswith(plain)


# --- red tests --------------------------------------------------------------------------------------------------


def test_quarantine_counts_as_of_when_the_result_came(gate_field: Field) -> None:
    gate_field.sends()
    gate_field.fails({"test_a": "boom"})
    gate_field.reports({}, sha=main_sha(PLACE), at=-1)
    excluded: dict[str, Any] = {
        "source": "quarantine",
        "url": "/quarantines/1/",
        "platform": gate_field.kestrel.platform,
        "variant": "default",
        "tests": [gate_field.test("test_a").pk],
        "pattern": "",
        "reason": "flaky",
        "until_at": None,
    }
    exclude(source_id="late", from_at=hours(2), **excluded)
    assert gate_field.told(3) == ("fail", NEW)
    exclude(source_id="early", from_at=hours(-2), **excluded)
    quarantined = [("quarantined", "passes", "1 red test in quarantine when the result came.")]
    assert gate_field.told(3) == ("pass", quarantined)
    # Its end afterwards takes nothing back.
    move_end(source="quarantine", source_id="early", until_at=hours(4), now=hours(4))
    assert gate_field.told(5) == ("pass", quarantined)
    found = gate_field.asks(5).answer.requirements[0]
    assert [(one.kind, one.url) for one in found.rows] == [
        ("test", f"/tests/{gate_field.test('test_a').pk}/"),
        ("quarantine", "/quarantines/1/"),
        ("commit", f"/commit/{main_sha(PLACE)}/"),
    ]


BEFORE = [("excluded", "passes", "1 red test with the same failure at the base already.")]
UNKNOWN = [("unsatisfied", "blocks", "1 red test of which the base is unknown: blocks, by policy.")]


@pytest.mark.parametrize(
    ("behind", "red", "values", "expected"),
    [
        (0, {"test_a": "boom"}, {}, BEFORE),
        (20, {"test_a": "boom"}, {}, BEFORE),
        (21, {"test_a": "boom"}, {}, UNKNOWN),
        (0, {"test_a": "another"}, {}, NEW),
        (0, {"test_b": "boom"}, {}, NEW),
        (0, {"test_a": "boom"}, {"variant": "other"}, UNKNOWN),
        (0, {"test_a": "boom"}, {"flags": ["unknown_commit"]}, UNKNOWN),
        (0, {"test_b": "boom"}, {"flags": ["shards_missing"]}, UNKNOWN),
        (0, {"test_a": "boom"}, {"flags": ["shards_missing"]}, BEFORE),
        (0, {"test_a": "boom"}, {"state": "received"}, UNKNOWN),
        (0, {"test_a": "boom"}, {"parsed_at": hours(30), "received_at": hours(20)}, UNKNOWN),
    ],
)
def test_the_base_says_what_was_red_before(
    gate_field: Field, behind: int, red: dict[str, str], values: dict[str, Any], expected: Any
) -> None:
    gate_field.sends()
    gate_field.fails({"test_a": "boom"})
    gate_field.reports(red, sha=main_sha(PLACE - behind), **({"at": -1} | values))
    assert gate_field.told()[1] == expected


def test_the_nearest_tested_ancestor_decides_alone(gate_field: Field) -> None:
    gate_field.sends()
    gate_field.fails({"test_a": "boom"})
    gate_field.reports({"test_a": "boom"}, sha=main_sha(PLACE - 8), at=-3)
    assert gate_field.told()[1] == BEFORE
    gate_field.reports({}, sha=main_sha(PLACE - 4), at=-2)
    assert gate_field.told()[1] == NEW
    gate_field.reports({}, sha=main_sha(PLACE - 2), at=-1, repository=gate_field.fen)
    assert gate_field.told()[1] == NEW


def test_a_nearer_commit_that_was_tested_without_a_report_makes_the_base_unknown(gate_field: Field) -> None:
    """Else who reports red runs alone is excused for ever by the last of them."""
    gate_field.sends()
    gate_field.fails({"test_a": "boom"})
    gate_field.reports({"test_a": "boom"}, sha=main_sha(PLACE - 8), at=-3)
    nearer: dict[str, Any] = {"number": None, "sha": main_sha(PLACE - 4), "at": -2, "event_type": "push"}
    for conclusion, values in (("cancelled", {}), ("success", {"job_name": "other"}), ("success", {"at": 4})):
        gate_field.says(conclusion, **(nearer | {"delivery_id": f"{conclusion} {values}"} | values))
    gate_field.says("success", repository=gate_field.fen, **nearer)
    gate_field.says("success", **(nearer | {"sha": main_sha(PLACE - 9)}))
    assert gate_field.told()[1] == BEFORE
    gate_field.says("success", **nearer)
    assert gate_field.told()[1] == UNKNOWN
    gate_field.reports({"test_a": "boom"}, sha=main_sha(PLACE - 4), at=-1)
    assert gate_field.told()[1] == BEFORE


def test_another_platform_never_excuses_and_strengthens(gate_field: Field) -> None:
    gate_field.sends()
    gate_field.fails({"test_a": "boom"})
    gate_field.reports({}, sha=main_sha(PLACE), at=-1)
    gate_field.reports({"test_a": "boom"}, repository=gate_field.fen)
    gate_field.reports({"test_a": "boom"}, repository=gate_field.fen, at=0.9)
    sentence = (
        "1 new failure of 1 red test. 1 of them has the same failure on 1 more platform: this points to the change."
    )
    assert gate_field.told() == ("fail", [("unsatisfied", "blocks", sentence)])
    assert gate_field.told(0.75)[1][0][2] == sentence


@pytest.mark.parametrize("why", ["below L3", "one organisation", "quarantined there", "red there before"])
def test_what_another_platform_says_counts_only_where_it_is_its_own_and_new(gate_field: Field, why: str) -> None:
    fen, kestrel = gate_field.fen, gate_field.kestrel
    gate_field.sends()
    gate_field.fails({"test_a": "boom"})
    gate_field.reports({}, sha=main_sha(PLACE), at=-1)
    made = gate_field.reports({"test_a": "boom"}, repository=fen)
    assert "more platform" in gate_field.told()[1][0][2]
    if why == "below L3":
        Report.objects.filter(pk=made.pk).update(level=2)
    elif why == "one organisation":
        organisation = Organisation.objects.create(slug="both", name="Both", created_at=now())
        for repository in (fen, kestrel):
            member_of(repository.platform, organisation=organisation)
    elif why == "quarantined there":
        excluded: dict[str, Any] = {"source": "quarantine", "source_id": "q", "url": "/quarantines/q/", "pattern": ""}
        exclude(
            platform=fen.platform,
            variant=made.variant,
            tests=[gate_field.test("test_a").pk],
            reason="It races.",
            from_at=hours(-5),
            until_at=None,
            **excluded,
        )
    else:
        gate_field.reports({"test_a": "boom"}, repository=fen, sha=main_sha(PLACE), at=-1)
    assert gate_field.told()[1] == NEW


def test_without_a_merge_base_the_base_is_unknown(gate_field: Field) -> None:
    gate_field.sends()
    gate_field.fails({"test_a": "boom"})
    gate_field.reports({"test_a": "boom"}, sha=main_sha(PLACE), at=-1)
    MergeBase.objects.update(state="unknown", base_sha="")
    assert gate_field.told()[1] == UNKNOWN


def test_a_merge_base_that_became_known_later_was_unknown_then(gate_field: Field) -> None:
    gate_field.sends()
    gate_field.fails({"test_a": "boom"})
    gate_field.reports({"test_a": "boom"}, sha=main_sha(PLACE), at=-1)
    MergeBase.objects.update(known_at=hours(3))
    assert [gate_field.told(at)[1] for at in (2, 3)] == [UNKNOWN, BEFORE]
    Commit.objects.filter(sha=main_sha(PLACE)).update(placed_at=hours(4))
    assert [gate_field.told(at)[1] for at in (3, 4)] == [UNKNOWN, BEFORE]


def test_a_commit_of_main_is_not_its_own_base(gate_field: Field) -> None:
    sha = main_sha(PLACE)
    gate_field.sends(sha=sha)
    gate_field.fails({"test_a": "boom"}, sha=sha)
    assert gate_field.told(sha=sha)[1] == UNKNOWN


def test_a_list_that_is_cut_excuses_nothing(gate_field: Field) -> None:
    gate_field.sends()
    gate_field.fails({"test_a": "boom"})
    gate_field.reports({"test_a": "boom"}, sha=main_sha(PLACE), at=-1)
    Upload.objects.filter(job__isnull=False).update(is_whole=False)
    assert [one[:2] for one in gate_field.told(3)[1]] == [("errored", "blocks"), ("excluded", "passes")]


# --- many at once -----------------------------------------------------------------------------------------------


def test_many_moments_are_answered_as_each_by_itself(gate_field: Field) -> None:
    gate_field.sends()
    gate_field.fails({"test_a": "boom"}, at=2)
    gate_field.says("success", at=4)
    gate_field.sends(sha="ef" * 20, number=8, at=1)
    gate_field.says("success", sha="ef" * 20, number=8, at=2)
    questions = [
        *(Question(HEAD, NUMBER, hours(at)) for at in (1, 2.1, 2.5, 5)),
        *(Question("ef" * 20, 8, hours(at)) for at in (0.5, 1.5, 5)),
    ]
    together = facts_of(questions, base_commits=20)
    assert together == [facts_of([question], base_commits=20)[0] for question in questions]
    assert together[4] is None


def test_a_repository_can_be_taken_as_if_it_had_blocked(gate_field: Field) -> None:
    gate_field.sends(gate_field.kestrel, gate_field.fen)
    gate_field.fails({"test_a": "boom"}, repository=gate_field.fen)
    fen = gate_field.fen.pk
    (found,) = facts_of([Question(HEAD, NUMBER, hours(2))], base_commits=20, as_blocking=[fen], only=[fen])
    assert found is not None
    assert [(part.repository, part.blocks, len(part.jobs[0].tests)) for part in found.parts] == [("fen/torch", True, 1)]


@pytest.mark.parametrize("rows", [1, 3])
def test_a_commit_is_asked_about_with_as_many_queries_for_one_repository_as_for_three(
    gate_field: Field, rows: int, django_assert_num_queries: Any
) -> None:
    made = listed({f"acme/torch-{number}": 4 for number in range(rows)}, now=hours(-500))
    repositories: list[Repository] = list(made.values())
    gate_field.sends(*repositories)
    for repository in repositories:
        gate_field.fails({"test_a": "boom", "test_b": "bang"}, repository=repository)
        gate_field.reports({"test_a": "boom"}, repository=repository, sha=main_sha(PLACE), at=-1)
    with django_assert_num_queries(21):
        (found,) = facts_of([Question(HEAD, NUMBER, hours(1))], base_commits=20)
    assert found is not None
    assert len([part for part in found.parts if part.blocks]) == rows


def test_who_stands_on_a_commit_is_asked_again_when_its_report_comes_late(gate_field: Field) -> None:
    gate_field.sends()
    gate_field.fails({"test_a": "boom"})
    assert gate_field.told()[1] == UNKNOWN
    reach = NUMBERS["base_commits"]
    near = [main_sha(PLACE - back) for back in (-1, 0, reach, reach + 1)]
    asked = [services.heads_upon([sha], now=hours(2)) for sha in near]
    assert asked == [[], [HEAD], [HEAD], []]
    assert services.heads_upon([HEAD, "ee" * 20], now=hours(2)) == []
    gate_field.reports({"test_a": "boom"}, sha=main_sha(PLACE), at=2)
    services.look_again(services.heads_upon([main_sha(PLACE)], now=hours(3)), now=hours(3))
    assert StoredVerdict.objects.filter(sha=HEAD).latest("at").verdict == "pass"
    assert services.heads_upon([main_sha(PLACE)], now=hours(4)) == []


# --- what is kept -----------------------------------------------------------------------------------------------


def test_an_answer_is_kept_once_and_again_where_it_changes(gate_field: Field) -> None:
    gate_field.sends()
    for at in (1, 2, 2.5):
        gate_field.told(at)
    gate_field.says("success", at=3)
    gate_field.asks(4)
    told = gate_field.asks(5)
    kept = list(StoredVerdict.objects.order_by("pk").values_list("at", "verdict", "pr_number", "policy_number"))
    assert kept == [(hours(1), "pending", NUMBER, 0), (hours(4), "pass", NUMBER, 0)]
    last = StoredVerdict.objects.latest("pk")
    assert (last.inputs_hash, last.requirements[0]["sentence"]) == (told.inputs_hash, "1 job passed.")


def test_time_alone_changes_what_is_kept(gate_field: Field) -> None:
    gate_field.sends()
    assert (gate_field.told(1)[0], gate_field.told(6)[0]) == ("pending", "pass")
    first, second = StoredVerdict.objects.order_by("pk")
    assert first.inputs_hash == second.inputs_hash
    assert datetime.timedelta(hours=5) == second.at - first.at
