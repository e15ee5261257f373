"""Files of the hub: what was stored is on the disk before anybody is told so."""

import os
from typing import Any

from django.core.files.storage import FileSystemStorage


class DurableFiles(FileSystemStorage):
    """Files under the data folder. `save` returns once file and folder entry would survive a power cut."""

    def _save(self, name: str, content: Any) -> str:
        saved = super()._save(name, content)  # type: ignore[misc]
        path = self.path(saved)
        _sync(path)
        _sync(os.path.dirname(path))
        return str(saved)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
