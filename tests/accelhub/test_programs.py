"""One table says what a hub runs: `manage.py up` starts it, and the containers must not drift from it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from accelhub.celery import app
from accelhub.programs import MIGRATE, STOP_ORDER, programs

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yml").read_text())
DATA_IN_IMAGE = Path("/srv/accelhub/var")
TABLE = {program.name: program for program in (*programs(DATA_IN_IMAGE), MIGRATE)}
CONTAINERS = {"web": "web", "relay": "worker", "heavy": "worker-heavy", "beat": "beat", "migrate": "migrate"}


@pytest.mark.parametrize(("program", "container"), CONTAINERS.items())
def test_containers_run_the_same_commands(program: str, container: str) -> None:
    assert tuple(COMPOSE["services"][container]["command"]) == TABLE[program].arguments


def test_every_program_outside_the_demo_has_its_container() -> None:
    assert {name for name, program in TABLE.items() if not program.demo_only} == set(CONTAINERS)
    assert set(COMPOSE["services"]) == {*CONTAINERS.values(), "postgres", "redis"}


def test_containers_grant_as_much_time_to_stop_as_the_supervisor() -> None:
    for program, container in CONTAINERS.items():
        if "stop_grace_period" in (service := COMPOSE["services"][container]):
            assert int(service["stop_grace_period"].removesuffix("s")) >= TABLE[program].stop_seconds


def test_every_program_has_its_turn_to_stop() -> None:
    staged = [name for stage in STOP_ORDER for name in stage]
    assert len(staged) == len(set(staged))
    assert set(TABLE) <= set(staged)


def test_the_image_keeps_its_data_where_the_containers_look() -> None:
    assert f"ACCELHUB_DATA_DIR={DATA_IN_IMAGE}" in (ROOT / "docker" / "Dockerfile").read_text()


def test_every_queue_that_a_task_is_sent_to_has_a_worker() -> None:
    served = {word.removeprefix("--queues=") for p in TABLE.values() for word in p.arguments if "--queues=" in word}
    assert {route["queue"] for route in app.conf.task_routes.values()} | {app.conf.task_default_queue} == served
