"""Parts that ask again by themselves: nothing new costs a 304, something new is swapped in."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Response, expect

from apps.core.clock import now
from apps.results.services import recount
from tests.e2e.conftest import Watch
from tests.e2e.field import Field
from tests.factories.jobs import callback, days_ago, job

NewPage = Callable[..., Page]


class Polls:
    """A page whose clock is the test's, and the answers that its live part got."""

    def __init__(self, page: Page, path: str, part: str) -> None:
        self.page = page
        self.answers: list[int] = []
        self._part = part
        page.clock.install()
        page.on("response", self._response)
        page.goto(path)
        page.evaluate("window.same = true")

    def _response(self, response: Response) -> None:
        if response.request.headers.get("hx-target") == self._part:
            self.answers.append(response.status)

    def wait(self) -> int:
        """Let 20 seconds pass. Returns the status of what the part was answered."""
        with self.page.expect_response(lambda answer: answer.request.headers.get("hx-target") == self._part) as caught:
            self.page.clock.fast_forward(20_000)
        caught.value.finished()
        return caught.value.status


@pytest.fixture
def page(new_page: NewPage) -> Page:
    return new_page()


def test_the_overview_is_swapped_when_something_was_counted(page: Page, field: Field) -> None:
    polls = Polls(page, "/", "field")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="Acme One", exact=True))
    before = row.inner_text()
    assert [polls.wait(), polls.wait()] == [304, 304]
    for number in range(3):
        job(field.acme, "failure", at=days_ago(3), job_name=f"new-{number}")
    recount(days=5, now=now())
    assert polls.wait() == 200
    expect(row).not_to_have_text(before)
    assert polls.wait() == 304
    assert polls.answers == [304, 304, 200, 304]
    assert page.evaluate("window.same") is True


def test_the_jobs_of_a_platform_are_swapped_and_the_reader_keeps_the_place(page: Page, field: Field) -> None:
    polls = Polls(page, f"/platforms/{field.acme.platform.slug}/?view=all", "jobs")
    assert polls.wait() == 304
    shown = page.get_by_role("link", name="CI / test-strides")
    shown.focus()
    callback(job(field.acme, "success", at=now(), job_name="just-now"))
    assert polls.wait() == 200
    expect(page.get_by_role("link", name="CI / just-now")).to_be_visible()
    expect(shown).to_be_focused()
    assert polls.wait() == 304
    assert polls.answers == [304, 200, 304]


def test_a_hub_that_does_not_answer_is_said(page: Page, field: Field, watch: Watch) -> None:
    polls = Polls(page, "/", "field")
    notice = page.get_by_text("The hub did not answer.")
    expect(notice).to_be_hidden()
    page.route("**/*", lambda route: route.fulfill(status=503))
    assert polls.wait() == 503
    expect(notice).to_be_visible()
    assert all("503" in trouble for trouble in watch.troubles)
    watch.troubles.clear()  # Chromium and htmx say on the console what the page says
    page.unroute("**/*")
    assert polls.wait() == 304
    expect(notice).to_be_hidden()
