"""A vendor's bulk form: tests as people write them, and picked from a report's findings, become one record."""

from pathlib import Path
from typing import Any

import pytest

from apps.platforms.models import Platform, Repository
from apps.quarantine.models import Quarantine
from apps.quarantine.naming import resolved
from apps.results.models import Report, Test
from tests.factories.listing import listed, member_of
from tests.factories.pages import Page, problem
from tests.live import ClonedDatabase
from tests.quarantine.test_api import post
from tests.quarantine.test_evidence import came
from tests.quarantine.test_pages import signed_in
from tests.quarantine.test_services import in_force
from tests.results.reporter import failing, passing

pytestmark = pytest.mark.usefixtures("cloned_database", "storage_folder")


@pytest.fixture
def kestrel(cloned_database: ClonedDatabase, storage_folder: Path) -> Repository:
    made = listed({"kestrel/torch": 2, "osprey/torch": 1})["kestrel/torch"]
    Repository.objects.update(device="npu")
    made.refresh_from_db()
    return made


def case(file: str, class_name: str, name: str) -> str:
    return f'<testcase file="{file}" classname="{class_name}" name="{name}" time="0.1"/>'


def reported(kestrel: Repository) -> Report:
    return came(
        kestrel,
        case("test_ops.py", "TestCommonPRIVATEUSE1", "test_add_npu_float32"),
        case("nn/test_conv.py", "TestConv", "test_pad"),
        case("test_mod.py", "TestMod", "test_pad"),
        case("test_mod.py", "TestMod", "test_x[a b::c]"),
    )


def named(numbers: list[int]) -> list[str]:
    tests = Test.objects.in_bulk(numbers)
    return [f"{tests[number].class_name}.{tests[number].name}" for number in numbers]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("test_ops.py::TestCommonPRIVATEUSE1::test_add_npu_float32", "TestCommon.test_add_<device>_float32"),
        (
            "test/test_ops.py::TestCommonPRIVATEUSE1::test_add_npu_float32",
            "TestCommon.test_add_<device>_float32",
        ),
        ("test_add_npu_float32 (__main__.TestCommonPRIVATEUSE1)", "TestCommon.test_add_<device>_float32"),
        ("  test_add_npu_float32  ", "TestCommon.test_add_<device>_float32"),
        ("test_add_<device>_float32", "TestCommon.test_add_<device>_float32"),
        ("nn/test_conv.py::TestConv::test_pad", "TestConv.test_pad"),
        ("test_mod.py::TestMod::test_x[a b::c]", "TestMod.test_x[a b::c]"),
    ],
)
def test_a_name_is_found_however_it_is_written(kestrel: Repository, line: str, found: str) -> None:
    reported(kestrel)
    answer = resolved([line, ""], kestrel.platform, "default")
    assert (named(answer.tests), answer.refused) == ([found], [])


def test_what_names_no_test_or_several_is_said_line_by_line(kestrel: Repository) -> None:
    reported(kestrel)
    came(listed_other(), failing("test_secret"))
    lines = ["test_pad", "test_secret", "test_conv.py::TestMod::test_pad", "\0", "7, 8", "9"]
    where = "the last report of kestrel/torch (default) names no such test."
    where = where.replace("kestrel/torch", kestrel.platform.name)
    assert resolved(lines, kestrel.platform, "default") == (
        [7, 8, 9],
        [
            "Saw 'test_pad': 2 tests are called so, write file::Class::name.",
            f"Saw 'test_secret': {where}",
            f"Saw 'test_conv.py::TestMod::test_pad': {where}",
            f"Saw '\\x00': {where}",
        ],
    )
    empty = resolved(["test_pad"], kestrel.platform, "slow")
    assert empty.refused == [
        f"No report of {kestrel.platform.name} (slow) says yet which tests there are: write numbers."
    ]


def listed_other() -> Repository:
    return Repository.objects.get(full_name="osprey/torch")


def form(**fields: Any) -> dict[str, Any]:
    return {"variant": "default", "reason_class": "timing", "reason": "one driver bug", "owner": "ada"} | fields


def new(platform: Platform, report: Report | None = None) -> str:
    return f"/platforms/{platform.slug}/quarantines/new/" + (f"?report={report.public_id}" if report else "")


def members(made: Quarantine) -> list[str]:
    return sorted(member.test.name for member in made.members.select_related("test"))


def test_what_went_wrong_in_a_report_is_picked_and_pasted_names_go_with_it(kestrel: Repository) -> None:
    report = came(
        kestrel,
        *(failing("test_a"), failing("test_b"), failing("test_c"), failing("test_held")),
        *(failing("test_flaky"), passing("test_flaky"), passing("test_green")),
    )
    in_force(kestrel.platform, Test.objects.get(name="test_held"), at=report.received_at)
    member = member_of(kestrel.platform, username="ada")
    client = signed_in(member)
    findings = Page(client.get(f"/reports/{report.public_id}/findings/"))
    assert new(kestrel.platform, report) in findings.links
    answer = client.get(new(kestrel.platform, report))
    offered = [number for number, _ in answer.context["form"].fields["picked"].choices]
    assert [name.rpartition(".")[2] for name in named(offered)] == ["test_a", "test_b", "test_c", "test_flaky"]
    shown = Page(answer)
    assert "1 of its red and flaky tests stands in an open quarantine already." in shown.text
    assert answer.context["form"]["owner"].value() == "ada"
    picked = [Test.objects.get(name=name).pk for name in ("test_a", "test_flaky")]
    sent = client.post(new(kestrel.platform, report), form(picked=picked, tests="test_green\ntest_a"))
    made = Quarantine.objects.get(state="proposed")
    assert (sent.status_code, sent["Location"]) == (302, f"/quarantines/{made.public_id}/")
    assert (members(made), made.tests, made.reason) == (["test_a", "test_flaky", "test_green"], 3, "one driver bug")


def test_what_the_report_does_not_offer_cannot_be_picked(kestrel: Repository) -> None:
    report = came(kestrel, failing("test_a"), passing("test_green"))
    green = Test.objects.get(name="test_green").pk
    answer = signed_in(member_of(kestrel.platform)).post(new(kestrel.platform, report), form(picked=[green]))
    assert f"{green} is not one of the available choices" in Page(answer).text
    assert Quarantine.objects.count() == 0


def test_lines_that_name_nothing_keep_the_form_and_make_no_record(kestrel: Repository) -> None:
    came(kestrel, failing("test_a"))
    lines = "test_a\n" + "\n".join(f"test_no_{number}" for number in range(12))
    answer = signed_in(member_of(kestrel.platform)).post(new(kestrel.platform), form(tests=lines))
    shown = Page(answer).text
    assert (shown.count("names no such test."), "And 2 more lines." in shown) == (10, True)
    assert answer.context["form"]["tests"].value() == lines
    assert Quarantine.objects.count() == 0


def test_reports_of_others_and_such_as_are_not_there_offer_nothing(kestrel: Repository) -> None:
    foreign = came(listed_other(), failing("test_secret"), level=1)
    client = signed_in(member_of(kestrel.platform))
    paths = [new(kestrel.platform, foreign), new(kestrel.platform) + "?report=7"]
    paths.append(new(kestrel.platform) + "?report=00000000-0000-0000-0000-000000000000")
    assert [client.get(path).status_code for path in paths] == [404, 404, 404]


def test_only_who_may_propose_is_led_to_the_form(kestrel: Repository) -> None:
    report = came(kestrel, failing("test_a"))
    leads = {}
    people = {"visitor": None, "of another": member_of(listed_other().platform), "member": member_of(kestrel.platform)}
    for name, who in people.items():
        client = signed_in(who)
        pages = (f"/reports/{report.public_id}/findings/", f"/platforms/{kestrel.platform.slug}/")
        leads[name] = [any("/quarantines/new/" in link for link in Page(client.get(path)).links) for path in pages]
    assert leads == {"visitor": [False, False], "of another": [False, False], "member": [True, True]}


def test_the_api_takes_names_as_the_form_does(kestrel: Repository) -> None:
    reported(kestrel)
    member = member_of(kestrel.platform)
    path = f"/api/v1/platforms/{kestrel.platform.slug}/quarantines/"
    body = {"reason_class": "timing", "reason": "a driver bug", "owner": "ada"}
    status, _, said = problem(post(path, member, names=["test_pad"], **body))
    assert (status, said["code"], said["field"]) == (400, "malformed", "names")
    answer = post(path, member, names=["test_mod.py::TestMod::test_pad", "test_add_npu_float32"], **body).json()
    assert sorted(one["name"] for one in answer["members"]) == ["test_add_<device>_float32", "test_pad"]
