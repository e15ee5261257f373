"""The layers of the house, where import-linter cannot look: foreign keys, migrations, models."""

import io
import re
import tomllib
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import models

from accelhub.env import BASE_DIR

OURS = [config for config in apps.get_app_configs() if config.name.startswith("apps.")]


def layers() -> dict[str, int]:
    """App → how high it stands, from the contract in pyproject.toml."""
    contracts: list[dict[str, Any]] = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    lines = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {app: height for height, line in enumerate(reversed(lines)) for app in re.findall(r"\w+", line)}


def references(model: type[models.Model]) -> list[type[models.Model]]:
    """The models that a model's own fields point at."""
    fields = [*model._meta.local_fields, *model._meta.local_many_to_many]
    return [field.remote_field.model for field in fields if field.remote_field]


def test_every_app_has_its_layer_and_is_installed() -> None:
    folders = {path.parent.name for path in (BASE_DIR / "apps").glob("*/__init__.py")}
    assert folders == {config.label for config in OURS}
    assert folders <= set(layers())


def test_foreign_keys_point_to_the_same_or_a_lower_app() -> None:
    height = layers()
    wrong = []
    pointing = set()
    for config in OURS:
        for model in config.get_models():
            for target in references(model):
                pointing.add((config.label, target._meta.app_label))
                if target._meta.app_label in height and height[target._meta.app_label] > height[config.label]:
                    wrong.append(f"{model._meta.label} → {target._meta.label}")
    assert wrong == []
    # The walk sees what there is to see.
    assert {("platforms", "accounts"), ("relay", "platforms"), ("relay", "relay")} <= pointing


def test_no_foreign_key_points_into_the_log() -> None:
    pointed_at = {target._meta.app_label for model in apps.get_models() for target in references(model)}
    assert "audit" not in pointed_at


def test_every_models_file_belongs_to_an_app_that_has_models() -> None:
    with_file = {path.parent.name for path in (BASE_DIR / "apps").glob("*/models.py")}
    assert with_file == {config.label for config in OURS if list(config.get_models())}


def test_pages_and_simulator_have_no_models() -> None:
    labels = ("public", "console", "simulator")
    assert [list(apps.get_app_config(label).get_models()) for label in labels] == [[], [], []]


def test_times_are_given_and_never_taken_from_a_clock_by_a_model() -> None:
    automatic = [
        str(field)
        for config in OURS
        for model in config.get_models()
        for field in model._meta.local_fields
        if getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False)
    ]
    assert automatic == []


CLOCKS = re.compile(r"\b(timezone\.now|datetime\.now|utcnow|date\.today|time\.time)\(")
# The one clock; and readings that are no times of the domain.
MAY_READ_A_CLOCK = {"core/clock.py", "core/limits.py", "relay/identity.py"}


def test_services_and_policies_look_at_no_clock() -> None:
    readers = {
        str(path.relative_to(BASE_DIR / "apps"))
        for path in (BASE_DIR / "apps").rglob("*.py")
        if CLOCKS.search(path.read_text()) and "simulator" not in path.parts
    }
    assert readers <= MAY_READ_A_CLOCK


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    out = io.StringIO()
    call_command("makemigrations", "--check", "--dry-run", stdout=out)
    assert out.getvalue() == "No changes detected\n"
