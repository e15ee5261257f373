"""What two states of the allowlist differ in."""

from hypothesis import given

from apps.platforms.allowlist import NIGHTLY, Entry
from apps.platforms.allowlist_diff import Difference, Kind, compare
from tests.platforms.test_allowlist import allowlists

NIGHTLY_ONLY = frozenset({NIGHTLY})


def told(found: list[Difference]) -> list[tuple[str, str, list[str]]]:
    return [(one.kind.value, one.summary, one.details) for one in found]


def test_each_kind_of_difference_is_named() -> None:
    before = [
        Entry(0, "a/known"),
        Entry(0, "a/stays-out"),
        Entry(2, "a/rises", oncalls=("alice",)),
        Entry(3, "a/falls", "npu", ("bob",)),
        Entry(3, "a/moves", "npu"),
        Entry(1, "a/leaves"),
        Entry(4, "a/same", oncalls=("carol",)),
        Entry(1, "Acme/Spelled"),
    ]
    after = [
        Entry(1, "a/new"),
        Entry(2, "a/known"),
        Entry(3, "a/rises", "xpu", ("alice",)),
        Entry(1, "a/falls"),
        Entry(3, "a/moves", "xpu", ("dave",), NIGHTLY_ONLY),
        Entry(4, "a/same", oncalls=("carol",)),
        Entry(1, "acme/spelled"),
    ]
    assert told(compare(before, after)) == [
        ("added", "a/new listed at L1", []),
        ("added", "a/known raised from L0 to L2", []),
        ("raised", "a/rises raised from L2 to L3", ["device"]),
        ("lowered", "a/falls lowered from L3 to L1", ["device", "oncalls"]),
        ("changed", "a/moves: device and oncalls and events changed", ["device", "oncalls", "events"]),
        ("removed", "a/leaves taken off the allowlist, from L1", []),
    ]


def test_a_name_keeps_the_spelling_that_is_known() -> None:
    (one,) = compare([Entry(1, "Acme/Torch")], [Entry(2, "acme/TORCH")])
    assert (one.full_name, one.kind) == ("Acme/Torch", Kind.RAISED)


def test_the_order_of_oncalls_is_part_of_what_the_file_says() -> None:
    (one,) = compare([Entry(1, "a/b", oncalls=("x", "y"))], [Entry(1, "a/b", oncalls=("y", "x"))])
    assert one.summary == "a/b: oncalls changed"


@given(allowlists, allowlists)
def test_applying_the_differences_gives_the_other_state(before: list[Entry], after: list[Entry]) -> None:
    state = {entry.key: entry for entry in before}
    for one in compare(before, after):
        state.pop(one.entry.key, None)
        if one.after:
            state[one.entry.key] = one.after
    assert compare(state.values(), after) == []
    assert {entry.key for entry in state.values()} == {entry.key for entry in after}
