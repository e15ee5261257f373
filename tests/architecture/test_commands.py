"""Every command of the hub says what it is for."""

import pytest
from django.core.management import get_commands, load_command_class

from tests.architecture.test_layers import OURS

NAMES = {config.name for config in OURS} | {"accelhub"}
COMMANDS = sorted((app, name) for name, app in get_commands().items() if app in NAMES)


def test_these_are_the_commands_of_the_hub() -> None:
    assert {name for _, name in COMMANDS} >= {"allowlist", "apitoken", "audit", "grant", "platform", "seed_demo", "up"}


@pytest.mark.parametrize(("app", "name"), COMMANDS)
def test_it_has_a_help_text_that_is_a_sentence(app: str, name: str) -> None:
    command = load_command_class(app, name)
    assert command.help.endswith(".")
    assert command.help in " ".join(command.create_parser("manage.py", name).format_help().split())
