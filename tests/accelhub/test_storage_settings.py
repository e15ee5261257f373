"""Where reports are kept: `ACCELHUB_STORAGE_URL`, else the data folder; and what is refused."""

import os
import stat
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages

from accelhub.checks import storage_is_supported
from accelhub.env import storage


@pytest.mark.parametrize(
    ("url", "folder"),
    [("", "/data/files"), ("file:///srv/reports", "/srv/reports"), ("file:///srv/a%20b", "/srv/a b")],
)
def test_reports_are_files_of_one_folder(monkeypatch: pytest.MonkeyPatch, url: str, folder: str) -> None:
    monkeypatch.setenv("ACCELHUB_STORAGE_URL", url)
    assert storage(Path("/data"))["OPTIONS"]["location"] == folder
    assert storage_is_supported(None) == []


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("s3://key:secret@bucket/prefix", "begins with s3:"),
        ("file://host/share", "begins with file:"),
        ("file:", "begins with file:"),
        ("/srv/reports", "has no scheme"),
        ("reports", "has no scheme"),
    ],
)
def test_any_other_storage_is_refused_and_no_secret_shown(monkeypatch: pytest.MonkeyPatch, url: str, seen: str) -> None:
    monkeypatch.setenv("ACCELHUB_STORAGE_URL", url)
    found = storage_is_supported(None)
    assert [(error.id, error.msg) for error in found] == [
        ("accelhub.E024", f"ACCELHUB_STORAGE_URL {seen}, and only files are supported.")
    ]


def test_a_stored_file_is_nobody_elses_to_read_and_a_second_one_takes_its_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ACCELHUB_STORAGE_URL", f"file://{tmp_path}/files")
    files = storages.create_storage(storage(tmp_path))
    assert [files.save("raw/ab/x", ContentFile(content)) for content in (b"one", b"two")] == ["raw/ab/x"] * 2
    with files.open("raw/ab/x") as stored:
        assert stored.read() == b"two"
    folder = tmp_path / "files" / "raw"
    assert [stat.S_IMODE(os.stat(path).st_mode) for path in (folder, folder / "ab", folder / "ab" / "x")] == [
        0o700,
        0o700,
        0o600,
    ]
