"""Readers know neither Django nor a database, so that they run, and are tested, anywhere."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_reading_loads_no_django() -> None:
    code = "import sys, apps.results.formats.archive; sys.exit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
