"""A demo and a real hub never start on each other's folder or database."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction

from accelhub.embedded.folders import kind_of_folder
from accelhub.kind import kind_of_database
from apps.core.enums import Kind
from apps.core.models import Installation
from tests.accelhub.started import ROOT
from tests.environment import private_key, without_ours
from tests.factories.listing import user
from tests.live import ClonedDatabase

SECRETS = {
    "ACCELHUB_SECRET_KEY": "k" * 48,
    "ACCELHUB_GITHUB_WEBHOOK_SECRET": "hook",
    "ACCELHUB_GITHUB_APP_ID": "1",
    "ACCELHUB_LOCAL_SIGN_IN": "1",
}
IS_NOT_OURS = "is kept by {}, and this is {}: set ACCELHUB_DATA_DIR to another folder, or {}.\n"
REFUSED_REAL = IS_NOT_OURS.format("a demo", "a real hub", "set ACCELHUB_DEMO=1")
REFUSED_DEMO = IS_NOT_OURS.format("a real hub", "a demo", "unset ACCELHUB_DEMO")


def up(data: Path, *words: str, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "manage.py", "up", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=without_ours(os.environ) | {"ACCELHUB_DATA_DIR": str(data), "PORT": "0"} | environment,
    )
    return done.returncode, done.stdout, done.stderr


class TestFolder:
    @pytest.mark.parametrize(
        ("holds", "expected"),
        [
            ({}, None),
            ({"kind": "real\n", "demo.json": "{}"}, Kind.REAL),
            ({"kind": "demo\n"}, Kind.DEMO),
            ({"demo.json": "{}", "postgres": ""}, Kind.DEMO),
            ({"postgres": ""}, Kind.REAL),
        ],
    )
    def test_it_says_what_it_is_for(self, holds: dict[str, str], expected: Kind | None, tmp_path: Path) -> None:
        for name, text in holds.items():
            (tmp_path / name).write_text(text)
        assert kind_of_folder(tmp_path) == expected

    def test_a_real_hub_does_not_start_on_a_demos(self, tmp_path: Path) -> None:
        (tmp_path / "kind").write_text("demo\n")
        keys = SECRETS | {"ACCELHUB_GITHUB_APP_PRIVATE_KEY": private_key()}
        assert up(tmp_path, **keys) == (1, "", f"The data folder {tmp_path} {REFUSED_REAL}")
        assert up(tmp_path, "--no-demo", ACCELHUB_DEMO="1", **keys)[2] == f"The data folder {tmp_path} {REFUSED_REAL}"

    def test_a_demo_does_not_start_on_a_real_hubs(self, tmp_path: Path) -> None:
        (tmp_path / "kind").write_text("real\n")
        assert up(tmp_path, ACCELHUB_DEMO="1") == (1, "", f"The data folder {tmp_path} {REFUSED_DEMO}")
        assert {path.name for path in tmp_path.iterdir()} == {"kind", "hub.lock"}


def test_an_unsafe_hub_starts_nothing_and_says_only_what_to_set(tmp_path: Path) -> None:
    data = tmp_path / "data"
    missing = ("SECRET_KEY", "GITHUB_WEBHOOK_SECRET", "GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY")
    lines = [
        f"accelhub.E002: ACCELHUB_{name} is not set. Set ACCELHUB_{name} or ACCELHUB_{name}_FILE." for name in missing
    ]
    lines.append(
        "accelhub.E007: Nobody can sign in. Set both SOCIAL_AUTH_GITHUB_KEY and SOCIAL_AUTH_GITHUB_SECRET. "
        "In an emergency set ACCELHUB_LOCAL_SIGN_IN."
    )
    assert up(data) == (1, "", "\n".join(sorted(lines)) + "\n")
    assert not data.exists()


def test_a_database_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    status, out, err = up(tmp_path, ACCELHUB_DEMO="1", DATABASE_URL="postgres://me:secret@127.0.0.1:9/hub")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("DATABASE_URL: the database does not answer (")
    assert "secret" not in err


def test_a_demo_does_not_start_on_a_real_hubs_database(tmp_path: Path, cloned_database: ClonedDatabase) -> None:
    address = {"DATABASE_URL": cloned_database.environment["DATABASE_URL"]}
    line = "The database is kept by a real hub, and this is a demo: set DATABASE_URL to another one, or unset "
    assert up(tmp_path, ACCELHUB_DEMO="1", **address) == (1, "", f"{line}ACCELHUB_DEMO.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.django_db
class TestDatabase:
    def test_the_first_migrate_says_what_it_is_for(self) -> None:
        assert [row.kind for row in Installation.objects.all()] == [Kind.REAL]

    def test_migrate_refuses_the_others(self, settings: Any) -> None:
        settings.DEMO = True
        with pytest.raises(CommandError, match=r"^The database is kept by a real hub, and this is a demo: set "):
            call_command("migrate", verbosity=0)
        settings.DEMO = False
        Installation.objects.update(kind=Kind.DEMO)
        with pytest.raises(CommandError, match=r"^The database is kept by a demo, and this is a real hub: set "):
            call_command("migrate", verbosity=0)

    @pytest.mark.parametrize(("demo", "expected"), [([], None), ([False], Kind.REAL), ([False, True], Kind.DEMO)])
    def test_one_without_the_row_is_known_by_its_people(self, demo: list[bool], expected: Kind | None) -> None:
        Installation.objects.all().delete()
        for is_demo in demo:
            user(is_demo=is_demo)
        assert kind_of_database() == expected

    @pytest.mark.parametrize("row", [{"id": 2, "kind": Kind.DEMO}, {"id": 1, "kind": "other"}])
    def test_postgresql_refuses_a_second_row_and_a_third_kind(self, row: dict[str, Any]) -> None:
        Installation.objects.all().delete()
        with pytest.raises(IntegrityError), transaction.atomic():
            Installation.objects.create(**row)
