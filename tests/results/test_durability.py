"""What the hub answered for survives a power cut: the file, and the entry of every folder that leads to it."""

import hashlib
import os
from pathlib import Path

import pytest
from django.conf import settings

from apps.core.clock import now
from apps.results.models import Report
from apps.results.parsing import parse
from tests.results.conftest import Reporting
from tests.results.reporter import JUNIT, received, upload

KESTREL = "kestrel/torch"
SHA = hashlib.sha256(JUNIT).hexdigest()


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What was put onto the disk, in order."""
    seen: list[Path] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        seen.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    return seen


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "left by a server that died"])
def test_uploaded_bytes_are_on_the_disk_before_the_answer(
    reporting: Reporting, storage_folder: Path, synced: list[Path], is_there: bool
) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    folder = storage_folder / "raw" / SHA[:2]
    if is_there:
        folder.mkdir(parents=True)
        (folder / SHA).write_bytes(JUNIT)
    received(upload(made))
    arrived, *rest = synced
    assert arrived.parent == settings.INCOMING_DIR
    assert rest == [folder / SHA, folder, folder.parent, storage_folder, storage_folder.parent]


def test_outcomes_are_on_the_disk_before_a_row_names_them(
    reporting: Reporting, storage_folder: Path, synced: list[Path]
) -> None:
    received(upload(reporting({KESTREL: 2})[KESTREL]))
    synced.clear()
    assert parse(report_pk=Report.objects.get().pk, clock=now) == "ready"
    file = storage_folder / Report.objects.get().outcomes_name
    assert synced == [file, file.parent, file.parent.parent, storage_folder, storage_folder.parent]
