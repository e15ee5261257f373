"""Who owns the allowlist: the settings, what is refused about them, and the import by hand that they forbid."""

import io
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from pytest_django import Settings

from accelhub.checks import TAG
from apps.platforms.authority import FileAddress, read_address
from apps.platforms.models import Repository

BLOB = "https://github.com/pytorch/pytorch/blob/main/.github/allowlist.yml"
WRITE = "Write https://github.com/pytorch/pytorch/blob/<branch>/<path>"


def read(url: str) -> FileAddress:
    return read_address(url, upstream="pytorch/pytorch", api_url="https://ghe.example/api/v3")


@pytest.mark.parametrize(
    "url",
    [
        BLOB,
        "https://ghe.example/api/v3/repos/pytorch/pytorch/contents/.github/allowlist.yml?ref=main",
    ],
)
def test_a_page_and_the_apis_contents_name_a_file(url: str) -> None:
    assert read(url) == FileAddress("pytorch/pytorch", "main", ".github/allowlist.yml")


def test_the_repository_is_upstreams_in_any_case_of_letters() -> None:
    assert read(BLOB.replace("pytorch/pytorch", "PyTorch/PyTorch")).path == ".github/allowlist.yml"


def found() -> list[tuple[str, str, str]]:
    return [(str(m.id), m.msg, str(m.hint)) for m in run_checks(tags=[TAG]) if m.id == "accelhub.E012"]


@pytest.mark.parametrize(
    ("authority", "url", "expected"),
    [
        ("hub", "", []),
        ("file", BLOB, []),
        ("both", "", [("accelhub.E012", "ACCELHUB_ALLOWLIST_AUTHORITY is 'both'.", "Set hub or file.")]),
        ("file", "", [("accelhub.E012", "ACCELHUB_ALLOWLIST_URL is not set.", f"{WRITE}.")]),
        (
            "file",
            "https://raw.example/pytorch/pytorch/main/a.yml",
            [
                (
                    "accelhub.E012",
                    "ACCELHUB_ALLOWLIST_URL is https://raw.example/pytorch/pytorch/main/a.yml.",
                    f"{WRITE}.",
                )
            ],
        ),
        (
            "file",
            "https://github.com/acme/torch/blob/main/a.yml",
            [
                (
                    "accelhub.E012",
                    "ACCELHUB_ALLOWLIST_URL is https://github.com/acme/torch/blob/main/a.yml, a file of acme/torch.",
                    f"{WRITE}.",
                )
            ],
        ),
        (
            "file",
            "https://api.example/repos/pytorch/pytorch/contents/a.yml",
            [
                (
                    "accelhub.E012",
                    "ACCELHUB_ALLOWLIST_URL is https://api.example/repos/pytorch/pytorch/contents/a.yml.",
                    f"{WRITE}, or https://api.example/repos/pytorch/pytorch/contents/<path>?ref=<branch>.",
                )
            ],
        ),
    ],
)
def test_a_system_check_names_what_is_set_wrongly(
    settings: Settings, authority: str, url: str, expected: list[tuple[str, str, str]]
) -> None:
    settings.GITHUB_API_URL = "https://api.example"
    settings.ALLOWLIST_AUTHORITY, settings.ALLOWLIST_URL = authority, url
    assert found() == expected


@pytest.mark.django_db
def test_where_the_file_decides_nobody_imports_another(settings: Settings, tmp_path: Path) -> None:
    settings.ALLOWLIST_AUTHORITY, settings.ALLOWLIST_URL = "file", BLOB
    file = tmp_path / "allowlist.yml"
    file.write_text("L1: [a/b]\n")
    out = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("allowlist", "import", str(file), stdout=out)
    assert str(caught.value) == (
        "pytorch/pytorch/.github/allowlist.yml is the allowlist: change it there, the hub follows. "
        "`--dry-run` compares."
    )
    assert not Repository.objects.exists()
    call_command("allowlist", "import", str(file), "--dry-run", stdout=out)
    assert out.getvalue() == "a/b listed at L1\n1 entries read, 1 would change\n"
