"""Files of the hub: what was stored is on the disk before anybody is told so."""

import os
from pathlib import Path
from typing import Any

from django.core.files.base import File
from django.core.files.storage import FileSystemStorage, Storage


class DurableFiles(FileSystemStorage):
    """Files under the data folder. `save` returns once the file, and every folder that leads to it, would survive a
    power cut."""

    def settle(self, name: str) -> None:
        """Put a file that is there onto the disk. Every folder's own entry stands in the one above it, and whoever made
        it may have died before that was written."""
        path, root = Path(self.path(name)), Path(self.location)
        above = [folder for folder in path.parents if folder == root.parent or root.parent in folder.parents]
        for each in [path, *above]:
            _sync(each)

    def _save(self, name: str, content: Any) -> str:
        saved = str(super()._save(name, content))  # type: ignore[misc]
        self.settle(saved)
        return saved


def store_once(storage: Storage, name: str, content: File) -> None:
    """Store bytes under the name that says what they hold. Are they there, they are made as safe as new ones: whoever
    stored them may have died in the middle."""
    if not storage.exists(name):
        storage.save(name, content)
    elif isinstance(storage, DurableFiles):
        storage.settle(name)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
