"""One entry changed in a file's text: what it becomes, what stays, and what is refused."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.platforms.allowlist import NIGHTLY, AllowlistError, Entry, dump, parse
from apps.platforms.allowlist_edit import EditError, edit
from tests.platforms.test_allowlist import EVERY_FORM, UPSTREAM, allowlists, labelled, mutated
from tests.platforms.test_allowlist import listed as entries

NIGHTLY_ONLY = frozenset({NIGHTLY})


def changes(before: str, after: str) -> list[str]:
    """The lines that went and came."""
    lines = difflib.ndiff(before.splitlines(keepends=True), after.splitlines(keepends=True))
    return [line.rstrip("\n") for line in lines if line[0] in "+-"]


EDITS: dict[str, tuple[str, Entry | None, list[str]]] = {
    "raised to a list": (
        "RISEPROJECT-dev/pytorch-ci",
        Entry(2, "x/y"),
        ["-   - riseproject-dev/pytorch-ci", "+   - riseproject-dev/pytorch-ci"],
    ),
    "raised to a known device": (
        "torch-spyre/torch-spyre",
        Entry(3, "x/y", "npu", ("alice", "no")),
        ["-   - torch-spyre/torch-spyre", '+     torch-spyre/torch-spyre: [alice, "no"]'],
    ),
    "raised to a new device": (
        "torch-spyre/torch-spyre",
        Entry(3, "x/y", "1.0", events=NIGHTLY_ONLY),
        [
            "-   - torch-spyre/torch-spyre",
            '+   "1.0":',
            "+     torch-spyre/torch-spyre:",
            "+       events: [nightly]",
        ],
    ),
    "lowered, and its device goes with it": (
        "Ascend/pytorch",
        Entry(2, "Ascend/pytorch"),
        ["+   - Ascend/pytorch", "-   npu:", "-     Ascend/pytorch:"],
    ),
    "raised into empty brackets": (
        "pytorch/crcr-test",
        Entry(4, "pytorch/crcr-test", oncalls=("relay-one", "relay-two")),
        [
            "-   crcr-test:",
            "-     pytorch/crcr-test: [relay-one, relay-two, relay-three, relay-four, relay-five, relay-six]",
            "- L4: []",
            "+ L4:",
            "+   - pytorch/crcr-test: relay-one, relay-two",
        ],
    ),
    "other details": (
        "NVIDIA/pytorch-windows-ci",
        Entry(2, "x/y", oncalls=("windows-oncall", "zoe")),
        [
            "-   - NVIDIA/pytorch-windows-ci:",
            "+   - NVIDIA/pytorch-windows-ci: windows-oncall, zoe",
            "-       events: [nightly]",
            "-       oncalls: windows-oncall",
        ],
    ),
    "taken off": (
        "TorchedHat/pytorch-redhat-ci",
        None,
        ["-   - TorchedHat/pytorch-redhat-ci:", "-       events: [nightly]"],
    ),
    "new": ("New/one", Entry(1, "New/one", oncalls=("zoe",)), ["+   - New/one: zoe"]),
    "said already": ("ascend/PYTORCH", Entry(3, "x/y", "npu"), []),
    "not there anyway": ("nobody/here", None, []),
}


@pytest.mark.parametrize(("name", "entry", "lines"), EDITS.values(), ids=EDITS)
def test_only_the_lines_of_one_entry_change(name: str, entry: Entry | None, lines: list[str]) -> None:
    assert changes(UPSTREAM, edit(UPSTREAM, name, entry)) == lines


def test_a_new_one_goes_to_the_end_of_its_level_before_the_comment_behind_it() -> None:
    text = "# head\nL1:\n    - a/b  # first\n\n# about L2\nL2:\n"
    assert edit(text, "c/d", Entry(1, "c/d")) == "# head\nL1:\n    - a/b  # first\n    - c/d\n\n# about L2\nL2:\n"
    assert edit(text, "c/d", Entry(2, "c/d")) == f"{text}  - c/d\n"


def test_the_comment_behind_an_entry_goes_with_it_and_those_above_stay() -> None:
    text = "L1:\n  # of L1\n  - a/b: zoe  # note\nL2:\n"
    assert edit(text, "a/b", Entry(1, "a/b")) == "L1:\n  # of L1\n  - a/b  # note\nL2:\n"
    assert edit(text, "a/b", Entry(2, "a/b")) == "L1:\n  # of L1\nL2:\n  - a/b  # note\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("L1:\r\n  - a/b\r\n", "L1:\r\n  - a/b\r\n  - c/d\r\n"),
        ("\ufeffL1:\n- a/b\n", "\ufeffL1:\n- a/b\n- c/d\n"),
        ("L1:\n  - a/b", "L1:\n  - a/b\n  - c/d\n"),
        ("L1: ~ # nobody\n", "L1: # nobody\n  - c/d\n"),
        ("L1: []\nL2:\n", "L1:\n  - c/d\nL2:\n"),
        ("L2:\n  - a/b", "L2:\n  - a/b\nL1:\n  - c/d\n"),
        ("L1:\n  -\n    a/b\n", "L1:\n  -\n    a/b\n  - c/d\n"),
        ("L1:\n  - ? a/b\n    : zoe\nL2:\n", "L1:\n  - ? a/b\n    : zoe\n  - c/d\nL2:\n"),
    ],
)
def test_the_files_own_manner_is_kept(text: str, expected: str) -> None:
    assert edit(text, "c/d", Entry(1, "c/d")) == expected
    assert edit(expected, "c/d", None) in {text, text + "\n", expected.replace("  - c/d\n", "")}


@pytest.mark.parametrize(
    ("text", "entry", "words"),
    [
        ("{L1: [a/b]}", Entry(1, "c/d"), "The file is one pair of brackets: write one entry to a line."),
        ("L1: [a/b]\n", Entry(1, "c/d"), "L1 stands in brackets: write one entry to a line."),
        ("L1: [\n]\n", Entry(1, "c/d"), "L1 stands in brackets: write one entry to a line."),
        ("L3: {npu: {a/b: }}\n", Entry(3, "c/d", "npu"), "L3 stands in brackets: write one entry to a line."),
        ("L3:\n  npu: {a/b: }\n", Entry(3, "c/d", "npu"), "L3.npu stands in brackets: write one entry to a line."),
        (
            "L1:\n  - a/b\n...\n",
            Entry(2, "c/d"),
            "The edit would break the file: line 4, column 1: this is not YAML: ",
        ),
        ("L1: []\n", Entry(3, "c/d"), "The edit would break the file: line 3, column 3: L3: the device name '' is"),
    ],
)
def test_what_cannot_be_edited_by_lines_is_refused_with_a_way_out(text: str, entry: Entry, words: str) -> None:
    with pytest.raises(EditError) as caught:
        edit(text, "c/d", entry)
    assert str(caught.value).startswith(words)


def apply(before: dict[str, Entry], name: str, entry: Entry | None) -> dict[str, Entry]:
    """The list that an edit is to give."""
    after = {key: one for key, one in before.items() if key != name.lower()}
    return after | ({entry.key: entry} if entry else {})


@given(allowlists, entries | labelled, st.booleans())
def test_any_list_takes_any_edit(before: list[Entry], entry: Entry, is_removal: bool) -> None:
    text = dump(before)
    after = None if is_removal else entry
    edited = edit(text, entry.full_name, after)
    known = {one.key: one for one in before}
    found = parse(edited).by_key
    expected = apply(known, entry.full_name, after)
    assert {key: (one.level, one.device, one.oncalls, one.events) for key, one in found.items()} == {
        key: (one.level, one.device, one.oncalls, one.events) for key, one in expected.items()
    }
    assert edit(edited, entry.full_name, after) == edited
    # Whatever is gone or new belongs to the one entry; a level's or device's head may come or go with it.
    lines, others = text.splitlines(), dump([one for one in before if one.key != entry.key]).splitlines()
    assert [line for line in lines if line not in edited.splitlines() and line in others] == []


@given(mutated() | st.sampled_from([UPSTREAM, EVERY_FORM]), entries | labelled)
def test_any_file_is_edited_right_or_refused(text: str, entry: Entry) -> None:
    try:
        before = parse(text).by_key
    except AllowlistError:
        return
    for name in (entry.full_name, *[one.full_name for one in before.values()][:2]):
        for wanted in (entry, None):
            try:
                edited = edit(text, name, wanted)
            except EditError:
                continue
            assert {key for key in parse(edited).by_key if key != name.lower()} == set(before) - {name.lower()}
