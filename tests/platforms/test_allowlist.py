"""The allowlist file format: what is read, what is refused and with which words, and that writing inverts reading."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from apps.platforms.allowlist import (
    EVERY_EVENT,
    FULL_NAME,
    LOGIN,
    MAX_BYTES,
    MAX_ENTRIES,
    MAX_FINDINGS,
    NIGHTLY,
    PULL_REQUEST,
    Allowlist,
    AllowlistError,
    Entry,
    Finding,
    dump,
    parse,
)

UPSTREAM = (Path(__file__).parent / "fixtures" / "upstream_allowlist.yml").read_text(encoding="utf-8")
NIGHTLY_ONLY = frozenset({NIGHTLY})
PULL_REQUEST_ONLY = frozenset({PULL_REQUEST})


def refusal(text: str) -> AllowlistError:
    """The error that a file is refused with."""
    with pytest.raises(AllowlistError) as caught:
        parse(text)
    return caught.value


# --- what is read ---


def test_upstream_file() -> None:
    relay = ("relay-one", "relay-two", "relay-three", "relay-four", "relay-five", "relay-six")
    assert parse(UPSTREAM) == Allowlist(
        (
            Entry(1, "riseproject-dev/pytorch-ci"),
            Entry(1, "NVIDIA-dev/pytorch-oot-internal"),
            Entry(1, "google-pytorch/torch_tpu", oncalls=("tpu-oncall-one", "tpu-oncall-two")),
            Entry(1, "RBLN-SW/torch-rbln", oncalls=("rbln-oncall",)),
            Entry(2, "torch-spyre/torch-spyre"),
            Entry(2, "TorchedHat/pytorch-redhat-ci", events=NIGHTLY_ONLY),
            Entry(2, "NVIDIA/pytorch-windows-ci", oncalls=("windows-oncall",), events=NIGHTLY_ONLY),
            Entry(2, "vllm-project/vllm", oncalls=("vllm-oncall",), events=NIGHTLY_ONLY),
            Entry(3, "Ascend/pytorch", device="npu"),
            Entry(3, "pytorch/crcr-test", device="crcr-test", oncalls=relay),
        )
    )


EVERY_FORM = """\
L4:
  - four/name
L3:
  cuda:
    three/nothing:
    three/tilde: ~
    three/commas: alice,bob ,  carol
    three/list: [alice, bob]
    three/mapping:
      events:
        - push
      oncalls:
        - alice
  "with:colon":
    three/quoted: "alice, bob"
  no:
    three/no: no
  1.0:
    three/number: [1, on, null]
L1:
  - one/name
  - one/nothing:
  - one/commas: alice, bob
  - one/list: [alice, bob]
  - one/oncalls: {oncalls: "alice, bob"}
  - one/nightly: {events: [nightly]}
  - one/both: {events: [nightly, pull_request], oncalls: }
  - one/defaults: {events: , oncalls: []}
  - one/neither: {}
  - "one/quoted"
  - "one/quoted-key": 'alice'
  - one/folded: alice,
      bob
  - {one/flow: alice}
  - 0/1.0
  - null/null
  - company_x/.github: octo_company
L2:
"""


def test_every_form_of_an_entry() -> None:
    pair = ("alice", "bob")
    assert parse(EVERY_FORM) == Allowlist(
        (
            Entry(1, "one/name"),
            Entry(1, "one/nothing"),
            Entry(1, "one/commas", oncalls=pair),
            Entry(1, "one/list", oncalls=pair),
            Entry(1, "one/oncalls", oncalls=pair),
            Entry(1, "one/nightly", events=NIGHTLY_ONLY),
            Entry(1, "one/both", events=EVERY_EVENT),
            Entry(1, "one/defaults"),
            Entry(1, "one/neither"),
            Entry(1, "one/quoted"),
            Entry(1, "one/quoted-key", oncalls=("alice",)),
            Entry(1, "one/folded", oncalls=pair),
            Entry(1, "one/flow", oncalls=("alice",)),
            Entry(1, "0/1.0"),
            Entry(1, "null/null"),
            Entry(1, "company_x/.github", oncalls=("octo_company",)),
            Entry(3, "three/nothing", "cuda"),
            Entry(3, "three/tilde", "cuda"),
            Entry(3, "three/commas", "cuda", ("alice", "bob", "carol")),
            Entry(3, "three/list", "cuda", pair),
            Entry(3, "three/mapping", "cuda", ("alice",), PULL_REQUEST_ONLY),
            Entry(3, "three/quoted", "with:colon", pair),
            Entry(3, "three/no", "no", ("no",)),
            Entry(3, "three/number", "1.0", ("1", "on", "null")),
            Entry(4, "four/name"),
        )
    )


@pytest.mark.parametrize("text", ["L1:", "L1: ~", "L1: []", "L3:", "L3: {}", "L3: {cuda: {}}", "L1:\nL2:\nL3:\nL4:\n"])
def test_levels_may_list_nobody(text: str) -> None:
    assert parse(text) == Allowlist(())


@pytest.mark.parametrize(
    "text",
    ["L1:\n- a/b\n- c/d: x\n", "L1:\r\n- a/b\r\n- c/d: x\r\n", "\ufeffL1:\n- a/b\n- c/d: x\n"],
    ids=["lf", "crlf", "byte order mark"],
)
def test_places_are_those_of_the_names(text: str) -> None:
    places = [(entry.full_name, entry.line, entry.column) for entry in parse(text).entries]
    assert places == [("a/b", 2, 3), ("c/d", 3, 3)]


def test_find_takes_any_case() -> None:
    listed = parse("L1: [Org/Repo]")
    assert listed.find("oRG/rEPO") == Entry(1, "Org/Repo")
    assert listed.find("org/other") is None


# --- what is refused ---

REFUSED: dict[str, tuple[str, list[str]]] = {
    "empty": ("", ["line 1, column 1: the file is empty — write at least one level key, such as `L1:`"]),
    "only comments": (
        "# L1:\n#  - a/b\n",
        ["line 1, column 1: the file is empty — write at least one level key, such as `L1:`"],
    ),
    "only null": ("---\n", ["line 1, column 1: the file is empty — write at least one level key, such as `L1:`"]),
    "no level key": ("{}", ["line 1, column 1: the file is empty — write at least one level key, such as `L1:`"]),
    "root is a list": (
        "- a/b\n",
        ["line 1, column 1: the file is a list, not a mapping — write `L1:` and below it `- owner/repo`"],
    ),
    "root is a text": (
        "a/b",
        ["line 1, column 1: the file is 'a/b', not a mapping — write `L1:` and below it `- owner/repo`"],
    ),
    "root is an empty text": (
        "''",
        ["line 1, column 1: the file is an empty value, not a mapping — write `L1:` and below it `- owner/repo`"],
    ),
    "levels of another kind": (
        "L1: a/b\nL2: {c/d: alice}\nL3: [e/f]\nL4: 4\n",
        [
            "line 1, column 5: L1 is 'a/b', not a list — write one `- owner/repo` line for each repository",
            "line 2, column 5: L2 is a mapping, not a list — write one `- owner/repo` line for each repository",
            "line 3, column 5: L3 is a list, not a mapping — write `device:` and below it `owner/repo:`",
            "line 4, column 5: L4 is '4', not a list — write one `- owner/repo` line for each repository",
        ],
    ),
    "unknown levels": (
        "L0: []\nl1: []\nL5:\n  - a/b\n1: []\n",
        [
            "line 1, column 1: 'L0' is not a level — write L1, L2, L3 or L4",
            "line 2, column 1: 'l1' is not a level — write L1, L2, L3 or L4",
            "line 3, column 1: 'L5' is not a level — write L1, L2, L3 or L4",
            "line 5, column 1: '1' is not a level — write L1, L2, L3 or L4",
        ],
    ),
    "a level twice": (
        "L1:\n  - a/b\nL2: []\nL1:\n  - c/d\n",
        [
            "line 4, column 1: the file: the key 'L1' is there twice, first on line 1"
            " — write it once, with what belongs to both"
        ],
    ),
    "a key that is no text": (
        "? [L1]\n: [a/b]\n",
        ["line 1, column 3: the file: a list stands where a key belongs — write a name"],
    ),
    "devices": (
        "L3:\n  '': {a/b: }\n  '  ': {}\n  two words: {c/d: x}\n  cuda: [e/f]\n  xpu:\n  mps: g/h\n  cuda: {}\n"
        f"  {'d' * 39}: {{}}\n",
        [
            "line 2, column 3: L3: the device name '' is empty"
            " — write what ends its label `ciflow/crcr/…`: at most 38 characters, no space",
            "line 3, column 3: L3: the device name '  ' is empty"
            " — write what ends its label `ciflow/crcr/…`: at most 38 characters, no space",
            "line 4, column 3: L3: the device name 'two words' does not fit a label"
            " — write what ends its label `ciflow/crcr/…`: at most 38 characters, no space",
            "line 5, column 9: L3.cuda is a list, not a mapping — write `owner/repo:` lines, without a dash",
            "line 6, column 7: L3.xpu is an empty value, not a mapping — write `owner/repo:` lines, without a dash",
            "line 7, column 8: L3.mps is 'g/h', not a mapping — write `owner/repo:` lines, without a dash",
            "line 8, column 3: L3: the key 'cuda' is there twice, first on line 5"
            " — write it once, with what belongs to both",
            f"line 9, column 3: L3: the device name '{'d' * 39}' does not fit a label"
            " — write what ends its label `ciflow/crcr/…`: at most 38 characters, no space",
        ],
    ),
    "names": (
        "L1:\n  - torch\n  - a/b/c\n  - /b\n  - a/\n  - a/..\n  - -a/b\n  - a b/c\n  - ''\n  -\n  - [a/b]\n  - é/b\n"
        f"  - {'o' * 40}/r\n  - o/{'r' * 101}\n  - https://github.com/a/b\n  - a/b:alice\n  - a/b:@alice\n",
        [
            "line 2, column 5: L1, entry 1: 'torch' is not owner/repo — write `owner/repo`, as on GitHub",
            "line 3, column 5: L1, entry 2: 'a/b/c' is not owner/repo — write `owner/repo`, as on GitHub",
            "line 4, column 5: L1, entry 3: '/b' is not owner/repo — write `owner/repo`, as on GitHub",
            "line 5, column 5: L1, entry 4: 'a/' is not owner/repo — write `owner/repo`, as on GitHub",
            "line 6, column 5: L1, entry 5: 'a/..' is not owner/repo — write `owner/repo`, as on GitHub",
            "line 7, column 5: L1, entry 6: '-a/b' is not owner/repo — write `owner/repo`, as on GitHub",
            "line 8, column 5: L1, entry 7: 'a b/c' is not owner/repo — write `owner/repo`, as on GitHub",
            "line 9, column 5: L1, entry 8: an empty value is not owner/repo — write `owner/repo`, as on GitHub",
            "line 10, column 4: L1, entry 9: an empty value is not owner/repo — write `owner/repo`, as on GitHub",
            "line 11, column 5: L1, entry 10: a list is not owner/repo — write `owner/repo`, as on GitHub",
            "line 12, column 5: L1, entry 11: 'é/b' is not owner/repo — write `owner/repo`, as on GitHub",
            f"line 13, column 5: L1, entry 12: '{'o' * 40}/r' is not owner/repo — write `owner/repo`, as on GitHub",
            f"line 14, column 5: L1, entry 13: 'o/{'r' * 58}…' is not owner/repo — write `owner/repo`, as on GitHub",
            "line 15, column 5: L1, entry 14: 'https://github.com/a/b' is not owner/repo"
            " — write `owner/repo`, as on GitHub",
            "line 16, column 5: L1, entry 15: 'a/b:alice' is not owner/repo"
            " — write `a/b: …`, with a space after the colon",
            "line 17, column 5: L1, entry 16: 'a/b:@alice' is not owner/repo"
            " — write `a/b: …`, with a space after the colon",
        ],
    ),
    "names below a device": (
        "L3:\n  cuda:\n    a/b: alice\n    torch: bob\n    ? [c/d]\n    : bob\n",
        [
            "line 4, column 5: L3.cuda, entry 2: 'torch' is not owner/repo — write `owner/repo`, as on GitHub",
            "line 5, column 7: L3.cuda, entry 3: a list is not owner/repo — write `owner/repo`, as on GitHub",
        ],
    ),
    "mappings with other than one key": (
        "L2:\n  - a/b:\n    oncalls: alice\n  - {}\n  - {a/b: , c/d: , e/f: , g/h: , i/j: }\n",
        [
            "line 2, column 5: L2, entry 1: a mapping with 2 keys, not one ('a/b', 'oncalls')"
            " — write a dash before each repository, and its settings indented below it",
            "line 4, column 5: L2, entry 2: a mapping with 0 keys, not one (none)"
            " — write a dash before each repository, and its settings indented below it",
            "line 5, column 5: L2, entry 3: a mapping with 5 keys, not one ('a/b', 'c/d', 'e/f', 'g/h')"
            " — write a dash before each repository, and its settings indented below it",
        ],
    ),
    "a repository twice": (
        "L4:\n  - a/b\nL1:\n  - A/b\n  - c/d\n  - c/D: alice\nL3:\n  cuda: {a/B: , e/f: , e/f: }\n",
        [
            "line 4, column 5: L1, entry 1: 'A/b' is listed already, on line 2 at L4 — write it once, at its one level",
            "line 6, column 5: L1, entry 3: 'c/D' is listed already, on line 5 at L1 — write it once, at its one level",
            "line 8, column 10: L3.cuda, entry 1: 'a/B' is listed already, on line 2 at L4"
            " — write it once, at its one level",
            "line 8, column 24: L3.cuda, entry 3: 'e/f' is listed already, on line 8 at L3"
            " — write it once, at its one level",
        ],
    ),
    "settings": (
        "L1:\n  - a/b: {oncall: alice, oncalls: bob, oncalls: bob}\nL3:\n  cuda:\n    c/d:\n      event: [nightly]\n"
        "      ? {}\n      : 1\n      oncalls: {alice: bob}\n",
        [
            "line 2, column 11: L1, entry 1: 'oncall' is not a setting — write `oncalls` or `events`",
            "line 2, column 40: L1, entry 1: the key 'oncalls' is there twice, first on line 2"
            " — write it once, with what belongs to both",
            "line 6, column 7: L3.cuda, entry 1: 'event' is not a setting — write `oncalls` or `events`",
            "line 7, column 9: L3.cuda, entry 1: a mapping stands where a key belongs — write a name",
            "line 9, column 16: L3.cuda, entry 1: oncalls is a mapping, not a list"
            " — write `alice, bob` or `[alice, bob]`",
        ],
    ),
    "oncalls": (
        "L1:\n  - a/1: alice,\n  - a/2: ''\n  - a/3: alice bob\n  - a/4: '@alice, bob'\n"
        "  - a/5: ['@org/team', [], '']\n"
        "  - a/6: Alice, bob, aLICE\n  - a/7: [a, A]\n  - a/8: |\n      alice\n  - a/9: alice,\u00a0bob\n",
        [
            "line 2, column 10: L1, entry 1, oncall 2: '' is not a GitHub login"
            " — write GitHub logins, a comma between two",
            "line 3, column 10: L1, entry 2, oncall 1: '' is not a GitHub login"
            " — write GitHub logins, a comma between two",
            "line 4, column 10: L1, entry 3, oncall 1: 'alice bob' is not a GitHub login"
            " — write GitHub logins, a comma between two",
            "line 5, column 10: L1, entry 4, oncall 1: '@alice' is not a GitHub login — write alice, without the @",
            "line 6, column 11: L1, entry 5, oncall 1: '@org/team' is not a GitHub login"
            " — write GitHub logins, a comma between two",
            "line 6, column 24: L1, entry 5, oncall 2: a list is not a GitHub login"
            " — write GitHub logins, a comma between two",
            "line 6, column 28: L1, entry 5, oncall 3: an empty value is not a GitHub login"
            " — write GitHub logins, a comma between two",
            "line 7, column 10: L1, entry 6, oncall 3: 'aLICE' is named already — write each login once",
            "line 8, column 14: L1, entry 7, oncall 2: 'A' is named already — write each login once",
            "line 9, column 10: L1, entry 8, oncall 1: 'alice\\n' is not a GitHub login"
            " — write GitHub logins, a comma between two",
            "line 11, column 10: L1, entry 9, oncall 2: '\\xa0bob' is not a GitHub login"
            " — write GitHub logins, a comma between two",
        ],
    ),
    "events": (
        "L2:\n  - a/1: {events: [pull_requests, Nightly, {nightly: 1}]}\n  - a/2: {events: nightly}\n"
        "  - a/3: {events: []}\n  - a/4: {events: {nightly: }}\n  - a/5: {events: [push, nightly, pull_request]}\n",
        [
            "line 2, column 20: L2, entry 1, event 1: 'pull_requests' is not an event — write pull_request or nightly",
            "line 2, column 35: L2, entry 1, event 2: 'Nightly' is not an event — write pull_request or nightly",
            "line 2, column 44: L2, entry 1, event 3: a mapping is not an event — write pull_request or nightly",
            "line 3, column 19: L2, entry 2: events is 'nightly', not a list"
            " — write `[pull_request]` or `[nightly]`, or leave `events` out for both",
            "line 4, column 19: L2, entry 3: events is an empty list"
            " — write `[pull_request]` or `[nightly]`, or leave `events` out for both",
            "line 5, column 19: L2, entry 4: events is a mapping, not a list"
            " — write `[pull_request]` or `[nightly]`, or leave `events` out for both",
            "line 6, column 35: L2, entry 5, event 3: 'pull_request' is named already, as pull_request"
            " — write each event once",
        ],
    ),
    "@ in a list": (
        "L3:\n  cuda:\n    a/b: [@alice, bob]\n",
        ["line 3, column 11: '@alice' starts with @, which YAML reserves — write alice, without the @"],
    ),
    "@ alone": (
        "L1:\n  - a/b: @\n",
        ["line 2, column 10: '@' starts with @, which YAML reserves — write a name in its place"],
    ),
    "| in a list": (
        "L1:\n  - a/b: [|alice]\n",
        ["line 2, column 11: '|alice' starts with |, which YAML reserves — write alice, without the |"],
    ),
    "backticks": (
        "L1:\n  - `a/b`\n",
        ["line 2, column 5: '`a/b`' starts with `, which YAML reserves — write a/b, without the `"],
    ),
    "tab": (
        "L1:\n\t- a/b\n",
        ["line 2, column 1: a tab stands where YAML takes only spaces — write spaces"],
    ),
    "second colon": (
        "L1:\n  - a/b: oncalls: alice\n",
        [
            "line 2, column 17: a second key cannot stand here"
            " — write one key to a line, indented as deep as its neighbours"
        ],
    ),
    "open bracket": (
        "L1:\n  - a/b: [alice\n  - c/d\n",
        [
            "line 4, column 1: this is not YAML: while parsing a flow sequence from line 2,"
            " did not find expected ',' or ']' — write every quote and bracket closed, and neighbours indented alike"
        ],
    ),
    "two documents": (
        "# the list\n---\nL1: []\n---\nL2: []\n",
        ["line 4, column 1: a second YAML document starts here — write one document, without ---"],
    ),
    "YAML of the future": (
        "%YAML 3.0\n---\nL1: []\n",
        [
            "line 1, column 1: this is not YAML: found incompatible YAML document"
            " — write every quote and bracket closed, and neighbours indented alike"
        ],
    ),
    "anchor": (
        "L1: &all\n  - a/b\nL2: *all\n",
        ["line 1, column 5: the YAML reference 'all' is not allowed — write each name in full, no & or *"],
    ),
    "alias": (
        "L2: *all\n",
        ["line 1, column 5: the YAML reference 'all' is not allowed — write each name in full, no & or *"],
    ),
    "merge key": (
        "L3:\n  cuda: {<<: {a/b: alice}}\n",
        ["line 2, column 10: the YAML merge key << is not allowed — write each name in full"],
    ),
    "tag": (
        "L1:\n  - !!python/name:os.system a/b\n",
        [
            "line 2, column 5: the YAML tag 'tag:yaml.org,2002:python/name:os.system' is not allowed"
            " — write the value without it"
        ],
    ),
    "control character": (
        "L1:\r\n  - a/b\r\n  - c/\x07d\r\n",
        ["line 3, column 7: the character U+0007 cannot stand in this file — write the line without it"],
    ),
    "half a character": (
        "L1: [\ud800]",
        ["line 1, column 6: the character U+D800 cannot stand in this file — write the line without it"],
    ),
    "deep lists": (
        "L1: " + "[" * 100_000,
        ["line 1, column 1004: this is nested more than 8 deep — write each entry as `owner/repo: alice, bob`"],
    ),
    "deep dashes": (
        "- " * 100_000,
        ["line 1, column 17: this is nested more than 8 deep — write each entry as `owner/repo: alice, bob`"],
    ),
    "too large": (
        "L1: [] #" + "é" * (MAX_BYTES // 2),
        ["line 1, column 1: the file is larger than 1 MB — write the list and nothing else"],
    ),
    "too many entries": (
        "L1:\n" + "".join(f"- a/{number}\n" for number in range(MAX_ENTRIES + 2)),
        ["line 5002, column 3: L1, entry 5001: the file has more than 5000 entries — write fewer"],
    ),
}


@pytest.mark.parametrize(("text", "lines"), REFUSED.values(), ids=REFUSED)
def test_refused_with_every_problem(text: str, lines: list[str]) -> None:
    assert str(refusal(text)).splitlines() == lines


def test_findings_have_their_parts() -> None:
    assert refusal("L1: [a]\nL6:\n").findings == (
        Finding(1, 6, "L1, entry 1: 'a' is not owner/repo", "`owner/repo`, as on GitHub"),
        Finding(2, 1, "'L6' is not a level", "L1, L2, L3 or L4"),
    )


def test_more_findings_than_anyone_reads() -> None:
    findings = refusal("L1:\n" + "- a\n" * (MAX_FINDINGS + 9)).findings
    assert len(findings) == MAX_FINDINGS + 1
    assert str(findings[-1]) == (
        "line 1002, column 3: there are more problems from here on — write the lines above anew, then check again"
    )


@pytest.mark.parametrize("size", [MAX_BYTES, MAX_BYTES + 1])
def test_size_is_counted_in_bytes(size: int) -> None:
    text = "L1: []\n#".ljust(size, "x")
    if size <= MAX_BYTES:
        assert parse(text) == Allowlist(())
    else:
        assert [finding.message for finding in refusal(text).findings] == ["the file is larger than 1 MB"]


# --- what is written ---


def test_dump() -> None:
    entries = [
        Entry(3, "a/one", "xpu", ("alice",)),
        Entry(2, "b/two", events=NIGHTLY_ONLY),
        Entry(1, "c/three"),
        Entry(3, "d/four", "no"),
        Entry(3, "e/five", "xpu", ("Bob", "carol"), PULL_REQUEST_ONLY),
        Entry(3, "g/seven", "xpu", ("1", "no")),
        Entry(1, "1/1.0", oncalls=("1",)),
        Entry(1, "f/six", oncalls=("null",)),
    ]
    assert dump(entries) == (
        "L1:\n"
        "  - c/three\n"
        '  - 1/1.0: "1"\n'
        '  - f/six: "null"\n'
        "L2:\n"
        "  - b/two:\n"
        "      events: [nightly]\n"
        "L3:\n"
        "  xpu:\n"
        "    a/one: [alice]\n"
        "    e/five:\n"
        "      oncalls: [Bob, carol]\n"
        "      events: [pull_request]\n"
        '    g/seven: ["1", "no"]\n'
        '  "no":\n'
        "    d/four:\n"
        "L4:\n"
    )


def test_dump_of_nobody_can_be_read() -> None:
    assert dump([]) == "L1:\nL2:\nL3:\nL4:\n"
    assert parse(dump([])) == Allowlist(())


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([Entry(0, "a/b")], "the allowlist file has no way to write one of these entries"),
        ([Entry(1, "a/b", device="cuda")], "the allowlist file has no way to write one of these entries"),
        ([Entry(1, "a/b", oncalls=("alice, bob",))], "the allowlist file has no way to write one of these entries"),
        ([Entry(3, "a/b")], "L3: the device name '' is empty"),
        ([Entry(1, "a/b", events=frozenset())], "L1, entry 1: events is an empty list"),
        ([Entry(1, "a/b"), Entry(2, "A/b")], "L2, entry 1: 'A/b' is listed already"),
        ([Entry(3, "a/b", "cuda"), Entry(3, "a/b", "cuda")], "L3.cuda, entry 2: 'a/b' is listed already"),
        ([Entry(1, "a")], "L1, entry 1: 'a' is not owner/repo"),
    ],
)
def test_dump_refuses_what_the_file_cannot_say(entries: list[Entry], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        dump(entries)


# --- for every file ---

letters = "abcxyzABCXYZ0189"
login = st.text(letters + "_-", min_size=1, max_size=39).filter(LOGIN.fullmatch)
logins = st.lists(login, max_size=4, unique_by=str.lower).map(tuple)
names = st.tuples(login, st.text(letters + "._-", min_size=1, max_size=100)).map("/".join).filter(FULL_NAME.fullmatch)
words = st.sampled_from(["no", "on", "Null", "1", "1.0", "0x1f", "1e3", "y", "~", "-", "#x", "a:b", "2026-09-30"])
devices = words | st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=38)
events = st.sampled_from([EVERY_EVENT, NIGHTLY_ONLY, PULL_REQUEST_ONLY])
listed = st.builds(Entry, st.sampled_from([1, 2, 4]), names, st.just(""), logins, events)
labelled = st.builds(Entry, st.just(3), names, devices, logins, events)
allowlists = st.lists(listed | labelled, max_size=8, unique_by=lambda entry: entry.key)


def in_file_order(entries: list[Entry]) -> list[Entry]:
    """The order that a file keeps them in: by level, and at L3 by the device that comes first."""
    first = {entry.device: place for place, entry in reversed(list(enumerate(entries)))}
    return sorted(entries, key=lambda entry: (entry.level, first[entry.device]))


def read_naively(text: str) -> list[Entry]:
    """What a reader gets that takes YAML's own values for the names, as upstream does."""
    data = yaml.safe_load(text)
    found = [(level, "", item) for level in (1, 2, 4) for item in data[f"L{level}"] or []]
    found += [(3, device, {name: value}) for device, held in (data["L3"] or {}).items() for name, value in held.items()]
    return [naive_entry(level, device, item) for level, device, item in sorted(found, key=lambda row: row[0])]


def naive_entry(level: int, device: str, item: Any) -> Entry:
    name, value = next(iter(item.items())) if isinstance(item, dict) else (item, None)
    settings: dict[str, Any] = value if isinstance(value, dict) else {"oncalls": value}
    said = settings.get("oncalls") or ""
    oncalls = said if isinstance(said, list) else said.split(", ")
    return Entry(level, name, device, tuple(filter(None, oncalls)), frozenset(settings.get("events", EVERY_EVENT)))


@given(allowlists)
def test_what_is_written_is_read_back(entries: list[Entry]) -> None:
    text = dump(entries)
    read = list(parse(text).entries)
    assert read == in_file_order(entries)
    assert read == read_naively(text)
    assert dump(read) == text


edits = st.lists(
    st.tuples(
        st.integers(0, 2_000),
        st.integers(0, 6),
        st.text("L1234abc/:-,[]{}&*!|>'\"@%`#~<?=. \n\t\r\\", max_size=6)
        | st.sampled_from(["\x00", "\ufeff", "\u2028", "@\u202e"]),
    ),
    min_size=1,
    max_size=6,
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A valid file with a few characters taken out and put in."""
    text = draw(st.sampled_from([UPSTREAM, EVERY_FORM]))
    for position, taken, put in draw(edits):
        place = position % (len(text) + 1)
        text = text[:place] + put + text[place + taken :]
    return text


@given(st.text(st.characters()) | st.text("L1234a/:-,[]{}&*!|>'\"@%`#~<? \n\t") | mutated())
@example("L1: \ud800")
@example("? " * 5_000)
def test_any_text_is_read_or_refused_in_order(text: str) -> None:
    try:
        entries, findings = parse(text).entries, None
    except AllowlistError as error:
        entries, findings = (), error.findings
    if findings is None:
        assert parse(dump(entries)).entries == entries
    else:
        assert findings
        assert [finding.line for finding in findings] == sorted(finding.line for finding in findings)
        assert all(str(finding).isprintable() for finding in findings)
