"""`manage.py allowlist lint`: every problem of a file, with its place and what to write; and an exit status."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from accelhub.env import BASE_DIR
from tests.environment import without_ours
from tests.platforms.test_allowlist import REFUSED, UPSTREAM


def lint(name: str) -> tuple[list[str], str]:
    """What it prints, and the words it fails with."""
    out = io.StringIO()
    try:
        call_command("allowlist", "lint", name, stdout=out)
    except CommandError as error:
        return out.getvalue().splitlines(), str(error)
    return out.getvalue().splitlines(), ""


@pytest.mark.parametrize(("text", "lines"), REFUSED.values(), ids=REFUSED)
def test_every_problem_is_named_with_its_place_and_what_to_write(
    monkeypatch: pytest.MonkeyPatch, text: str, lines: list[str]
) -> None:
    raw = text.encode(errors="surrogatepass")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    if "\ud800" in text:  # a file of bytes cannot hold half a character
        expected = "standard input: byte 5 is not UTF-8. Save the file as UTF-8."
        assert lint("-") == ([], expected)
        return
    words = f"standard input: {len(lines)} problem{'s' * (len(lines) > 1)}."
    assert lint("-") == ([f"standard input: {line}" for line in lines], words)


def test_a_file_without_a_problem_passes(tmp_path: Path) -> None:
    file = tmp_path / "allowlist.yml"
    file.write_text(UPSTREAM)
    assert lint(str(file)) == ([f"{file}: 10 entries, no problem"], "")


@pytest.mark.parametrize(("name", "words"), [("missing.yml", "No such file or directory"), (".", "Is a directory")])
def test_a_file_that_cannot_be_read_fails(tmp_path: Path, name: str, words: str) -> None:
    assert lint(f"{tmp_path}/{name}") == ([], f"{tmp_path}/{name}: {words}.")


def test_neither_a_hub_nor_its_services_are_needed(tmp_path: Path) -> None:
    file = tmp_path / "allowlist.yml"
    file.write_text("L1:\n  - torch\n")
    done = subprocess.run(
        [sys.executable, str(BASE_DIR / "manage.py"), "allowlist", "lint", str(file)],
        capture_output=True,
        text=True,
        check=False,
        env=without_ours(os.environ) | {"ACCELHUB_DATA_DIR": str(tmp_path / "data")},
    )
    assert (done.returncode, done.stdout) == (
        1,
        f"{file}: line 2, column 5: L1, entry 1: 'torch' is not owner/repo — write `owner/repo`, as on GitHub\n",
    )
    assert done.stderr == f"CommandError: {file}: 1 problem.\n"
    assert not (tmp_path / "data").exists()
