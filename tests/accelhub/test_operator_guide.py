"""The operator's guide and the code name the same variables and checks."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "operator.md").read_text()
READS = re.compile(r'env\.\w+\(\s*"([A-Z_]+)"')


def test_every_variable_that_is_read_stands_in_the_guide_and_none_besides() -> None:
    sources = [path.read_text() for path in (ROOT / "accelhub").rglob("*.py")]
    read = {name for source in sources for name in READS.findall(source)}
    rows = [line.split("|")[1] for line in GUIDE.splitlines() if line.startswith("| `")]
    names = re.compile(r"`((?:ACCELHUB|SOCIAL)_[A-Z_]+|(?:DATABASE|REDIS|EMAIL)_URL|PORT)`")
    told = {name for row in rows for name in names.findall(row)}
    assert told == read


def test_every_system_check_stands_in_the_guide() -> None:
    ids = set(re.findall(r"accelhub\.[EW]\d{3}", (ROOT / "accelhub" / "checks.py").read_text()))
    assert set(re.findall(r"accelhub\.[EW]\d{3}", GUIDE)) == ids
