"""What the simulator keeps between two runs: one small JSON file in the data folder."""

import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

VERSION = 1  # of the file's shape: a file of another is not read


class Notebook:
    """The file `path`, mode 0600: dispatched payloads in it carry the hub's signed tokens."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def read(self) -> dict[str, Any]:
        """What was written last; empty at first, and where the file cannot be read (a demo starts anew then)."""
        try:
            data = json.loads(self._path.read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            log.warning("%s is not readable, so the demo's history starts anew: %s", self._path, error)
            return {}
        return data if isinstance(data, dict) and data.get("version") == VERSION else {}

    def write(self, data: dict[str, Any]) -> None:
        """Replace the content, whole or not at all."""
        draft = self._path.with_name(f"{self._path.name}.new")
        with self._lock:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump(data | {"version": VERSION}, file)
            draft.replace(self._path)
