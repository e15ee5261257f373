"""The directory's filters, order and pages, and where the header's search leads."""

from typing import Any

import pytest
from django.test import Client

from apps.platforms.models import Platform, Repository
from apps.platforms.services import change_level
from apps.public.directory import PAGE, elsewhere
from tests.factories.jobs import dispatch, job
from tests.factories.listing import listed
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = "/platforms/"
SHA = "c41d2e0f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d"


@pytest.fixture
def field() -> dict[str, Repository]:
    """Four platforms: names and levels in different orders; one with two repositories."""
    made = listed({"acme/one": 2, "acme/two": 1, "kestrel/torch": 4, "pallas/torch": 1, "wren/graph": 3})
    Repository.objects.filter(full_name="acme/two").update(platform=made["acme/one"].platform)
    Platform.objects.filter(pk=made["acme/two"].platform_id).delete()
    names = {"acme/one": "Zebra", "kestrel/torch": "Kestrel NPU", "pallas/torch": "Pallas One", "wren/graph": "alder"}
    for full_name, name in names.items():
        Platform.objects.filter(pk=made[full_name].platform_id).update(name=name)
    Platform.objects.filter(name="alder").update(kind="in_tree")
    return made


def names(client: Client, **query: Any) -> list[str]:
    answer = client.get(URL, query)
    assert answer.status_code == 200
    return [row[0] for row in Page(answer).tables.get("", [])]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["Kestrel NPU", "alder", "Zebra", "Pallas One"]),
        ({"q": "kestrel"}, ["Kestrel NPU"]),
        ({"q": "  TORCH  "}, ["Kestrel NPU", "Pallas One"]),
        ({"q": "acme/two"}, ["Zebra"]),
        ({"q": "torch one"}, ["Pallas One"]),
        ({"q": "%"}, []),
        ({"q": "nobody"}, []),
        ({"level": "1"}, ["Zebra", "Pallas One"]),
        ({"level": "2"}, ["Zebra"]),
        ({"kind": "in_tree"}, ["alder"]),
        ({"kind": "out_of_tree", "level": "4"}, ["Kestrel NPU"]),
        ({"sort": "name"}, ["alder", "Kestrel NPU", "Pallas One", "Zebra"]),
        ({"sort": "-name"}, ["Zebra", "Pallas One", "Kestrel NPU", "alder"]),
        ({"sort": "level"}, ["Pallas One", "Zebra", "alder", "Kestrel NPU"]),
        ({"sort": "-level", "q": "o"}, ["Kestrel NPU", "Zebra", "Pallas One"]),
    ],
)
def test_the_directory_shows_what_fits_in_the_order_asked_for(
    client: Client, field: dict[str, Repository], query: dict[str, str], found: list[str]
) -> None:
    assert names(client, **query) == found


def test_an_unlisted_repository_finds_nobody(client: Client, field: dict[str, Repository]) -> None:
    from apps.core.clock import now
    from tests.factories.listing import TESTS

    change_level(repository=field["acme/two"], level=0, expected_level=1, reason="gone", actor=TESTS, now=now())
    assert names(client, q="acme/two") == []
    assert names(client, q="acme/one") == ["Zebra"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"level": "9"}, "■ Select a valid choice. 9 is not one of the available choices."),
        ({"level": "0"}, "■ Select a valid choice. 0 is not one of the available choices."),
        ({"kind": "flying"}, "■ Select a valid choice. flying is not one of the available choices."),
        ({"sort": "colour"}, "■ Select a valid choice. colour is not one of the available choices."),
        ({"q": "a\0b"}, "■ Null characters are not allowed."),
        ({"q": "x" * 101}, "■ Ensure this value has at most 100 characters (it has 101)."),
    ],
)
def test_what_cannot_be_read_is_said_and_filters_nothing(
    client: Client, field: dict[str, Repository], query: dict[str, str], said: str
) -> None:
    page = Page(client.get(URL, query))
    assert said in page.text
    assert [row[0] for row in page.tables[""]] == ["Kestrel NPU", "alder", "Zebra", "Pallas One"]


def test_nothing_found_says_how_to_go_on(client: Client, field: dict[str, Repository]) -> None:
    page = Page(client.get(URL, {"q": "nobody"}))
    assert "No platform fits these filters" in page.text
    assert page.links.count(URL) == 2  # “Clear” and “Show all platforms”
    assert "0 platforms" in page.text


def test_htmx_gets_form_and_list_alone(client: Client, field: dict[str, Repository]) -> None:
    answer = client.get(URL, {"level": "4"}, headers={"HX-Request": "true", "HX-Target": "directory"})
    html = answer.content.decode().strip()
    assert html.startswith('<div id="directory">')
    assert html.endswith("</div>")
    assert "<h1" not in html
    assert answer.headers["Vary"].split(", ")[:2] == ["HX-Request", "HX-Target"]
    assert [row[0] for row in Page(_within_main(html)).tables[""]] == ["Kestrel NPU"]


def _within_main(html: str) -> Any:
    return type("Answer", (), {"content": f"<main>{html}</main>".encode()})()


@pytest.mark.parametrize(
    ("page", "first", "count"),
    [("1", "p-000", PAGE), ("2", "p-050", 3), ("99", "p-050", 3), ("0", "p-050", 3), ("x", "p-000", PAGE)],
)
def test_pages_keep_the_filters_and_an_unknown_number_is_the_last(
    client: Client, page: str, first: str, count: int
) -> None:
    listed({f"acme/p-{number:03}": 1 for number in range(PAGE + 3)})
    answer = client.get(URL, {"q": "p-", "sort": "name", "page": page})
    shown = [row[0] for row in Page(answer).tables[""]]
    assert (shown[0], len(shown)) == (first, count)
    other = 2 if first == "p-000" else 1
    href = f"?q=p-&amp;sort=name&amp;page={other}"
    assert f'href="{href}" hx-get="{href}" hx-target="#directory" hx-push-url="true"' in answer.content.decode()


# --- the header's search ----------------------------------------------------------------------------------------


def test_every_page_has_the_search_and_it_works_without_scripts(client: Client) -> None:
    for url in ("/", "/platforms/", "/decisions/", "/policy/", "/nothing"):
        html = client.get(url).content.decode()
        assert '<form class="search" role="search" action="/platforms/">' in html
    assert 'name="q" value="&quot;&gt;&lt;b&gt;"' in client.get(URL, {"q": '"><b>'}).content.decode()


@pytest.fixture
def event() -> None:
    acme = listed({"acme/torch": 2})["acme/torch"]
    dispatch(acme, pr_number=1234567, head_sha=SHA)
    job(acme, "success", event_type="nightly", head_sha="beef" * 10)


@pytest.mark.usefixtures("event")
@pytest.mark.parametrize(
    ("words", "places"),
    [
        ("#1234567", [("Pull request #1234567", "/pr/1234567/")]),
        ("1234567", [("Pull request #1234567", "/pr/1234567/")]),
        (" #1234567 ", [("Pull request #1234567", "/pr/1234567/")]),
        ("#7654321", []),
        (SHA, [("Commit c41d2e0f8a7b", f"/commit/{SHA}/")]),
        (SHA[:7].upper(), [("Commit c41d2e0", "/commit/c41d2e0/")]),
        ("beefbeef", [("Commit beefbeef", "/commit/beefbeef/")]),
        (SHA[:6], []),
        (SHA + "0", []),
        ("99999999999", []),
        ("#", []),
        ("", []),
    ],
)
def test_a_search_can_mean_a_pull_request_or_a_commit_that_is_known(
    client: Client, words: str, places: list[tuple[str, str]]
) -> None:
    assert elsewhere(words) == places
    for _text, href in places:
        assert client.get(href).status_code == 200


@pytest.mark.usefixtures("event")
def test_what_means_one_thing_leads_straight_there(client: Client) -> None:
    answer = client.get(URL, {"q": "#1234567"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/pr/1234567/")


@pytest.mark.usefixtures("event")
def test_what_a_platform_is_called_too_is_offered_above_the_list(client: Client) -> None:
    Platform.objects.update(name="Board 1234567")
    page = Page(client.get(URL, {"q": "1234567"}))
    assert "Pull request #1234567: what the hub sent on about it, and what came back." in page.text
    assert "/pr/1234567/" in page.links
    assert [row[0] for row in page.tables[""]] == ["Board 1234567"]


@pytest.mark.usefixtures("event")
def test_what_means_two_things_is_offered_as_two(client: Client) -> None:
    dispatch(Repository.objects.get(), pr_number=1, head_sha="1234567" + "0" * 33)
    answer = client.get(URL, {"q": "1234567"})
    assert answer.status_code == 200
    assert {"/pr/1234567/", "/commit/1234567/"} <= set(Page(answer).links)


@pytest.mark.usefixtures("event")
def test_the_list_s_own_filter_never_leaves_the_list(client: Client) -> None:
    answer = client.get(URL, {"q": "#1234567"}, headers={"HX-Request": "true", "HX-Target": "directory"})
    assert answer.status_code == 200
    assert 'href="/pr/1234567/"' in answer.content.decode()


@pytest.mark.parametrize("rows", [1, 3])
def test_a_filtered_page_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, rows: int, django_assert_num_queries: Any
) -> None:
    listed({f"acme/torch-{number}": 2 for number in range(rows)})
    with django_assert_num_queries(3):
        assert len(names(client, q="acme torch", level="2", kind="out_of_tree", sort="name")) == rows
