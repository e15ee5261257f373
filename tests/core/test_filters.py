"""Filters of lists: what can be read narrows, what cannot is said and narrows nothing."""

import datetime

from django.http import QueryDict
from django.template.loader import render_to_string
from django.test import RequestFactory

from apps.core.filters import FilterForm, day_field, search_field, sort_field


class _Filters(FilterForm):
    q = search_field("Name")
    since = day_field("From")
    sort = sort_field("name", "count")


def test_what_was_given_and_could_be_read_is_there() -> None:
    assert _Filters(QueryDict("q=+acme+&since=2026-11-30&sort=-count&other=1")).given() == {
        "q": "acme",
        "since": datetime.date(2026, 11, 30),
        "sort": "-count",
    }
    assert _Filters(QueryDict("")).given() == {}


def test_what_cannot_be_read_is_said_at_its_field_and_left_out() -> None:
    form = _Filters(QueryDict("q=a%00b&since=2026-13-40&sort=colour"))
    assert form.given() == {}
    assert form.errors == {
        "q": ["Null characters are not allowed."],
        "since": ["Write a day as 2026-11-30."],
        "sort": ["Select a valid choice. colour is not one of the available choices."],
    }
    assert _Filters(QueryDict("q=" + "x" * 101)).given() == {}


def test_an_order_alone_narrows_nothing() -> None:
    queries = ("", "sort=name", "q=", "q=a", "since=x")
    assert [_Filters(QueryDict(query)).is_narrowed for query in queries] == [False, False, False, True, True]


def test_the_form_works_without_scripts_and_keeps_the_order() -> None:
    request = RequestFactory().get("/list/?q=a&sort=name")
    form = _Filters(request.GET)
    html = render_to_string(
        "components/filters.html", {"form": form, "target": "list", "label": "Filter"}, request=request
    )
    assert 'action="/list/"' in html
    assert 'hx-get="/list/" hx-target="#list" hx-push-url="true"' in html
    assert '<input type="hidden" name="sort" value="name" id="id_sort">' in html
    assert 'name="q" value="a"' in html
    assert '<button class="btn">Filter</button>' in html
    assert '<a href="/list/" hx-get="/list/"' in html
    assert "Clear" not in render_to_string(
        "components/filters.html", {"form": _Filters(QueryDict(""))}, request=request
    )
