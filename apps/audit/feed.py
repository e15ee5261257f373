"""`/decisions/feed/`: the newest public decisions as Atom, for whoever follows them with a reader or a program."""

from typing import Any

from django.conf import settings
from django.contrib.syndication.views import Feed
from django.http import HttpRequest
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed

from apps.audit.forms import DecisionForm
from apps.audit.models import Event
from apps.audit.selectors import body_of, decisions_found
from apps.core.cursors import read_filters
from apps.core.permissions import Open
from apps.core.text import HIDDEN_IN_TEXT

ENTRIES = 50


class DecisionFeed(Feed):
    """The page's filters hold here too: `?about=&subject=&action=&actor=&since=&until=`. 400 names one that cannot be
    read: a reader that misses decisions must not go unnoticed."""

    access = Open.PUBLIC
    feed_type = Atom1Feed
    title = "AccelHub: decisions"

    def get_object(self, request: HttpRequest) -> tuple[DecisionForm, str]:
        form = DecisionForm(request.GET)
        read_filters(form)
        return form, request.GET.urlencode()

    def link(self, found: tuple[DecisionForm, str]) -> str:
        return _address(reverse("audit:decisions"), found[1])

    def feed_url(self, found: tuple[DecisionForm, str]) -> str:
        return _address(reverse("audit:feed"), found[1])

    def subtitle(self, found: tuple[DecisionForm, str]) -> str:
        return f"Decisions about accelerators of {settings.UPSTREAM_REPO}, each by whom and why"

    def items(self, found: tuple[DecisionForm, str]) -> list[tuple[Event, dict[str, Any]]]:
        return [(event, body_of(event)) for event in decisions_found(found[0].filters())[:ENTRIES]]

    def item_title(self, item: tuple[Event, dict[str, Any]]) -> str:
        return _xml(item[1]["summary"])

    def item_description(self, item: tuple[Event, dict[str, Any]]) -> str:
        return _xml(item[1]["reason"])

    def item_link(self, item: tuple[Event, dict[str, Any]]) -> str:
        return _address(reverse("audit:decision", args=[item[0].seq]))

    item_guid = item_link

    def item_author_name(self, item: tuple[Event, dict[str, Any]]) -> str:
        return _xml(item[0].actor_label)

    def item_categories(self, item: tuple[Event, dict[str, Any]]) -> list[str]:
        return [item[0].get_action_display()]

    def item_pubdate(self, item: tuple[Event, dict[str, Any]]) -> Any:
        return item[0].at

    item_updateddate = item_pubdate


def _address(path: str, query: str = "") -> str:
    return f"{settings.BASE_URL}{path}" + (f"?{query}" if query else "")


def _xml(text: str) -> str:
    """Text as XML can hold it, and as every reader sees it alike."""
    return HIDDEN_IN_TEXT.sub("\ufffd", text)
