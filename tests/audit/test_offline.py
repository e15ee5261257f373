"""An export held against kept checkpoints, without a database: what was rewritten or cut off is named."""

import datetime
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings
from hypothesis import assume, given
from hypothesis import strategies as st

from apps.audit import checkpoints, export
from apps.audit.chain import GENESIS, Link, canonical, link_hash, stamp
from apps.audit.checkpoints import Signed
from apps.audit.export import Digest, Scope
from apps.audit.offline import Examination, examine
from tests.factories.checkpoints import HUB, UPSTREAM, WHEN, signed

# Of the log below: which events are public decisions.
PUBLIC = (True, False, True, False, False, True, True)
LATER = WHEN + datetime.timedelta(days=1)


@dataclass(frozen=True)
class Log:
    """A log as whoever holds it could write it: links that fit, whatever its summaries say."""

    summaries: tuple[str, ...] = tuple(f"event {number}" for number in range(1, 8))
    public: tuple[bool, ...] = PUBLIC

    @property
    def links(self) -> list[Link]:
        made: list[Link] = []
        for seq, (summary, is_decision) in enumerate(zip(self.summaries, self.public, strict=True), start=1):
            body = canonical(
                {
                    "seq": seq,
                    "at": stamp(WHEN),
                    "action": "repository.level_changed",
                    "actor": {"kind": "user", "id": "u-1", "label": "ada"},
                    "subject": {"kind": "repository", "id": "r-1", "label": "acme/torch"},
                    "summary": summary,
                    "is_decision": is_decision,
                }
            )
            previous = made[-1].hash if made else GENESIS
            made.append(Link(seq, body, previous, link_hash(previous, body)))
        return made


def written(links: list[Link], *, hub: str = HUB, at: datetime.datetime = LATER, scope: Scope = Scope.PUBLIC) -> bytes:
    """An export of these links, whole and sound as a file."""
    digest = Digest()
    lines = [export.opening_line(hub=hub, upstream=UPSTREAM, scope=scope, at=stamp(at))]
    shown = [export.as_public(link) if scope is Scope.PUBLIC else link for link in links]
    lines += [export.event_line(link) for link in shown]
    for line in lines:
        digest.add(line)
    withheld = sum(link.body is None for link in shown)
    last = links[-1]
    ending = export.ending_line(seq=last.seq, hash_=last.hash, count=len(links), withheld=withheld, digest=digest.hex)
    return "".join(f"{line}\n" for line in [*lines, ending]).encode()


def checkpoint(links: list[Link], seq: int, number: int = 1, hub: str = HUB) -> Signed:
    digest = Digest()
    for link in links[:seq]:
        digest.add(export.event_line(export.as_public(link)))
    return signed(number=number, seq=seq, hash=links[seq - 1].hash, export_digest=digest.hex, hub=hub)


def examined(content: bytes, *kept: Signed) -> Examination:
    return examine(content.splitlines(keepends=True), kept)


def finding(content: bytes, *kept: Signed) -> tuple[int, str]:
    found = examined(content, *kept)
    return found.verified_to, found.finding


LINKS = Log().links


@pytest.mark.parametrize(("scope", "withheld"), [(Scope.PUBLIC, 3), (Scope.FULL, 0)])
def test_a_whole_export_holds_and_a_kept_checkpoint_proves_it(scope: Scope, withheld: int) -> None:
    content = written(LINKS, scope=scope)
    head = LINKS[-1].hash
    assert examined(content) == Examination(HUB, 7, head, withheld, 0)
    assert examined(content, checkpoint(LINKS, 7), checkpoint(LINKS, 3)) == Examination(HUB, 7, head, withheld, 7)
    # The hub has moved to another address meanwhile.
    assert examined(written(LINKS, hub="https://new.example"), checkpoint(LINKS, 5)).finding == ""


def test_what_is_withheld_tells_nothing_but_its_place() -> None:
    lines = [json.loads(line) for line in written(LINKS).splitlines()]
    assert lines[2] == {"seq": 2, "withheld": True, "previous_hash": LINKS[0].hash, "hash": LINKS[1].hash}
    assert lines[3] == {
        "seq": 3,
        "body": LINKS[2].body,
        "previous_hash": LINKS[1].hash,
        "hash": LINKS[2].hash,
    }


def lines(change: Callable[[list[bytes]], list[bytes]]) -> bytes:
    return b"".join(change(written(LINKS).splitlines(keepends=True)))


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", (0, "the export was cut short after event 0: its last line is missing")),
        (lines(lambda all_: all_[:-1]), (7, "the export was cut short after event 7: its last line is missing")),
        (lines(lambda all_: all_[:5]), (4, "the export was cut short after event 4: its last line is missing")),
        (written(LINKS)[:-1], (7, "line 9 stops in its middle: the export was cut short after event 7")),
        (
            lines(lambda all_: [*all_[:3], all_[3][:50]]),
            (2, "line 4 stops in its middle: the export was cut short after event 2"),
        ),
        (lines(lambda all_: [*all_[:3], *all_[4:]]), (2, "event 3 is missing: the next one stored is 4")),
        (
            lines(lambda all_: [*all_[:3], all_[4], all_[3], *all_[5:]]),
            (2, "event 3 is missing: the next one stored is 4"),
        ),
        (
            lines(lambda all_: [*all_[:7], all_[8]]),
            (6, "the log ends at event 6, its head says 7: events were cut off its end"),
        ),
        (
            lines(lambda all_: [line.replace(b"event 3", b"event x") for line in all_]),
            (2, "event 3 was changed: its hash does not fit its body"),
        ),
        (
            lines(lambda all_: [*all_[:2], all_[2].replace(LINKS[1].hash.encode(), b"f" * 64), *all_[3:]]),
            (2, "event 3 does not follow event 2: its previous_hash is another"),
        ),
        (
            lines(lambda all_: [*all_[:3], all_[3].replace(b'":', b'": ', 1), *all_[4:]]),
            (2, "line 4, where event 3 belongs, is not written as the hub writes it"),
        ),
        (
            lines(lambda all_: [*all_[:3], b"nonsense\n", *all_[4:]]),
            (2, "line 4, where event 3 belongs, cannot be read"),
        ),
        (lines(lambda all_: [*all_[:3], b'{"seq":3}\n', *all_[4:]]), (2, "line 4, where event 3 belongs, is no event")),
        (lines(lambda all_: [*all_, all_[1]]), (7, "line 10 stands after the last line of the log")),
        (
            lines(lambda all_: [all_[0].replace(b"hub.example", b"bub.example"), *all_[1:]]),
            (
                7,
                "a line was changed although every link holds: the first, or one whose event is withheld now; the last "
                "line was written over others",
            ),
        ),
        (
            lines(lambda all_: all_[1:]),
            (0, "line 1 does not open an export of the format accelhub-decision-log/1"),
        ),
        (
            lines(lambda all_: [*all_[:-1], all_[-1].replace(b'"count":7', b'"count":8')]),
            (7, "the last line counts 8 events, 3 of them withheld; there are 7 and 3"),
        ),
        (
            lines(lambda all_: [*all_[:-1], all_[-1].replace(b'"end":7', b'"end":true')]),
            (7, "the last line does not say where the log ends"),
        ),
        (
            lines(lambda all_: [*all_[:2], f"{export.event_line(LINKS[1])}\n".encode(), *all_[3:]]),
            (1, "event 2 is no decision, and a public export withholds its body"),
        ),
    ],
)
def test_what_does_not_hold_is_named(content: bytes, found: tuple[int, str]) -> None:
    assert finding(content) == found


def test_a_log_that_was_written_anew_holds_in_itself_but_not_against_a_checkpoint() -> None:
    kept = checkpoint(LINKS, 3), checkpoint(LINKS, 6, number=2)
    anew = Log(summaries=(*Log().summaries[:4], "another", *Log().summaries[5:])).links
    assert finding(written(anew)) == (7, "")
    said = "event 6 is not the one that checkpoint 2 names: after event 3, it or one before it was rewritten"
    assert examined(written(anew), *kept) == Examination(HUB, 6, anew[5].hash, 3, 3, said)
    said = "event 6 is not the one that checkpoint 2 names: it or one before it was rewritten"
    assert finding(written(anew), kept[1]) == (6, said)


def test_what_was_rewritten_behind_a_withheld_event_is_found() -> None:
    """A withheld hash cannot be recomputed, so whoever rewrites what stands before it keeps the links around it."""
    forged = Log(summaries=("forged", *Log().summaries[1:])).links
    links = [forged[0], Link(2, LINKS[1].body, forged[0].hash, LINKS[1].hash), *LINKS[2:]]
    assert finding(written(links)) == (7, "")
    said = (
        "the events up to 6 are not those of checkpoint 1: one was rewritten or is withheld, although the links around "
        "it hold"
    )
    assert finding(written(links), checkpoint(LINKS, 6)) == (6, said)


def test_a_decision_that_is_withheld_now_is_found() -> None:
    hidden = [*LINKS[:2], export.without_body(LINKS[2]), *LINKS[3:]]
    assert finding(written(hidden)) == (7, "")
    assert finding(written(hidden), checkpoint(LINKS, 3))[1].startswith(
        "the events up to 3 are not those of checkpoint"
    )


def test_a_tail_that_was_cut_off_with_its_head_is_found() -> None:
    said = "the log ends at event 4, and checkpoint 1 names event 7: events were cut off its end"
    assert finding(written(LINKS[:4]), checkpoint(LINKS, 7)) == (4, said)


def test_an_export_of_before_the_checkpoint_proves_nothing_about_it() -> None:
    earlier = written(LINKS[:4], at=WHEN - datetime.timedelta(seconds=1))
    said = "the export was made before checkpoint 1, which names event 7: fetch a newer export"
    assert finding(earlier, checkpoint(LINKS, 7)) == (4, said)


def test_a_checkpoint_of_another_hub_is_told_from_a_rewritten_log() -> None:
    others = Log(summaries=tuple("another hub's" for _ in PUBLIC)).links
    said = "checkpoint 1 is of another hub: https://other.example, the export of https://hub.example"
    for seq in (3, 7):
        assert finding(written(LINKS), checkpoint(others, seq, hub="https://other.example"))[1] == said
    longer = checkpoint(LINKS, 7, hub="https://other.example")
    assert finding(written(LINKS[:4]), longer) == (4, said)


logs = st.lists(st.tuples(st.text(max_size=8), st.booleans()), min_size=1, max_size=6)


@given(logs, st.sampled_from(Scope), st.data())
def test_any_single_change_of_any_line_is_found(
    events: list[tuple[str, bool]], scope: Scope, data: st.DataObject
) -> None:
    made = Log(tuple(text for text, _ in events), tuple(public for _, public in events)).links
    whole = written(made, scope=scope)
    assert finding(whole, checkpoint(made, len(made))) == (len(made), "")
    all_ = whole.splitlines(keepends=True)
    place = data.draw(st.integers(0, len(all_) - 1))
    line = all_[place]
    at = data.draw(st.integers(0, len(line) - 1))
    byte = data.draw(st.integers(0, 255))
    other = data.draw(st.integers(0, len(all_) - 1))
    changed = {
        "deleted": [*all_[:place], *all_[place + 1 :]],
        "twice": [*all_[:place], line, *all_[place:]],
        "moved": [*(rest := [*all_[:place], *all_[place + 1 :]])[:other], line, *rest[other:]],
        "altered": [*all_[:place], line[:at] + bytes([byte]) + line[at + 1 :], *all_[place + 1 :]],
        "shortened": [*all_[:place], line[:at] + line[at + 1 :], *all_[place + 1 :]],
        "cut": [*all_[:place], line[:at]],
    }[data.draw(st.sampled_from(["deleted", "twice", "moved", "altered", "shortened", "cut"]))]
    content = b"".join(changed)
    assume(content != whole)
    assert examined(content).finding != ""


def test_outsiders_are_told_every_field() -> None:
    told = (Path(settings.BASE_DIR) / "docs" / "decisions.md").read_text()
    fields = export.OPENING | export.EVENT | export.WITHHELD | export.ENDING | set(json.loads(signed().text))
    assert [name for name in sorted(fields) if f"`{name}`" not in told] == []
    assert [word for word in (export.FORMAT, checkpoints.FORMAT) if f"`{word}`" not in told] == []
