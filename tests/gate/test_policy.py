"""The gate's rules, one test named after each, and the laws that hold whatever comes."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.gate.enums import BaseState, Effect, RowKind
from apps.gate.policy import RULES, SEVERITY, VERDICTS, Breaker, JobFact, Override, Part, current
from apps.policies.policy import Act, Handling
from tests.gate.parts import FEN, QUARANTINE, asked, hours, job, part, policy_with, red, row, told


def test_every_rule_has_a_test_named_after_it() -> None:
    assert [rule for rule in RULES if f"test_{rule}" not in globals()] == []


@pytest.mark.parametrize("level", [2, 3])
def test_only_l4_blocks(level: int) -> None:
    other = part(job("failure"), repository=FEN, level=level, blocks=False)
    sentence = f"1 failure; L{level} never blocks."
    assert told(part(job()), other) == (
        "pass",
        [("satisfied", "passes", "1 job passed."), ("informational", "passes", sentence)],
    )
    assert told() == ("pass", [])


def test_newest_counts() -> None:
    older, newer = job("failure", 0.1, tests=(red(),)), job("success", 0.6, 0.8, number=2)
    assert told(part(older, newer)) == ("pass", [("satisfied", "passes", "1 job passed.")])
    again = job("failure", 0.6, 0.8, number=2, tests=(red(),))
    assert asked(part(job(), again)).verdict == "fail"
    # A later attempt of one of two legs takes the failed leg's place, and leaves the other.
    first = [job("failure", number=1, run="r"), job("success", number=2, run="r")]
    second = job("success", 0.7, 0.9, number=3, run="r", attempt=2)
    assert [one.number for one in current([*first, second])] == [2, 3]


def test_running_beats_finished() -> None:
    older, newer = job("failure", tests=(red(),)), job("in_progress", 0.6, number=2)
    assert told(part(older, newer)) == (
        "pending",
        [("pending", "waits", "1 job running: awaited until 2026-11-30 18:00 UTC.")],
    )
    # After the wait the older end speaks again: starting a run anew lets nothing pass.
    assert told(part(older, newer), at=6)[0] == "fail"
    assert told(part(newer), at=6) == (
        "pass",
        [("missing", "passes", "1 job running: passes, by policy; recorded here.")],
    )


def test_failure_wins_a_tie() -> None:
    both = [job("success", number=1), job("failure", number=2, tests=(red(),))]
    assert asked(part(*both)).verdict == "fail"
    legs = [replace(one, run="r") for one in both]
    assert asked(part(*legs)).verdict == "fail"


def test_silence_is_recorded() -> None:
    silent = part()
    waits = "No job of it was heard for this commit: awaited until 2026-11-30 18:00 UTC."
    assert told(silent) == ("pending", [("pending", "waits", waits)])
    passes = "No job of it was heard for this commit: passes, by policy; recorded here."
    assert told(silent, at=6) == ("pass", [("missing", "passes", passes)])
    unsent = part(sent_at=None)
    words = "The hub has not sent it the event: awaited until 2026-11-30 18:00 UTC."
    assert told(unsent) == ("pending", [("pending", "waits", words)])
    assert told(silent, at=9, policy=policy_with(missing=Act.BLOCK))[0] == "fail"
    # What a declaration makes informational is no answer either.
    assert told(part(job("informational")))[0] == "pending"


def test_missing_names_the_nearest() -> None:
    nearest = row(RowKind.COMMIT, "77e2b1d00000")
    found = asked(part(nearest=nearest), at=6).requirements[0]
    assert found.rows == (nearest,)
    assert "it was heard last at 77e2b1d00000" in found.sentence


@pytest.mark.parametrize(
    ("outcome", "row_name"),
    [
        ("in_progress", "running"),
        ("unheard", "running"),
        ("timed_out", "timed_out"),
        ("cancelled", "cancelled"),
        ("neutral", "neutral"),
        ("contradicted", "contradicted"),
        ("unexpected", "unexpected"),
        ("failure", "no_tests_named"),
    ],
)
@pytest.mark.parametrize(
    ("handling", "at", "verdict"),
    [
        (Handling(Act.BLOCK), 1, "fail"),
        (Handling(Act.PASS), 1, "pass"),
        (Handling(Act.WAIT, 3, Act.PASS), 1, "pending"),
        (Handling(Act.WAIT, 3, Act.PASS), 4, "pass"),
        (Handling(Act.WAIT, 3, Act.BLOCK), 1, "pending"),
        (Handling(Act.WAIT, 3, Act.BLOCK), 4, "fail"),
    ],
)
def test_outcomes_are_policy(outcome: str, row_name: str, handling: Handling, at: float, verdict: str) -> None:
    found = asked(part(job(outcome)), at=at, policy=policy_with(**{row_name: handling}))
    assert (found.verdict, [one.outcome for one in found.requirements]) == (verdict, [row_name])


def test_named_tests_decide() -> None:
    unnamed = part(job("failure"))
    waits = "1 job failed, and no report names all tests that did: awaited until 2026-11-30 13:30 UTC."
    assert told(unnamed) == ("pending", [("pending", "waits", waits)])
    assert told(unnamed, at=2)[0] == "fail"
    named = part(job("failure", tests=(red("test_a"), red("test_b"))))
    assert told(named) == ("fail", [("unsatisfied", "blocks", "2 new failures of 2 red tests.")])


def test_quarantine_excuses() -> None:
    quarantined = red(quarantine=QUARANTINE)
    found = asked(part(job("failure", tests=(quarantined,))))
    assert (found.verdict, [(one.type, one.sentence) for one in found.requirements]) == (
        "pass",
        [("quarantined", "1 red test in quarantine when the result came.")],
    )
    assert found.requirements[0].rows == (quarantined.row, QUARANTINE)
    assert asked(part(job("failure", tests=(quarantined, red("test_b"))))).verdict == "fail"


def test_base_excuses() -> None:
    base = row(RowKind.COMMIT, "base 77e2b1d")
    found = asked(part(job("failure", tests=(red(base=BaseState.SAME, base_row=base),))))
    assert (found.verdict, [(one.type, one.sentence) for one in found.requirements]) == (
        "pass",
        [("excluded", "1 red test with the same failure at the base already.")],
    )
    assert base in found.requirements[0].rows


def test_base_unknown_excuses_nothing() -> None:
    unknown = part(job("failure", tests=(red(base=BaseState.UNKNOWN),)))
    assert told(unknown) == (
        "fail",
        [("unsatisfied", "blocks", "1 red test of which the base is unknown: blocks, by policy.")],
    )
    assert told(unknown, policy=policy_with(base_unknown=Act.PASS))[0] == "pass"


def test_other_failure_is_new() -> None:
    assert told(part(job("failure", tests=(red(base=BaseState.OTHER),))))[0] == "fail"


def test_a_cut_list_excuses_nothing() -> None:
    cut = part(job("failure", tests=(red(quarantine=QUARANTINE),), is_whole=False))
    assert [(kind, effect) for kind, effect, _ in told(cut, at=2)[1]] == [
        ("errored", "blocks"),
        ("quarantined", "passes"),
    ]


def test_platforms_strengthen() -> None:
    shared = part(job("failure", tests=(red("test_a", elsewhere=2), red("test_b"))))
    assert told(shared) == (
        "fail",
        [
            (
                "unsatisfied",
                "blocks",
                "2 new failures of 2 red tests. 1 of them has the same failure on 2 more platforms: this points to the"
                " change.",
            )
        ],
    )


def test_late_cannot_launder() -> None:
    late = job("failure", 1, 7, number=2, tests=(red(),))
    lenient = policy_with(late=Act.PASS)
    assert told(part(late), at=8)[0] == "fail"
    assert told(part(late), at=8, policy=lenient) == (
        "pass",
        [
            (
                "unsatisfied",
                "passes",
                "Late, so it passes, by policy; recorded here: 1 new failure of 1 red test.",
            )
        ],
    )
    # A run begun anew after the wait is late too, but its check had its answer in time.
    first = job("failure", tests=(red(),))
    assert told(part(first, late), at=8, policy=lenient)[0] == "fail"
    assert told(part(job("success", 1, 7)), at=8) == ("pass", [("satisfied", "passes", "1 job passed.")])


def test_held_is_not_heard() -> None:
    words = "1 job came under a new owner and is held: awaited until 2026-11-30 18:00 UTC."
    assert told(part(held=1)) == ("pending", [("pending", "waits", words)])


def test_unknown_is_never_green() -> None:
    unknown = part(job("unknown"))
    words = "What 1 job said at that moment is not known any more."
    assert told(unknown) == ("unknown", [("errored", "unknown", words)])
    assert told(unknown, part(repository=FEN))[0] == "unknown"
    assert told(unknown, part(job("timed_out"), repository=FEN))[0] == "fail"


OVERRIDE = Override(row(RowKind.OVERRIDE, "override by ada"), "ada", "The runner burns.", hours(24))


def test_overrides_let_pass() -> None:
    failing = part(job("failure", tests=(red(),)), override=OVERRIDE)
    sentence = (
        "Overridden by ada until 2026-12-01 12:00 UTC: The runner burns. Without that it blocks: 1 new failure of 1 red"
        " test."
    )
    assert told(failing) == ("pass", [("overridden", "passes", sentence)])
    assert told(failing, part(job("timed_out"), repository=FEN))[0] == "fail"


BREAKER = Breaker(row(RowKind.DECISION, "breaker opened"), hours(0), "It failed on 4 unrelated pull requests.")


def test_breaker_silences() -> None:
    sentence = (
        "Breaker open since 2026-11-30 12:00 UTC: It failed on 4 unrelated pull requests. Blocks nothing. Without that"
        " it blocks: 1 job timed out: blocks, by policy."
    )
    assert told(part(job("timed_out"), breaker=BREAKER)) == ("pass", [("informational", "passes", sentence)])


def test_confirmed_still_blocks() -> None:
    shared = part(job("failure", tests=(red("test_a", elsewhere=1),)), breaker=BREAKER)
    assert [(str(one.type), one.effect) for one in asked(shared).requirements] == [
        ("unsatisfied", "blocks"),
        ("informational", "passes"),
    ]


def test_who_takes_no_part_is_left_out() -> None:
    left_out = part(left_out="it takes part in 10 % of events.")
    assert told(left_out) == ("pass", [("excluded", "passes", "Not sent: it takes part in 10 % of events.")])


# --- laws -------------------------------------------------------------------------------------------------------

_OUTCOMES = ["success", "failure", "timed_out", "cancelled", "neutral", "contradicted", "unexpected", "in_progress"]
_TESTS = st.builds(
    red,
    st.sampled_from(["test_a", "test_b", "test_c"]),
    st.sampled_from(list(BaseState)),
    quarantine=st.sampled_from([None, QUARANTINE]),
)


@st.composite
def _jobs(draw: Any) -> tuple[JobFact, ...]:
    return tuple(
        job(
            outcome := draw(st.sampled_from([*_OUTCOMES, "unknown", "unheard", "informational"])),
            began := draw(st.sampled_from([0.1, 0.5, 2, 7])),
            began + draw(st.sampled_from([0.1, 3])),
            number=number,
            name=draw(st.sampled_from(["build", "test"])),
            run=draw(st.sampled_from(["r1", "r2"])),
            attempt=draw(st.sampled_from([1, 2])),
            tests=tuple(draw(st.lists(_TESTS, max_size=3))) if outcome == "failure" else (),
            is_whole=draw(st.booleans()),
        )
        for number in range(draw(st.integers(0, 5)))
    )


_HANDLINGS = st.one_of(
    st.sampled_from([Handling(Act.BLOCK), Handling(Act.PASS)]),
    st.builds(Handling, st.just(Act.WAIT), st.integers(1, 8), st.sampled_from([Act.BLOCK, Act.PASS])),
)
_POLICIES = st.fixed_dictionaries(dict.fromkeys(("missing", "running", "late", "timed_out"), _HANDLINGS)).map(
    lambda rows: policy_with(**rows)
)
_PARTS = st.lists(
    st.builds(lambda jobs, blocks: part(*jobs, blocks=blocks, level=4 if blocks else 3), _jobs(), st.booleans()),
    max_size=3,
)
_MOMENTS = st.sampled_from([0.2, 1, 4, 9, 30])


def severity(parts: list[Part], at: float, policy: Any) -> int:
    return list(VERDICTS.values()).index(asked(*parts, at=at, policy=policy).verdict)


@given(_PARTS, _MOMENTS, _POLICIES)
def test_an_override_never_makes_the_verdict_worse(parts: list[Part], at: float, policy: Any) -> None:
    overridden = [replace(one, override=OVERRIDE) for one in parts[:1]] + parts[1:]
    assert severity(overridden, at, policy) <= severity(parts, at, policy)


@given(_PARTS, _MOMENTS, _POLICIES)
def test_a_quarantine_never_makes_the_verdict_worse(parts: list[Part], at: float, policy: Any) -> None:
    def quarantined(one: JobFact) -> JobFact:
        return replace(one, tests=tuple(replace(test, quarantine=QUARANTINE) for test in one.tests))

    more = [replace(one, jobs=tuple(map(quarantined, one.jobs))) for one in parts]
    assert severity(more, at, policy) <= severity(parts, at, policy)


@given(_PARTS, _MOMENTS, _POLICIES)
def test_a_better_end_never_makes_the_verdict_worse(parts: list[Part], at: float, policy: Any) -> None:
    def better(one: Part) -> Part:
        counts = {each.number for each in current(one.jobs) if each.ended_at}
        jobs = [
            replace(each, outcome="success", tests=()) if each.number in counts else each for each in current(one.jobs)
        ]
        return replace(one, jobs=tuple(jobs))

    before = [replace(one, jobs=tuple(current(one.jobs))) for one in parts]
    assert severity([better(one) for one in before], at, policy) <= severity(before, at, policy)


@given(_PARTS, _MOMENTS, _POLICIES)
def test_nothing_passes_while_a_requirement_blocks_waits_or_is_unknown(
    parts: list[Part], at: float, policy: Any
) -> None:
    found = asked(*parts, at=at, policy=policy)
    effects = {one.effect for one in found.requirements}
    assert (found.verdict == "pass") == (effects <= {Effect.PASSES})
    assert all(one.effect is Effect.PASSES for one in found.requirements if one.level < 4)
    assert len({one.repository for one in found.requirements}) == min(1, len(parts))
    assert found.verdict == VERDICTS[max(effects, key=SEVERITY.index, default=Effect.PASSES)]


@given(_PARTS.flatmap(lambda parts: st.tuples(st.just(parts), st.permutations(parts), st.randoms())), _MOMENTS)
def test_the_order_of_arrival_does_not_matter(shuffled: Any, at: float) -> None:
    parts, others, dice = shuffled
    mixed = [replace(one, jobs=tuple(dice.sample(one.jobs, len(one.jobs)))) for one in others]
    names = {id(one): f"r{number}" for number, one in enumerate(parts)}
    first = [replace(one, repository=names[id(one)]) for one in parts]
    second = [replace(mixed[at_], repository=names[id(one)]) for at_, one in enumerate(others)]
    assert told(*first, at=at) == told(*second, at=at)
