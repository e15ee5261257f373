"""One test across runs and platforms, and search by name: the pages, the API, and what a stranger must not learn."""

from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.files.storage import default_storage
from django.test import Client

from apps.accounts.policy import Role
from apps.core.charts import run_strip
from apps.core.clock import now
from apps.results import catalogue, outcomes, public_names
from apps.results.aliases import alias_test
from apps.results.coverage import count_coverage
from apps.results.formats.cases import Outcome
from apps.results.history import details_of, history_of
from apps.results.models import Coverage, PublicTest, Report, Test
from apps.results.names.canonical import AS_WRITTEN
from apps.results.removal import remove_report
from tests.factories.listing import TESTS, member_of, user
from tests.factories.pages import Page
from tests.relay.downstream import refusal
from tests.results.conftest import Reporting
from tests.results.reporter import ended, reported

KESTREL, FALCON, OSPREY = "kestrel/torch", "falcon/torch", "osprey/torch"


def number_of(name: str) -> int:
    return Test.objects.get(name=name).pk


def history(name: str, client: Client | None = None, **query: Any) -> Any:
    return (client or Client()).get(f"/api/v1/tests/{number_of(name)}/", query)


def found(words: str, client: Client | None = None) -> list[str]:
    rows = (client or Client()).get("/api/v1/tests/", {"q": words}).json()["results"]
    return [row["name"] for row in rows]


def test_one_test_across_runs_and_platforms_within_a_variant(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2, FALCON: 2})
    first = reported(made[KESTREL], ended("test_a", "passed"), head_sha="aa" * 20)
    reported(made[KESTREL], ended("test_other", "passed"))
    reported(made[KESTREL], ended("test_other", "passed"), job_name="docs")
    second = reported(made[KESTREL], ended("test_a", "failed", "boom"))
    third = reported(made[FALCON], ended("test_a", "skipped", "Only runs on cuda"))
    slow = reported(made[KESTREL], ended("test_a", "failed", "late"), variant="slow")
    body = history("test_a").json()
    assert (body["variant"], body["variants"], body["looked_at"]) == ("default", ["default", "slow"], 5)

    def row(report: Any, outcome: str, message: str, ms: int | None = 100) -> dict[str, Any]:
        return {
            "report": str(report.public_id),
            "platform": report.platform.slug,
            "origin": report.origin_name,
            "head_sha": report.head_sha,
            "received_at": report.received_at.isoformat().replace("+00:00", "Z"),
            "outcome": outcome,
            "attempts": 1,
            "ms": ms,
            "message": message,
        }

    assert body["results"] == [
        row(third, "skipped", "Only runs on cuda"),
        row(second, "failed", "boom"),
        row(first, "passed", ""),
    ]
    assert history("test_a", variant="slow").json()["results"] == [row(slow, "failed", "late")]
    of_falcon = history("test_a", platform=third.platform.slug).json()
    assert ([one["outcome"] for one in of_falcon["results"]], of_falcon["looked_at"]) == (["skipped"], 1)
    page = Page(Client().get(f"/tests/{number_of('test_a')}/"))
    assert page.heading == "test_a"
    assert [row[:2] for row in page.tables["runs"]] == [
        ("torch build", "○ skipped"),
        ("torch build", "■ failed"),
        ("torch build", "● passed"),
    ]
    assert page.html.count("not in this report</title>") == 1
    for words in ("torch: 3 runs: 1 passed, 1 not in this report, 1 failed", "torch: 1 run: 1 skipped"):
        assert words in page.text


def test_a_renamed_test_has_the_history_of_both_names(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    reported(made, ended("test_old", "failed", "boom"))
    reported(made, ended("test_new", "passed"))
    old, new = (Test.objects.get(name=name) for name in ("test_old", "test_new"))
    alias_test(old=old, new=new, reason="renamed", actor=TESTS, now=now())
    for name in ("test_old", "test_new"):
        body = history(name).json()
        assert body["test"]["name"] == "test_new"
        assert [(row["outcome"], row["message"]) for row in body["results"]] == [("passed", ""), ("failed", "boom")]


def test_what_only_private_reports_name_does_not_exist_for_others(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2, OSPREY: 1})
    private = reported(made[OSPREY], ended("test_secret_chip", "passed"), ended("test_shared", "failed"))
    reported(made[KESTREL], ended("test_shared", "passed"))
    catalogue.fill_search(steps=1)
    assert (public_names.publish(reports=10), public_names.publish(reports=10)) == (1, 0)
    assert set(PublicTest.objects.values_list("test__name", flat=True)) == {"test_shared"}
    member, maintainer = Client(), Client()
    member.force_login(member_of(private.platform))
    maintainer.force_login(user(Role.MAINTAINER))
    assert (found("secret_chip"), found("secret_chip", member), found("test_shared")) == ([], [], ["test_shared"])
    assert found("secret_chip", maintainer) == ["test_secret_chip"]
    seen = [history("test_secret_chip", client).status_code for client in (Client(), member, maintainer)]
    assert seen == [404, 200, 200]
    assert Client().get(f"/tests/{number_of('test_secret_chip')}/").status_code == 404
    assert [len(history("test_shared", client).json()["results"]) for client in (Client(), member)] == [1, 2]


def test_a_report_that_is_taken_down_takes_its_names_with_it(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    gone = reported(made, ended("test_customer", "passed"), ended("test_shared", "passed"))
    reported(made, ended("test_shared", "passed"))
    catalogue.fill_search(steps=1)
    assert public_names.publish(reports=10) == 2
    assert found("test_customer") == ["test_customer"]
    remove_report(report=gone, reason="a name", actor=TESTS, now=now())
    assert found("test_") == []
    assert public_names.publish(reports=10) == 1
    assert found("test_") == ["test_shared"]
    assert [history(name).status_code for name in ("test_customer", "test_shared")] == [404, 200]


def test_search_says_what_it_cannot_look_for(reporting: Reporting) -> None:
    reported(reporting({KESTREL: 2})[KESTREL], ended("test_a", "passed"))
    catalogue.fill_search(steps=1)
    public_names.publish(reports=10)
    assert refusal(Client().get("/api/v1/tests/?q=x")) == (400, "malformed", "q")
    assert refusal(Client().get("/api/v1/tests/")) == (400, "malformed", "q")
    texts = [Page(Client().get(f"/tests/{query}")).text for query in ("", "?q=x", "?q=nobody", "?q=test_a")]
    said = ("once you look for some", "at least 3 characters", "No test has all these words", "TestFoo")
    assert [words in text for text, words in zip(texts, said, strict=True)] == [True] * 4
    assert [Client().get(f"/tests/{number}/").status_code for number in (0, 10**30)] == [404, 404]


@pytest.mark.parametrize("count", [1, 3])
def test_a_history_costs_the_same_however_many_runs_there_are(
    reporting: Reporting, count: int, django_assert_num_queries: Any
) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    for _ in range(count):
        reported(made, ended("test_a", "failed"), ended("test_ab", "skipped"))
    catalogue.fill_search(steps=1)
    public_names.publish(reports=10)
    address = f"/tests/{number_of('test_a')}/"
    with django_assert_num_queries(14):
        assert Client().get(address).status_code == 200
    with django_assert_num_queries(7):
        assert len(Client().get(f"/api/v1{address}").json()["results"]) == count
    with django_assert_num_queries(1):
        assert Client().get("/tests/?q=test_a").status_code == 200
    assert Report.objects.count() == count


def test_the_outcome_of_one_test_is_found_in_any_row_group(storage_folder: Any) -> None:
    count = outcomes.ROWS_A_GROUP + 10
    test, zeros = np.arange(1, count + 1) * 2, np.zeros(count, np.int32)
    codes = np.zeros(count, np.int8)
    codes[[0, -1]] = Outcome.FAILED, Outcome.FLAKY
    attempts = np.ones(count, np.int16)
    rows = outcomes.Outcomes(test, codes, attempts, zeros, zeros - 1, zeros, (AS_WRITTEN,))
    name = outcomes.write(rows, report="r", revision=1)
    wanted = ([2], [4], [2 * count], [3], [3, 2 * count], [2 * count + 2])
    assert [outcomes.outcome_of(name, tests) for tests in wanted] == [
        Outcome.FAILED,
        Outcome.PASSED,
        Outcome.FLAKY,
        None,
        Outcome.FLAKY,
        None,
    ]
    assert outcomes.outcomes_of(name, [2 * count, 3, 2, 2 * count + 2]) == {2: Outcome.FAILED, 2 * count: Outcome.FLAKY}
    assert outcomes.outcomes_of(name, []) == {}


def test_a_strip_of_runs_says_each_and_all() -> None:
    drawn = run_strip([("one", "good", "passed"), ("two", "bad", "<failed>"), ("three", "good", "passed")], "Kestrel")
    assert "<title>Kestrel: 3 runs: 2 passed, 1 &lt;failed&gt;</title>" in drawn
    assert '<path class="bad" d="M6 0v7h5v-7zm0 11v7h5v-7z"><title>two: &lt;failed&gt;</title></path>' in drawn
    assert "no data" in run_strip([], "Kestrel")


def test_a_report_whose_outcomes_went_away_meanwhile_is_left_out(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2})
    kept = reported(made[KESTREL], ended("test_a", "passed"))
    gone = reported(made[KESTREL], ended("test_a", "failed", "boom"))
    default_storage.delete(gone.outcomes_name)
    assert [row["report"] for row in history("test_a").json()["results"]] == [str(kept.public_id)]
    assert Client().get(f"/tests/{number_of('test_a')}/").status_code == 200


def test_a_run_whose_outcomes_go_away_before_its_details_are_read_is_left_out(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2})
    kept = reported(made[KESTREL], ended("test_a", "passed"))
    gone = reported(made[KESTREL], ended("test_a", "failed", "boom"))
    chosen = history_of(number_of("test_a"), AnonymousUser())
    default_storage.delete(gone.outcomes_name)
    assert [run.report for run in chosen.runs] == [gone, kept]
    details = [(detail.run.report, detail.attempts) for detail in details_of(chosen.test, chosen.runs)]
    assert details == [(kept, 1)]


@pytest.mark.parametrize("room", ["compare/?base={kept}&head={gone}", "reports/{gone}/skips/"])
def test_outcomes_that_went_away_meanwhile_are_asked_for_again(reporting: Reporting, room: str) -> None:
    made = reporting({KESTREL: 2})
    kept = reported(made[KESTREL], ended("test_a", "passed"))
    gone = reported(made[KESTREL], ended("test_a", "skipped"))
    default_storage.delete(gone.outcomes_name)
    address = room.format(kept=kept.public_id, gone=gone.public_id)
    assert refusal(Client().get(f"/api/v1/{address}")) == (409, "report_unready", None)
    assert Client().get(f"/{address}").status_code == 409


def test_one_report_whose_outcomes_went_away_does_not_keep_the_others_from_being_counted(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2, FALCON: 2})
    gone = reported(made[KESTREL], ended("test_a", "passed"))
    kept = reported(made[FALCON], ended("test_b", "passed"), variant="slow")
    default_storage.delete(gone.outcomes_name)
    assert count_coverage(reports=10, now=now()) == 2
    assert list(Coverage.objects.values_list("report", flat=True)) == [kept.pk]


def test_a_report_that_goes_away_between_the_two_reads_of_a_page_is_left_out_too(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2})
    kept = reported(made[KESTREL], ended("test_a", "passed"))
    gone = reported(made[KESTREL], ended("test_a", "failed", "boom"))
    found = history_of(number_of("test_a"), user())
    assert [run.report for run in found.runs] == [gone, kept]
    default_storage.delete(gone.outcomes_name)
    assert [detail.run.report for detail in details_of(found.test, found.runs)] == [kept]
