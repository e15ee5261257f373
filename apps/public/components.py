"""Every component in every state on one page: where a change of the stylesheet is looked at before it is shipped.

All names and figures here are invented; nothing is read from the database.
"""

import datetime
from typing import Any

from django import forms
from django.contrib.messages import constants
from django.contrib.messages.storage.base import Message
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse

from apps.core.access import requires
from apps.core.charts import Day, Part, Point
from apps.core.clock import now
from apps.core.filters import FilterForm, day_field, search_field, sort_field
from apps.core.permissions import Permission
from apps.core.rendering import live, render_page
from apps.core.templatetags.hub import STATUS, TONES, TRUST
from apps.platforms.policy import LEVELS, consequences

HOSTILE = "<script>alert(1)</script> " + "averyveryverylongwordwithoutanybreak" * 3
SHA = "c41d2e0f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d"


class SampleForm(forms.Form):
    """One of each kind of field."""

    name = forms.CharField(help_text="What people call it.")
    contact = forms.EmailField(required=False)
    level = forms.ChoiceField(choices=[(level.code, f"{level.code} {level.name}") for level in LEVELS])
    kind = forms.ChoiceField(
        widget=forms.RadioSelect, choices=[("in", "in tree"), ("out", "out of tree")], help_text="Where its code lives."
    )
    reason = forms.CharField(widget=forms.Textarea(attrs={"rows": 3}), help_text="Becomes part of the public log.")
    evidence = forms.FileField(required=False)
    sure = forms.BooleanField(label="I have read what will change")


class SampleFilters(FilterForm):
    """A list's filters."""

    q = search_field("Name or repository")
    level = forms.ChoiceField(
        required=False, choices=[("", "Any level"), *((level.code, level.code) for level in LEVELS)]
    )
    since = day_field("From")
    sort = sort_field("name", "count")


def _never(request: HttpRequest) -> object:
    """Nothing here changes: its live part is answered 304 each time."""
    return "components"


@requires(Permission.COMPONENT_VIEW)
@live(_never)
def components(request: HttpRequest) -> HttpResponse:
    """`/staff/components/`: for who changes how the hub looks: every component in every state."""
    moment = now()
    return render_page(request, "public/components.html", _words(moment) | _charts(moment.date()) | _forms(request))


def _words(moment: datetime.datetime) -> dict[str, Any]:
    """States, labels, times and numbers."""
    ages = (0, 59, 60, 3_599, 37 * 3_600, 400 * 86_400)
    return {
        "now": moment,
        "as_of": moment - datetime.timedelta(seconds=40),
        "statuses": [*STATUS, "some new word", ""],
        "tones": list(TONES),
        "trusts": [*TRUST, "unheard of", None],
        "levels": LEVELS,
        "times": [
            None,
            *(moment - datetime.timedelta(seconds=age) for age in ages),
            moment + datetime.timedelta(hours=3),
        ],
        "durations": [None, 0, 0.35, 40, 250, 4_320, 187_200, 103_680_000],
        "counts": [None, 0, 7, 12_345, 123_456_789],
        "shares": [None, 0, 0.0004, 0.987, 0.9996, 1],
        "sha": SHA,
        "hostile": HOSTILE,
        "changes": consequences(2, 3),
        "messages": [
            Message(level, text)
            for level, text in (
                (constants.SUCCESS, "acme/torch is at L2 now."),
                (constants.INFO, "The import goes on in the background."),
                (constants.WARNING, "Two entries were left out."),
                (constants.ERROR, "GitHub did not answer; it is asked again."),
            )
        ],
    }


def _charts(today: datetime.date) -> dict[str, Any]:
    """Each drawing with something, with gaps, with one point, with nothing and with extremes."""
    days = [today - datetime.timedelta(days=29 - place) for place in range(30)]
    tones = ["good", "good", "warn", "good", "good", "quiet", "info", "good", "bad", "bad"] * 3
    mixed = [
        Day(day, tone, "no data" if tone == "quiet" else f"{place + 3} of {place + 4} ended as success")
        for place, (day, tone) in enumerate(zip(days, tones, strict=True))
    ]
    falling = [1_284 - place * 9 + (40 if place == 12 else 0) for place in range(30)]
    parts = [
        Part("passed", 403_395, "good"),
        Part("failed", 1_822, "bad"),
        Part("declared limits", 85_560, "info"),
        Part("not for this device", 55_008, "quiet"),
        Part("unexplained skips", 48_902, "warn"),
    ]
    return {
        "strips": {
            "a month": mixed,
            "one day": mixed[:1],
            "no data": [Day(day, "quiet", "no data") for day in days],
            "every tone": [Day(day, tone, tone) for day, tone in zip(days, TONES, strict=False)],
            "nothing": [],
        },
        "strip_rows": [("Kestrel NPU", mixed), ("Pallas One", mixed[::-1])],
        "lines": {
            "with gaps": [4, 5, None, None, 7, 6, None, 9, 8.5, 8, 4, 3],
            "flat": [5] * 12,
            "one value": [22],
            "alone between gaps": [None, 3, None, 5, None, 4],
            "extreme": [1e-9, 1e300, -1e300, 0],
            "nothing": [],
        },
        "bars": {
            "a report": parts,
            "one part": parts[:1],
            "one in a million": [Part("passed", 999_999, "good"), Part("failed", 1, "bad")],
            "a part without data": [Part("passed", 12, "good"), Part("failed", None, "bad")],
            "all zero": [Part("passed", 0, "good"), Part("failed", 0, "bad")],
            "nothing": [],
        },
        "burns": {
            "a month with gaps": [
                Point(day, None if place in (7, 8, 20) else left)
                for place, (day, left) in enumerate(zip(days, falling, strict=True))
            ],
            "one point": [Point(today, 1_043)],
            "done": [Point(days[0], 12), Point(days[15], 0), Point(today, 0)],
            "nothing": [],
        },
    }


def _forms(request: HttpRequest) -> dict[str, Any]:
    """Forms and lists, empty and with what people send."""
    broken = SampleForm({"contact": "nobody", "level": "L9", "reason": ""}, auto_id="broken_%s")
    broken.add_error(None, "The level changed while you were reading: look at it again, then decide.")
    filters = SampleFilters(request.GET or {"since": "2026-13-40"}, auto_id="filters_%s")
    filters.is_valid()
    return {
        "fresh_form": SampleForm(auto_id="fresh_%s"),
        "broken_form": broken,
        "filter_form": filters,
        "sort": filters.data.get("sort", "-count"),
        "page": Paginator(range(130), 50).get_page(request.GET.get("page", 2)),
    }
