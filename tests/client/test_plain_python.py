"""The client runs where nothing is installed: standard library only, from Python 3.9 on."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.recorder import CLIENT

FILES = sorted(CLIENT.rglob("*.py"))
OLDEST = (3, 9)


def imported(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_imports_the_standard_library_alone_in_the_oldest_pythons_grammar(file: Path) -> None:
    tree = ast.parse(file.read_text(), feature_version=OLDEST)
    assert imported(tree) - sys.stdlib_module_names <= {"accelhub_client"}


def test_it_runs_isolated_and_without_site_packages(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", "-B", "-W", "error", str(CLIENT), "--version"]
    ended = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "accelhub 0.1.0\n", "")
