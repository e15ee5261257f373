"""The keyboard: `/` search, `j` and `k` rows, Enter opens, `?` help."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.field import Field

NewPage = Callable[..., Page]


def test_slash_goes_to_the_search_and_the_search_leads_to_a_commit(new_page: NewPage, field: Field) -> None:
    page = new_page()
    page.goto("/")
    search = page.get_by_role("searchbox").first
    page.keyboard.press("/")
    expect(search).to_be_focused()
    page.keyboard.type(field.delivery.head_sha[:12])
    page.keyboard.press("?")  # a letter like any other while one types
    expect(page.locator("#keys")).to_be_hidden()
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"Commit {field.delivery.head_sha[:12]}")


def test_j_and_k_walk_the_rows_and_enter_opens_one(new_page: NewPage, field: Field) -> None:
    page = new_page()
    page.goto("/platforms/")
    rows = page.locator("main tbody tr")
    page.keyboard.press("j")
    expect(rows.nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(rows.nth(0)).to_be_focused()
    name = rows.nth(0).get_by_role("link").first.inner_text()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def test_a_question_mark_shows_the_keys_and_escape_closes_them(new_page: NewPage, field: Field) -> None:
    page = new_page()
    page.goto("/")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_be_hidden()
    page.keyboard.press("?")
    expect(keys).to_be_visible()
    page.keyboard.press("j")  # rests while the help is open
    expect(page.locator("main tbody tr").first).not_to_be_focused()
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    page.get_by_role("button", name="Keys").click()
    expect(keys).to_be_visible()
    keys.get_by_role("button", name="Close").click()
    expect(keys).to_be_hidden()


def test_the_first_tab_skips_to_the_content(new_page: NewPage, field: Field) -> None:
    page = new_page()
    page.goto("/decisions/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_without_javascript_no_key_is_promised(new_page: NewPage, field: Field) -> None:
    page = new_page(java_script_enabled=False)
    page.goto("/")
    expect(page.locator("#keys-open")).to_be_hidden()
