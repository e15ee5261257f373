"""What people come for, from the front page on, as they click it: with JavaScript and without."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from apps.simulator.standin import GitHubStandIn
from tests.e2e.conftest import Watch, sign_in
from tests.e2e.field import Field

SCRIPTS = pytest.mark.parametrize("javascript", [True, False], ids=["javascript", "no javascript"])
NewPage = Callable[..., Page]


def heading(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_contain_text(text)


@SCRIPTS
def test_a_visitor_reads_from_the_overview_down_to_a_job_and_a_decision(
    new_page: NewPage, field: Field, javascript: bool
) -> None:
    page = new_page(java_script_enabled=javascript)
    page.goto("/")
    heading(page, "Accelerators against pytorch/pytorch")
    page.get_by_role("link", name="Acme One", exact=True).first.click()
    heading(page, "Acme One")
    tabs = page.get_by_role("navigation", name="Jobs")
    current = tabs.locator("[aria-current=page]")
    expect(current).to_have_text("By pull request")

    here = page.url
    if javascript:
        page.evaluate("window.same = true")
    tabs.get_by_role("link", name="All jobs").click()
    expect(current).to_have_text("All jobs")
    expect(page).to_have_url(f"{here}?view=all")
    if javascript:
        assert page.evaluate("window.same") is True, "a tab is swapped in, the page is not loaded again"
    page.go_back()
    expect(page).to_have_url(here)
    expect(current).to_have_text("By pull request")
    heading(page, "Acme One")
    page.go_forward()
    expect(page).to_have_url(f"{here}?view=all")
    expect(current).to_have_text("All jobs")

    page.get_by_role("link", name="CI / test-strides").click()
    heading(page, "CI / test-strides")
    expect(page).to_have_url(f"{here.partition('/platforms/')[0]}/jobs/{field.job.public_id}/")
    expect(page.get_by_role("main")).to_contain_text("120 passed, 2 failed, 8 skipped of 130")

    page.get_by_role("main").get_by_role("link", name="Acme One").click()
    page.get_by_role("region", name="Level history").get_by_role("link").first.click()
    heading(page, "acme/torch")
    expect(page.get_by_role("main")).to_contain_text("Who and why")


@SCRIPTS
def test_a_vendor_sees_what_is_private_and_registers_a_platform(
    new_page: NewPage, field: Field, javascript: bool
) -> None:
    page = new_page(java_script_enabled=javascript)
    page.goto(f"/platforms/{field.zephyr.platform.slug}/")
    private = page.get_by_role("region", name="Private callbacks")
    expect(private).to_have_count(0)
    page.get_by_role("link", name="Sign in").click()
    sign_in(page, field.vendor.username)
    heading(page, "Zephyr NPU")
    expect(private.get_by_role("row")).to_have_count(2)
    expect(private).to_contain_text("CI / private-ops")

    page.get_by_role("link", name="Register a platform").click()
    page.get_by_label("Platform name").fill("Zephyr Edge")
    page.get_by_label("Downstream repository").fill("zephyr/edge")
    page.get_by_label("Oncalls").fill("zoe")
    page.get_by_label("pull_request").check()
    expect(page.get_by_label("Contact")).to_have_value("vera@zephyr.example")
    page.get_by_label("Contact").fill("")
    page.get_by_label("Contact").fill("edge@zephyr.example")
    evidence = page.get_by_role("region", name="Hardware evidence 1")
    evidence.get_by_label("Title").fill("The card")
    evidence.get_by_label("Text").fill("E1, 8 GB, in our rack")
    page.get_by_role("button", name="Propose for L1").click()

    heading(page, "Zephyr Edge for L1")
    expect(page.get_by_role("main")).to_contain_text("zephyr/edge is proposed for L1: the maintainers are next.")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Console").click()
    mine = page.get_by_role("region", name="My proposals").get_by_role("row").filter(has_text="Zephyr Edge")
    expect(mine).to_contain_text("waiting")
    expect(mine).to_contain_text("maintainers")

    # Nobody else learns of it before it is accepted.
    page.get_by_role("link", name="Zephyr Edge").click()
    proposed = page.url
    stranger = new_page(java_script_enabled=javascript)
    answer = stranger.request.get(proposed)
    assert answer.status == 404


@SCRIPTS
def test_a_maintainer_accepts_a_proposal_and_raises_it(new_page: NewPage, field: Field, javascript: bool) -> None:
    page = new_page(java_script_enabled=javascript)
    page.goto("/")
    page.get_by_role("link", name="Sign in").click()
    sign_in(page, field.maintainer.username)
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Console").click()
    page.get_by_role("region", name="Waits for a decision").get_by_role("link", name="Borealis TPU").click()
    heading(page, "Borealis TPU for L1")
    page.get_by_role("region", name="Accept").get_by_label("Reason").fill("The card is what it says.")
    page.get_by_role("button", name="List at L1").click()
    expect(page.get_by_role("main")).to_contain_text("borealis/torch is listed at L1.")

    page.get_by_role("link", name="The platform").click()
    heading(page, "Borealis TPU")
    page.get_by_role("link", name="Change level…").click()
    page.get_by_role("link", name="Raise to L2").click()
    expect(page.get_by_role("region", name="What will change")).to_contain_text("L1 → L2")
    page.get_by_label("Reason").fill("Two weeks of clean callbacks.")
    page.get_by_role("button", name="Put L2 in force").click()
    heading(page, "Borealis TPU")
    expect(page.get_by_role("main")).to_contain_text("borealis/torch is now at L2")

    page.get_by_role("navigation", name="Main").get_by_role("link", name="Decisions").click()
    if javascript:
        page.evaluate("window.same = true")
    page.get_by_label("Platform or repository").or_(page.get_by_label("About")).fill("borealis")
    page.get_by_role("button", name="Filter").click()
    expect(page).to_have_url(re.compile("about=borealis"))
    found = page.get_by_role("main").get_by_role("listitem")
    expect(found).to_have_count(2)
    expect(found.first).to_contain_text("Two weeks of clean callbacks.")
    if javascript:
        assert page.evaluate("window.same") is True
    found.first.get_by_role("link").click()
    expect(page.get_by_role("region", name="Who and why")).to_contain_text("Two weeks of clean callbacks.")


@SCRIPTS
def test_a_maintainer_returns_a_proposal(new_page: NewPage, field: Field, javascript: bool) -> None:
    page = new_page(who=field.maintainer.username, java_script_enabled=javascript)
    page.goto(f"/proposals/{field.waiting.public_id}/")
    page.get_by_role("region", name="Return").get_by_label("What is missing").fill("Which board is it?")
    page.get_by_role("button", name="Return to the vendor").click()
    expect(page.get_by_role("main")).to_contain_text("The proposal is returned")
    expect(page.get_by_role("region", name="What happened")).to_contain_text("Which board is it?")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Console").click()
    expect(page.get_by_role("region", name="With the vendor")).to_contain_text("Borealis TPU")


@SCRIPTS
def test_someone_signs_in_with_github_and_comes_back_to_where_they_were(
    new_page: NewPage, watch: Watch, github: GitHubStandIn, javascript: bool
) -> None:
    github.people.add("grace")
    watch.elsewhere.add(github.url)
    watch.refusals.add(f"{github.url}/favicon.ico")
    page = new_page(java_script_enabled=javascript)
    page.goto("/register/")
    heading(page, "Sign in")
    page.get_by_role("button", name="Sign in with GitHub").click()
    heading(page, "Continue as…")
    page.get_by_role("link", name="grace").click()
    heading(page, "Register a platform")
    expect(page.locator(".who")).to_have_text("grace")


@SCRIPTS
def test_what_cannot_be_proposed_is_said_on_the_form_and_nothing_written_is_lost(
    new_page: NewPage, field: Field, javascript: bool
) -> None:
    page = new_page(who=field.vendor.username, java_script_enabled=javascript)
    page.goto("/register/")
    page.get_by_label("Platform name").fill("Zephyr Edge")
    page.get_by_label("Downstream repository").fill("https://github.com/zephyr/edge")
    page.get_by_label("Oncalls").fill("zoe")
    page.get_by_label("pull_request").check()
    evidence = page.get_by_role("region", name="Hardware evidence 1")
    evidence.get_by_label("Title").fill("The card")
    evidence.get_by_label("Text").fill("E1, 8 GB, in our rack")
    page.get_by_role("button", name="Propose for L1").click()
    heading(page, "Register a platform")
    wrong = page.get_by_label("Downstream repository")
    expect(wrong).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("main")).to_contain_text("write owner/name as it stands on GitHub, not an address.")
    expect(page.get_by_label("Platform name")).to_have_value("Zephyr Edge")
    expect(evidence.get_by_label("Text")).to_have_value("E1, 8 GB, in our rack")
    wrong.fill("zephyr/edge")
    page.get_by_role("button", name="Propose for L1").click()
    heading(page, "Zephyr Edge for L1")
