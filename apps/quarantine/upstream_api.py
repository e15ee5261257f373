"""Upstream's own list of disabled tests, for programs."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.cursors import numbered, read_filters
from apps.core.permissions import Open
from apps.core.sheets import SheetView
from apps.quarantine import upstream_words
from apps.quarantine.forms import UpstreamFilterForm


class DisabledOut(serializers.Serializer[upstream_words.Disabled]):
    """A line of the list. `platforms` as upstream says them, none for all of its own; `here`: slugs of the in-tree
    platforms that are meant; `unknown`: words that nobody knows, with which the line is without effect."""

    test = serializers.CharField(source="line.said")
    issue = serializers.CharField(source="line.issue")
    url = serializers.CharField(source="line.url")
    platforms = serializers.ListField(source="line.words")
    here = serializers.ListField(source="reach.here")
    unknown = serializers.ListField(source="reach.unknown")


class UpstreamDisabledList(SheetView):
    """`GET /api/v1/upstream-disabled/?q=&unknown=&cursor=&limit=&format=`: upstream's list, by name. The filters are
    the page's.

    200 `{"next", "previous", "results": [...]}`, each as DisabledOut says. 400 `malformed` names the filter.
    """

    access = Open.PUBLIC
    columns = tuple(DisabledOut().fields)

    def get(self, request: Request) -> Response:
        form = UpstreamFilterForm(request.query_params)
        read_filters(form)
        known = upstream_words.known()
        found = upstream_words.found(form.given(), upstream_words.unknown_words(known))

        def rows(start: int, end: int) -> list[Any]:
            lines = upstream_words.read(list(found[start:end]), known)
            return [DisabledOut(line).data for line in lines]

        return Response(numbered(request, found.count(), rows))
