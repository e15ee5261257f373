"""Two reports against each other: the page and the API, what is refused, and what is offered."""

from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.core.clock import now
from apps.platforms.models import Repository
from apps.relay.models import Commit
from apps.results.aliases import alias_test
from apps.results.bases import bases_of
from apps.results.models import Report, Test
from apps.results.removal import remove_report
from apps.results.report_selectors import may_see, reports, visible_to
from tests.factories.listing import TESTS, member_of, user
from tests.factories.pages import Page, problem, problem_body
from tests.relay.downstream import refusal
from tests.results.conftest import Reporting
from tests.results.reporter import ended, received, reported, upload

KESTREL, FALCON = "kestrel/torch", "falcon/torch"
COMMITS = [f"{number:02d}" * 20 for number in range(20)]


def api(base: Any, head: Any, client: Client | None = None, **more: Any) -> Any:
    query = {"base": base.public_id, "head": head.public_id} | more
    return (client or Client()).get("/api/v1/compare/", query)


def page_of(base: Any, head: Any, client: Client | None = None, **more: Any) -> Any:
    query = {"base": base.public_id, "head": head.public_id} | more
    return (client or Client()).get("/compare/", query)


def test_a_comparison_as_programs_and_people_read_it(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    base = reported(made, ended("test_a", "passed"), ended("test_b", "failed"), ended("test_c", "skipped"))
    head = reported(made, ended("test_a", "failed", "boom"), ended("test_b", "passed"), ended("test_c", "skipped"))
    body = api(base, head).json()
    tests = {test.name: test.pk for test in Test.objects.all()}

    def row(name: str, change: str, before: str, after: str, message: str) -> dict[str, Any]:
        test = {"id": tests[name], "file": "test_foo", "class_name": "TestFoo", "name": name}
        return {
            "test": test,
            "change": change,
            "before": before,
            "after": after,
            "message": message,
            "quarantined": None,
        }

    newly, fixed = (
        row("test_a", "newly_red", "passed", "failed", "boom"),
        row("test_b", "fixed", "failed", "passed", ""),
    )
    assert body.pop("results") == [newly, fixed]
    assert (body["base"]["id"], body["head"]["id"]) == (str(base.public_id), str(head.public_id))
    assert {name: count for name, count in body["counts"].items() if count} == {
        "newly_red": 1,
        "fixed": 1,
        "still_skipped": 1,
    }
    assert (body["variant"], body["tests"], body["next"], body["previous"]) == ("default", 3, None, None)
    first = api(base, head, limit=1).json()
    assert (first["results"], first["previous"]) == ([newly], None)
    second = Client().get(first["next"]).json()
    assert (second["results"], second["next"]) == ([fixed], None)
    assert Client().get(second["previous"]).json()["results"] == [newly]
    assert [one["change"] for one in api(base, head, change="still_skipped").json()["results"]] == ["still_skipped"]
    page = Page(page_of(base, head))
    assert page.tables["tests"] == [
        ("test_a test_foo · TestFoo boom", "■ newly red", "passed → failed"),
        ("test_b test_foo · TestFoo", "● fixed", "failed → passed"),
    ]
    assert ("■ newly red red now and not before, whatever it was: also a new test that is red", "1") in page.tables[
        "changes"
    ]
    assert Page(page_of(base, head, change="appeared")).tables.get("tests") is None


def test_a_renamed_test_is_the_same_test(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    base = reported(made, ended("test_z", "passed"), ended("test_old", "passed"))
    head = reported(made, ended("test_new", "failed", "boom"), ended("test_z", "passed"))
    counts = api(base, head).json()["counts"]
    assert (counts["newly_red"], counts["disappeared"]) == (1, 1)
    old, new = (Test.objects.get(name=name) for name in ("test_old", "test_new"))
    alias_test(old=old, new=new, reason="renamed", actor=TESTS, now=now())
    body = api(base, head).json()
    assert {name: count for name, count in body["counts"].items() if count} == {"newly_red": 1, "unchanged": 1}
    assert [(row["test"]["name"], row["before"], row["after"]) for row in body["results"]] == [
        ("test_new", "passed", "failed")
    ]
    back = api(head, base).json()
    assert {name: count for name, count in back["counts"].items() if count} == {"fixed": 1, "unchanged": 1}


def test_what_cannot_be_compared_is_refused_in_words(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    head, slow = reported(made, ended("test_a", "passed")), reported(made, ended("test_a", "passed"), variant="slow")
    unready = Report.objects.get(public_id=received(upload(made, report_key="later")))
    words = "base: its variant is slow, the head's is default; compare reports of one variant."
    assert problem(api(slow, head)) == problem_body("variants_differ", words, "base")
    assert refusal(api(unready, head)) == (409, "report_unready", "base")
    assert refusal(api(head, head)) == (400, "malformed", "head")
    assert refusal(api(head, slow, change="better")) == (400, "malformed", "change")
    assert refusal(api(head, slow, cursor="x")) == (409, "variants_differ", "base")
    assert refusal(Client().get("/api/v1/compare/", {"base": str(head.public_id), "head": "x"})) == (
        400,
        "malformed",
        "head",
    )
    answer = page_of(slow, head)
    assert (answer.status_code, words in Page(answer).text) == (409, True)
    remove_report(report=slow, reason="a name", actor=TESTS, now=now())
    assert refusal(api(head, slow)) == (409, "report_removed", "head")
    assert "No two reports are chosen" in Page(Client().get("/compare/")).text


def test_both_reports_must_be_visible_to_the_reader(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2, FALCON: 1})
    shown = reported(made[KESTREL], ended("test_a", "passed"), head_sha=COMMITS[1])
    hidden = reported(made[FALCON], ended("test_secret", "failed"), head_sha=COMMITS[1])
    for pair in ((shown, hidden), (hidden, shown)):
        assert [api(*pair).status_code, page_of(*pair).status_code] == [404, 404]
    assert [base.kind for base in bases_of(shown, user())] == ["previous", "base"]
    member, maintainer = member_of(hidden.platform), user(Role.MAINTAINER)
    for person in (member, maintainer):
        client = Client()
        client.force_login(person)
        assert [api(shown, hidden, client).status_code, page_of(shown, hidden, client).status_code] == [200, 200]
        assert bases_of(shown, person)[2].report == hidden
    for person in (user(), user(Role.OPERATOR), member, maintainer):
        found = set(reports().filter(visible_to(person)))
        assert found == {report for report in reports() if may_see(person, report)}


def test_what_is_held_is_not_offered(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    base, head = (reported(made, ended("test_a", "passed")) for _ in range(2))
    assert bases_of(head, user())[0].report == base
    Report.objects.filter(pk=base.pk).update(held_owner_id=99)
    assert bases_of(head, user())[0].report is None
    assert {report for report in reports() if may_see(user(), report)} == {head}
    Repository.objects.update(github_owner_id=99)
    assert bases_of(head, user())[0].report == base


def placed(*shas: str) -> None:
    for position, sha in enumerate(shas):
        parent = shas[position - 1] if position else ""
        Commit.objects.create(sha=sha, parent_sha=parent, position=position, placed_at=now())


def test_what_a_report_can_be_compared_with(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2, FALCON: 2})
    passing = ended("test_a", "passed")
    kestrel = made[KESTREL]
    old = reported(kestrel, passing, head_sha=COMMITS[0])
    other_job = reported(kestrel, passing, head_sha="ab" * 20, job_name="docs")
    elsewhere = reported(made[FALCON], passing, head_sha=COMMITS[3])
    reported(kestrel, passing, head_sha=COMMITS[3], variant="slow")
    head = reported(kestrel, passing, head_sha=COMMITS[3])
    reported(kestrel, passing, head_sha=COMMITS[3], run_id=head.run_id, job_name="again")

    def found() -> list[tuple[str, Any, str]]:
        return [(base.kind, base.report, base.words) for base in bases_of(head, user())]

    previous, platform = ("previous", old, "the run before"), ("platform", elsewhere, "torch, the same commit")
    assert found() == [previous, ("base", None, "unknown: where this commit left main is not known"), platform]
    placed(*COMMITS[:4])
    assert found() == [previous, ("base", old, "2 commits before the base commit"), platform]
    Commit.objects.filter(sha=COMMITS[0]).update(sha="ff" * 20)
    assert found()[1] == ("base", None, "none: nothing was reported of the 2,000 commits before")
    parent = reported(kestrel, passing, head_sha=COMMITS[2])
    assert found()[1] == ("base", parent, "of the base commit")
    assert bases_of(other_job, user())[0].report == old
    assert bases_of(old, user())[0].words == "none: this is the first of its variant"
    links = Page(Client().get(f"/reports/{head.public_id}/")).links
    assert [link for link in links if link.startswith("/compare/")] == [
        f"/compare/?base={base.public_id}&head={head.public_id}" for base in (old, parent, elsewhere)
    ]


@pytest.mark.parametrize("count", [1, 3])
def test_a_comparison_costs_the_same_however_much_changed(
    reporting: Reporting, count: int, django_assert_num_queries: Any
) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    base = reported(made, *(ended(f"test_{number}", "passed") for number in range(count)))
    head = reported(made, *(ended(f"test_{number}", "failed") for number in range(count)))
    with django_assert_num_queries(8):
        assert len(api(base, head).json()["results"]) == count
    with django_assert_num_queries(8):
        assert page_of(base, head).status_code == 200


def test_a_base_may_be_called_by_what_it_is(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2, FALCON: 2, "osprey/torch": 1})
    placed(*COMMITS[:2])
    old = reported(made[KESTREL], ended("test_a", "passed"), head_sha=COMMITS[0])
    elsewhere = reported(made[FALCON], ended("test_a", "passed"), head_sha=COMMITS[1])
    hidden = reported(made["osprey/torch"], ended("test_a", "passed"), head_sha=COMMITS[1])
    head = reported(made[KESTREL], ended("test_a", "failed"), head_sha=COMMITS[1])

    def called(word: str, of: Any = head) -> Any:
        query = {"base": word, "head": of.public_id}
        answer, page = Client().get("/api/v1/compare/", query), Client().get("/compare/", query)
        assert answer.status_code == page.status_code
        return answer

    for word, base in (("previous", old), ("base", old), (elsewhere.platform.slug, elsewhere)):
        assert called(word).json()["base"]["id"] == str(base.public_id)
    first = "base: none: this is the first of its variant."
    assert problem(called("previous", old)) == problem_body("not_found", first, "base")
    slug = hidden.platform.slug
    nobody = f"base: none: the platform {slug} did not report this commit in this variant."
    assert problem(called(slug)) == problem_body("not_found", nobody, "base")
    assert refusal(called("the one before")) == (400, "malformed", "base")
