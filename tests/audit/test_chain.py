"""The hash format of the log, and what its proof finds."""

import dataclasses
import datetime
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.audit.chain import GENESIS, Link, Proof, canonical, columns_of, link_hash, prove, stamp

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
bodies = st.dictionaries(st.text(), values, max_size=5)


def chained(*summaries: str) -> list[Link]:
    """A sound chain, an event for each summary."""
    links: list[Link] = []
    for seq, summary in enumerate(summaries, 1):
        body = {
            "seq": seq,
            "at": "2026-01-31T23:59:59.000000Z",
            "action": "repository.level_changed",
            "actor": {"kind": "user", "id": "u", "label": "ada"},
            "subject": {"kind": "repository", "id": "r", "label": "acme/torch"},
            "summary": summary,
            "is_decision": True,
        }
        previous = links[-1].hash if links else GENESIS
        text = canonical(body)
        links.append(Link(seq, text, previous, link_hash(previous, text), columns_of(body)))
    return links


def proved(links: list[Link], head: Link) -> Proof:
    return prove(links, head_seq=head.seq, head_hash=head.hash)


chains = st.lists(st.text(max_size=20), min_size=1, max_size=6).map(lambda summaries: chained(*summaries))


# --- the canonical form ---


def test_the_format_is_the_one_that_was_promised() -> None:
    body = canonical({"b": [1, True, None], "a": "é\n", "c": {"z": "", "y": -5}})
    assert body == r'{"a":"\u00e9\n","b":[1,true,null],"c":{"y":-5,"z":""}}'
    assert link_hash(GENESIS, body) == "0e99bead85afcaf27e68b15f23f406581998fd310a9b94108d29bc64b8cf3364"


@settings(deadline=None)
@given(bodies)
def test_the_canonical_form_is_stable(body: dict[str, Any]) -> None:
    text = canonical(body)
    assert (json.loads(text), canonical(json.loads(text))) == (body, text)


@settings(deadline=None)
@given(bodies, st.randoms(use_true_random=False))
def test_the_canonical_form_does_not_depend_on_the_order_of_writing(body: dict[str, Any], dice: random.Random) -> None:
    items = list(body.items())
    dice.shuffle(items)
    assert canonical(dict(items)) == canonical(body)


@settings(deadline=None)
@given(bodies)
def test_the_canonical_form_is_one_line_of_ascii(body: dict[str, Any]) -> None:
    assert canonical(body).isascii()
    assert "\n" not in canonical(body)


@settings(deadline=None)
@given(bodies, st.floats(), st.sampled_from([lambda x: x, lambda x: [x], lambda x: {"k": (1, {"k": x})}]))
def test_a_float_is_refused_wherever_it_stands(body: dict[str, Any], number: float, place: Any) -> None:
    with pytest.raises(TypeError) as caught:
        canonical(body | {"rate": place(number)})
    expected = f"a log body holds no floats, saw {number!r}: write an integer in a smaller unit, or text"
    assert str(caught.value) == expected


def test_a_time_is_spelled_in_utc_with_microseconds() -> None:
    berlin = datetime.timezone(datetime.timedelta(hours=1))
    assert stamp(datetime.datetime(2026, 1, 1, 0, 30, 0, 7, tzinfo=berlin)) == "2025-12-31T23:30:00.000007Z"


# --- the proof ---


@settings(deadline=None)
@given(chains)
def test_an_untouched_chain_is_sound(links: list[Link]) -> None:
    assert proved(links, links[-1]) == Proof(len(links), links[-1].hash)


def test_an_empty_log_is_sound() -> None:
    assert prove([], head_seq=0, head_hash=GENESIS) == Proof(0, GENESIS)


@settings(deadline=None)
@given(chains, st.data())
def test_any_changed_byte_of_any_stored_link_is_found_and_the_first_broken_one_named(
    links: list[Link], data: st.DataObject
) -> None:
    position = data.draw(st.integers(0, len(links) - 1))
    name = data.draw(st.sampled_from(["body", "previous_hash", "hash"]))
    stored = getattr(links[position], name)
    at = data.draw(st.integers(0, len(stored) - 1))
    byte = data.draw(st.characters(min_codepoint=0, max_codepoint=127).filter(lambda c: c != stored[at]))
    broken = list(links)
    broken[position] = dataclasses.replace(links[position], **{name: stored[:at] + byte + stored[at + 1 :]})
    seq = position + 1
    words = {
        "body": f"event {seq} was changed: its hash does not fit its body",
        "previous_hash": f"event {seq} does not follow event {seq - 1}: its previous_hash is another",
        "hash": f"event {seq} was changed: its hash does not fit its body",
    }
    assert proved(broken, links[-1]) == Proof(position, links[position].previous_hash, words[name])


@settings(deadline=None)
@given(chains, st.data())
def test_a_changed_filter_column_is_found(links: list[Link], data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(links) - 1))
    stored = links[position].columns
    assert stored is not None
    name = data.draw(st.sampled_from(sorted(stored)))
    columns = stored | {name: not stored[name]}
    broken = [*links[:position], dataclasses.replace(links[position], columns=columns), *links[position + 1 :]]
    finding = f"event {position + 1} was changed: column {name} does not repeat its body"
    assert proved(broken, links[-1]) == Proof(position, links[position].previous_hash, finding)


@settings(deadline=None)
@given(chains, st.data())
def test_a_cut_tail_is_found(links: list[Link], data: st.DataObject) -> None:
    kept = data.draw(st.integers(0, len(links) - 1))
    finding = f"the log ends at event {kept}, its head says {len(links)}: events were cut off its end"
    assert proved(links[:kept], links[-1]) == Proof(kept, links[kept].previous_hash, finding)


def test_a_missing_event_is_found() -> None:
    links = chained("one", "two", "three")
    finding = "event 2 is missing: the next one stored is 3"
    assert proved([links[0], links[2]], links[-1]) == Proof(1, links[0].hash, finding)


def test_a_chain_that_was_written_anew_does_not_fit_the_head() -> None:
    head = chained("one", "two")[-1]
    forged = chained("one", "other")
    finding = "event 2 is not the one that the head names: its hash is another"
    assert proved(forged, head) == Proof(2, forged[-1].hash, finding)


@pytest.mark.parametrize("body", ["[]", "5", "{}", '{"actor":{}}', '"text"', "not JSON"])
def test_a_body_of_another_shape_is_found(body: str) -> None:
    link = dataclasses.replace(chained("one")[0], body=body, hash=link_hash(GENESIS, body))
    assert proved([link], link) == Proof(0, GENESIS, "event 1 has an unreadable body")


def test_a_body_that_belongs_to_another_event_is_found() -> None:
    second = chained("one", "two")[1]
    assert second.body is not None
    link = dataclasses.replace(second, seq=1, previous_hash=GENESIS, hash=link_hash(GENESIS, second.body))
    assert proved([link], link) == Proof(0, GENESIS, "event 1 carries the body of event 2")
