"""Every dialect and every kind of damage once, as files: what each of them says, whole."""

from pathlib import Path

import pytest

from tests.results.formats.expected import EXPECTED
from tests.results.formats.reading import read_junit, read_log

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_says_what_is_expected(name: str) -> None:
    data = (CORPUS / name).read_bytes()
    assert (read_junit(data) if name.endswith(".xml") else read_log(data)) == EXPECTED[name]


def test_every_file_is_expected() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(EXPECTED)
