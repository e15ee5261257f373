"""A test's identity: what the rules take away, what they leave, and that nothing of the original is lost."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.results.names import rules
from apps.results.names.canonical import (
    AS_WRITTEN,
    SPELLINGS_MAX,
    Canonicals,
    Original,
    apart,
    canonical,
    digest_of,
    restore,
    spelling_of,
)
from apps.results.names.rules import RULES, words_of

EXAMPLES = [example for rule in RULES for example in rule.examples]


def ids(example: object) -> str:
    return repr(example).replace("\\\\", "/")


@pytest.mark.parametrize(("written", "expected"), EXAMPLES, ids=ids)
def test_the_examples_of_the_rules(written: tuple[str, str, str, str], expected: tuple[str, str, str]) -> None:
    device, *original = written
    identity = canonical(Original(*original), words_of(device))
    assert identity[:3] == expected
    assert restore(identity) == Original(*original)


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("npu", {"npu", "privateuse1"}),
        (" NPU ", {"npu", "privateuse1"}),
        ("", {"privateuse1"}),
        ("privateuse1", {"privateuse1"}),
        ("cuda", {"cuda"}),
        ("cpu", {"cpu"}),
    ],
)
def test_the_words_of_a_platform(device: str, words: set[str]) -> None:
    assert words_of(device) == words


@pytest.mark.parametrize(
    "same",
    [
        ("", "test_mod.TestX"),
        ("test_mod.py", "TestX"),
        ("test_mod.py", "__main__.TestX"),
        ("test_mod.py", "test_mod.TestX"),
        ("test/test_mod.py", "test.test_mod.TestX"),
        ("./test_mod.py", "TestX"),
        ("test\\test_mod.py", "TestX"),
        ("C:\\actions-runner\\_work\\pytorch\\pytorch\\test\\test_mod.py", "__main__.TestX"),
        ("test_mod.py", "TestXPRIVATEUSE1"),
        ("test_mod.py", "test_mod.TestXNPU"),
    ],
)
def test_every_spelling_of_a_class_is_one(same: tuple[str, str]) -> None:
    identity = canonical(Original(*same, "test_a_npu"), words_of("npu"))
    assert identity[:3] == ("test_mod", "TestX", "test_a_<device>")
    assert restore(identity) == (*same, "test_a_npu")


@pytest.mark.parametrize("dtype", rules.DTYPES)
def test_every_dtype_may_follow_the_device(dtype: str) -> None:
    identity = canonical(Original("test_t.py", "TestT", f"test_add_npu_{dtype}"), words_of("npu"))
    assert identity[:3] == ("test_t", "TestT", f"test_add_<device>_{dtype}")


@pytest.mark.parametrize(
    "name",
    [
        "test_npu_stream",  # in the middle
        "test_add_npu_float33",  # no dtype
        "test_add_NPU",  # a method carries it in small letters
        "test_addnpu",
        "test_npu_float32",  # nothing else would name the test
        "test_add_npu_float32_",
    ],
)
def test_a_name_without_the_device_at_its_place_stays(name: str) -> None:
    assert canonical(Original("test_t.py", "TestT", name), words_of("npu")).name == name


def test_a_device_with_signs_of_a_pattern_is_only_a_word() -> None:
    words = words_of("a.b+")
    assert canonical(Original("", "TestXA.B+", "test_x_a.b+_int8"), words).name == "test_x_<device>_int8"
    assert canonical(Original("", "TestX", "test_x_aabb"), words).name == "test_x_aabb"


# Pieces that the rules look at, so that arbitrary text comes close to them.
PIECES = st.sampled_from(
    [
        *("test", "test_x", "x_test", "Test", "TestX", "TestXNPU", "TestXPRIVATEUSE1", "NPU", "__main__", "inductor"),
        *("pytorch", "workspace", "<device>", "npu", "_npu", "_privateuse1", "_float32", "_float8_e4m3fn", " #2"),
        *("/", "\\", ".", ".py", "./", "", "\n", "\0", "\ud800", "é"),
    ]
)
TEXTS = st.one_of(st.text(st.characters(), max_size=40), st.lists(PIECES, max_size=7).map("".join))


@given(TEXTS, TEXTS, TEXTS, st.sampled_from(["npu", "cuda", "cpu", "", "a.b", "test", "<device>"]))
def test_no_name_is_lost(file: str, class_name: str, name: str, device: str) -> None:
    identity = canonical(Original(file, class_name, name), words_of(device))
    assert restore(identity) == (file, class_name, name)
    spelling = spelling_of(list(identity.spelling))
    assert restore(identity._replace(spelling=spelling)) == (file, class_name, name)


@given(TEXTS, TEXTS, TEXTS, st.integers(1, 12))
def test_no_name_that_is_kept_apart_is_lost(file: str, class_name: str, name: str, number: int) -> None:
    original = Original(file, class_name, name)
    assert restore(apart(original, number)) == original
    assert len({apart(original, each)[:3] for each in range(1, number + 1)}) == number


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=12))
def test_many_names_at_once_are_the_same_names(originals: list[tuple[str, str, str]]) -> None:
    many = Canonicals(words_of("npu"))
    identities = [canonical(Original(*each), words_of("npu")) for each in originals]
    assert [many.of(*each) for each in originals] == identities
    digests, numbers = many.digests(originals)
    assert digests == [digest_of(*identity[:3]) for identity in identities]
    assert [many.spellings[number] for number in numbers] == [identity.spelling for identity in identities]


def test_digests_beyond_the_limit_are_of_the_names_as_they_are_written() -> None:
    many = Canonicals(words_of("npu"))
    originals = [(f"/m{number}/pytorch/test/test_x.py", "TestX", "test_a") for number in range(SPELLINGS_MAX + 1)]
    digests, numbers = many.digests(originals)
    assert (digests[-1], numbers[-1]) == (digest_of(*originals[-1]), 0)
    assert (digests[0], numbers[0]) == (digest_of("test_x", "TestX", "test_a"), 1)


def test_beyond_the_limit_of_spellings_names_stay_as_they_are_written() -> None:
    many = Canonicals(words_of("npu"))
    identities = [many.of(f"/m{number}/pytorch/test/test_x.py", "TestX", "test_a") for number in range(5_000)]
    assert [identity.file for identity in identities[: SPELLINGS_MAX - 1]] == ["test_x"] * (SPELLINGS_MAX - 1)
    assert identities[SPELLINGS_MAX - 1] == ("/m4095/pytorch/test/test_x.py", "TestX", "test_a", AS_WRITTEN)
    assert len(many.spellings) == SPELLINGS_MAX
    # A spelling that is known goes on being used.
    assert many.of("/m0/pytorch/test/test_x.py", "TestX", "test_b")[:3] == ("test_x", "TestX", "test_b")


@pytest.mark.parametrize("values", [[], ["", "/", "", -1, "", 0, "", "", 7], ["", "/", "", "1", "", 0, "", "", ""]])
def test_what_is_no_spelling_is_refused(values: list[str | int]) -> None:
    with pytest.raises(ValueError, match="is not a list of 9 values of a spelling"):
        spelling_of(values)


HOSTILE = ["_npu", "_npu_int8", "_int8", "NPU", "test_x.", "test/", "/pytorch/test/", "./", ".", "\\", "A", "<device>"]


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("part", range(3))
def test_no_name_takes_more_than_linear_time(piece: str, part: int) -> None:
    """Eight times the text: eight times the time where it is linear, 64 times where it is quadratic."""

    def seconds(length: int) -> float:
        original = ["test_x.py", "TestX", "test_x"]
        original[part] += piece * (length // len(piece)) + "!"
        best = float("inf")
        for _ in range(3):
            many = Canonicals(words_of("npu"))
            begun = time.process_time()
            many.digests([(original[0], original[1], original[2])])
            best = min(best, time.process_time() - begun)
        return best

    assert seconds(400_000) < 24 * max(seconds(50_000), 1e-3)


def test_a_digest_tells_parts_apart() -> None:
    parts = [("a", "b", "c"), ("ab", "", "c"), ("a", "", "bc"), ("", "a", "bc"), ("a\0b", "c", ""), ("a", "b\0c", "")]
    assert len({digest_of(*each) for each in parts}) == len(parts)
    assert len(digest_of("", "", "")) == 16


def test_a_digest_speaks_for_what_is_stored() -> None:
    assert digest_of("a", "b", "c\0\ud800") == digest_of("a", "b", "c\ufffd\ufffd")
