"""Where e-mails go: `EMAIL_URL`, else files in the data folder."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.environment import without_ours

ROOT = Path(__file__).parents[2]
SMTP = "django.core.mail.backends.smtp.EmailBackend"
NAMES = (
    *("EMAIL_BACKEND", "EMAIL_HOST", "EMAIL_PORT", "EMAIL_HOST_USER", "EMAIL_HOST_PASSWORD", "EMAIL_USE_TLS"),
    *("EMAIL_USE_SSL", "DEFAULT_FROM_EMAIL"),
)


def settings_with(folder: Path, **environment: str) -> dict[str, Any]:
    """The settings as a process that starts now would read them."""
    script = (
        "import json; from django.conf import settings; "
        f"print(json.dumps({{name: getattr(settings, name) for name in {(*NAMES, 'EMAIL_FILE_PATH')!r}}}))"
    )
    ours = {"DJANGO_SETTINGS_MODULE": "accelhub.settings", "ACCELHUB_DATA_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=without_ours(os.environ) | ours | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_without_a_url_each_email_is_a_file_of_the_data_folder(tmp_path: Path) -> None:
    found = settings_with(tmp_path)
    assert found["EMAIL_BACKEND"] == "django.core.mail.backends.filebased.EmailBackend"
    assert found["EMAIL_FILE_PATH"] == str(tmp_path / "mail")
    assert found["DEFAULT_FROM_EMAIL"] == "AccelHub <accelhub@127.0.0.1>"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtp://mail.internal", (SMTP, "mail.internal", 25, "", "", False, False)),
        ("smtp+tls://me:p%40ss@mail.internal:587", (SMTP, "mail.internal", 587, "me", "p@ss", True, False)),
        ("smtp+ssl://me:secret@mail.internal:465", (SMTP, "mail.internal", 465, "me", "secret", False, True)),
    ],
)
def test_a_server_is_taken_by_url_also_from_a_file(tmp_path: Path, url: str, expected: tuple[Any, ...]) -> None:
    (tmp_path / "url").write_text(url)
    base = {"ACCELHUB_BASE_URL": "https://hub.example", "ACCELHUB_EMAIL_FROM": "hub@hub.example"}
    for given in ({"EMAIL_URL": url}, {"EMAIL_URL_FILE": str(tmp_path / "url")}):
        found = settings_with(tmp_path, **base, **given)
        assert tuple(found[name] for name in NAMES) == (*expected, "hub@hub.example")
