"""The tables of proposals: complete, consistent with each other, and printed."""

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from apps.governance.enums import Party, State, Verb
from apps.governance.policy import (
    CRITERIA,
    MOVES,
    NEXT_ACTOR,
    OPEN,
    PROPOSED_LEVEL,
    SUBMISSIONS_PER_DAY,
    criteria_of,
    is_for_proposer,
    recusal,
    url_finding,
)
from tests.factories.pages import Page


def test_who_is_next_is_who_can_move() -> None:
    assert set(NEXT_ACTOR) == set(State)
    for state in State:
        apart = (Verb.WITHDRAW, Verb.PUT_BACK)  # the proposer's at any time; upstream's, after the end
        movers = {move.by for (before, verb), move in MOVES.items() if before is state and verb not in apart}
        assert movers == ({NEXT_ACTOR[state]} if state in OPEN else set())
    assert {state for state in State if NEXT_ACTOR[state] is Party.NOBODY} == set(State) - set(OPEN)


def test_whoever_is_next_is_told_unless_it_was_their_own_act() -> None:
    for (_, verb), move in MOVES.items():
        expected = {Verb.ACCEPT: Party.VENDOR, Verb.WITHDRAW: Party.NOBODY}.get(verb, NEXT_ACTOR[move.to])
        assert move.tells is expected
        assert move.tells is not move.by


def test_every_verb_is_somebodys() -> None:
    assert {verb for _, verb in MOVES} == set(Verb)
    assert {verb for verb in Verb if is_for_proposer(verb)} == {Verb.SUBMIT, Verb.RESUBMIT, Verb.WITHDRAW}


@pytest.mark.parametrize(
    ("is_proposer", "is_colleague", "why"),
    [
        (True, False, "Nobody decides on their own proposal"),
        (True, True, "Nobody decides on their own proposal"),
        (False, True, "Nobody decides on a proposal of their own organisation"),
        (False, False, ""),
    ],
)
def test_who_may_not_decide(is_proposer: bool, is_colleague: bool, why: str) -> None:
    said = {verb: recusal(verb, is_proposer=is_proposer, is_colleague=is_colleague) for verb in Verb}
    assert said == {verb: why if verb in (Verb.ACCEPT, Verb.RETURN) else "" for verb in Verb}


def test_criteria_have_one_key_each() -> None:
    assert len({row.key for row in CRITERIA}) == len(CRITERIA)
    assert [row.key for row in criteria_of(PROPOSED_LEVEL)] == ["app_installed", "hardware", "public_repository"]


@pytest.mark.parametrize(
    "url",
    [
        "https://zephyr.example",
        "HTTP://ZEPHYR.EXAMPLE:8080/a%20b?c=[1]#d",
        "https://xn--zphyr-bva.example/~z/(1);x=1,2!$&'*+-._@:",
        "http://[2001:db8::1]/",
    ],
)
def test_links_that_browsers_copy_are_taken(url: str) -> None:
    assert url_finding(url) is None


@given(st.text(max_size=60))
def test_no_link_can_leave_its_attribute_or_name_another_scheme(text: str) -> None:
    for url in (text, f"https://{text}", f"http://a.example/{text}"):
        if url_finding(url) is None:
            assert url.lower().startswith(("http://", "https://"))
            assert url.isascii()
            assert not set(url) & set(' \t\r\n"<>\\^`{|}')
            assert "@" not in url.split("/")[2]


@pytest.mark.django_db
def test_the_rules_page_prints_both_tables(client: Client) -> None:
    page = Page(client.get("/policy/"))
    assert page.tables["first-level"] == [(row.text, row.shown_by, row.how) for row in CRITERIA]
    printed = [
        (state.partition(" ")[2] if "not" not in state else None, act, by, words, becomes.partition(" ")[2], tells)
        for state, act, by, words, becomes, tells in page.tables["proposals"]
    ]
    assert printed == [
        (state and state.value, verb.value, move.by.label, move.words, move.to.value, move.tells.label)
        for (state, verb), move in MOVES.items()
    ]
    assert (
        "Next to act: waiting: the maintainers; returned: the vendor; accepted: nobody; withdrawn: nobody." in page.text
    )
    assert f"at most {SUBMISSIONS_PER_DAY} new ones a person in 24 hours" in page.text
