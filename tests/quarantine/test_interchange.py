"""A platform's list in force as other runners read it: original names, and nothing that is not in force."""

import datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.core.clock import now
from apps.platforms.models import Repository
from apps.quarantine import services
from apps.quarantine.enums import Verb
from apps.quarantine.models import Quarantine
from apps.results.aliases import alias_test
from apps.results.models import Test
from tests.factories.listing import TESTS, listed, member_of
from tests.factories.reports import read_report
from tests.live import ClonedDatabase
from tests.quarantine.test_services import in_force, proposed
from tests.results.reporter import JUNIT, failing, junit

DAY = datetime.timedelta(days=1)

pytestmark = pytest.mark.usefixtures("cloned_database", "storage_folder")


@pytest.fixture
def kestrel(cloned_database: ClonedDatabase, storage_folder: Path) -> Repository:
    repository = listed({"kestrel/torch": (3, {"device": "npu"})})["kestrel/torch"]
    read_report(repository, JUNIT)
    return repository


def named(name: str) -> Test:
    return Test.objects.get(name__startswith=name)


def slug(repository: Repository) -> str:
    return repository.platform.slug


def disabled(repository: Repository, query: str = "") -> Any:
    return Client().get(f"/platforms/{slug(repository)}/disabled-tests.json{query}").json()


def deselected(repository: Repository) -> str:
    return Client().get(f"/platforms/{slug(repository)}/deselect.txt").content.decode()


def held(repository: Repository, *names: str, **values: Any) -> Quarantine:
    return in_force(repository.platform, *map(named, names), at=now() - DAY, **values)


def test_both_files_say_what_is_in_force_under_the_names_that_its_report_wrote(
    kestrel: Repository, settings: Any
) -> None:
    issue = "https://github.com/kestrel/torch/issues/77"
    held(kestrel, "test_a", issue_url=issue)
    own = held(kestrel, "test_b")
    proposed(kestrel.platform, named("test_c"))
    assert disabled(kestrel) == {
        "test_a_npu_float32 (__main__.TestFooPRIVATEUSE1)": ["77", issue, []],
        "test_b_npu_float32 (__main__.TestFooPRIVATEUSE1)": [
            "",
            f"{settings.BASE_URL}/quarantines/{own.public_id}/",
            [],
        ],
    }
    assert deselected(kestrel) == (
        "--deselect=test_foo.py::TestFooPRIVATEUSE1::test_a_npu_float32\n"
        "--deselect=test_foo.py::TestFooPRIVATEUSE1::test_b_npu_float32\n"
    )
    assert disabled(kestrel, "?variant=nightly") == {}


def test_what_has_ended_or_run_out_is_in_neither(kestrel: Repository) -> None:
    ended = held(kestrel, "test_a")
    services.end(quarantine=ended, verb=Verb.BREAK, reason="fails always", actor=TESTS, now=now())
    in_force(kestrel.platform, named("test_b"), at=now() - 31 * DAY)
    assert (disabled(kestrel), deselected(kestrel)) == ({}, "")


def test_a_pattern_is_the_tests_that_it_fits_today(kestrel: Repository) -> None:
    held(kestrel, pattern="test_foo.py::TestFoo*::test_b*")
    assert list(disabled(kestrel)) == ["test_b_npu_float32 (__main__.TestFooPRIVATEUSE1)"]


def test_a_renamed_test_is_said_as_the_last_report_says_it(kestrel: Repository) -> None:
    held(kestrel, "test_a")
    read_report(kestrel, junit(failing("test_new")))
    assert disabled(kestrel) == {}
    alias_test(old=named("test_a"), new=named("test_new"), reason="renamed", actor=TESTS, now=now())
    assert list(disabled(kestrel)) == ["test_new (__main__.TestFoo)"]


@pytest.mark.parametrize("line", ["&#10;", "&#13;", "&#x85;", "&#x2028;"])
def test_no_name_smuggles_an_option_into_the_file(kestrel: Repository, line: str) -> None:
    read_report(kestrel, junit(failing(f"test_evil{line}--co"), failing("test_good")))
    held(kestrel, "test_evil", "test_good")
    assert deselected(kestrel) == "--deselect=test_foo.py::TestFoo::test_good\n"


def test_below_l2_they_are_the_members_alone(cloned_database: ClonedDatabase, storage_folder: Path) -> None:
    hidden = listed({"kestrel/torch": 1})["kestrel/torch"]
    read_report(hidden, JUNIT)
    held(hidden, "test_a")
    member = Client()
    member.force_login(member_of(hidden.platform))
    for path, name in (("disabled-tests.json", "test_a_npu"), ("deselect.txt", "test_a_npu")):
        address = f"/platforms/{slug(hidden)}/{path}"
        assert Client().get(address).status_code == 404
        answer = member.get(address)
        assert (answer.status_code, name in answer.content.decode()) == (200, True)
