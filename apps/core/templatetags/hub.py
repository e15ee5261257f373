"""Template tags and filters of every page: how a state, a trust label, a time, a number and a hash are written.

A builtin of the template engine: no `{% load %}`. Markup patterns stand in templates/components/README.md.
"""

import datetime
import json
import math
from collections.abc import Mapping
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString

from apps.core.rendering import etag_of

register = template.Library()

# Tone → the shape it is drawn with, so that colour never speaks alone. The names are classes in static/css/hub.css.
TONES: dict[str, str] = {"good": "●", "warn": "▲", "bad": "■", "info": "◆", "quiet": "○"}

# Every state the hub shows: word → (tone, shape). A word that is not here is shown as it is, in the quiet tone.
STATUS: dict[str, tuple[str, str]] = {
    # what became of a job
    "success": ("good", "●"),
    "failure": ("bad", "■"),
    "timed_out": ("bad", "▲"),
    "cancelled": ("quiet", "⊘"),
    "unexpected": ("warn", "▲"),
    "contradicted": ("bad", "✕"),
    "superseded": ("quiet", "◇"),
    "unheard": ("quiet", "?"),
    "neutral": ("quiet", "○"),
    "informational": ("quiet", "○"),
    # where a job is
    "dispatched": ("info", "◔"),
    "in_progress": ("info", "◐"),
    "stuck": ("warn", "▲"),
    # dispatches
    "pending": ("quiet", "◔"),
    "sending": ("info", "◐"),
    "sent": ("info", "◆"),
    "given_up": ("bad", "■"),
    "refused": ("quiet", "⊘"),
    "kept": ("quiet", "○"),
    # deliveries
    "received": ("quiet", "◔"),
    "fanned_out": ("info", "◆"),
    "handled": ("info", "◆"),
    "intended": ("quiet", "◇"),
    "ignored": ("quiet", "⊘"),
    # proposals
    "waiting": ("info", "◔"),
    "returned": ("warn", "▲"),
    "accepted": ("good", "●"),
    "withdrawn": ("quiet", "⊘"),
    # decisions that wait for upstream's file, and pull requests
    "opening": ("info", "◐"),
    "opened": ("info", "◆"),
    "open": ("info", "◔"),
    "met_again": ("good", "●"),
    "demoted": ("bad", "■"),
    "lifted": ("quiet", "○"),
    "undone": ("good", "●"),
    "confirmed": ("bad", "■"),
    "merged": ("good", "●"),
    "closed": ("quiet", "⊘"),
    "failed": ("bad", "■"),
    # reports and their files
    "parsing": ("info", "◐"),
    "ready": ("good", "●"),
    "removed": ("quiet", "⊘"),
    "parsed": ("info", "◆"),
    "partial": ("warn", "▲"),
    "unread": ("quiet", "⊘"),
    # how a test ended
    "passed": ("good", "●"),
    "error": ("bad", "✕"),
    "lost": ("bad", "▲"),
    "xpassed": ("bad", "■"),
    "flaky": ("warn", "▲"),
    "skipped": ("quiet", "○"),
    "xfailed": ("info", "◇"),
    # appeals
    "paused": ("quiet", "◐"),
    "upheld": ("info", "◆"),
    "amended": ("warn", "▲"),
    "overturned": ("warn", "■"),
    # quarantines
    "proposed": ("info", "◔"),
    "in_force": ("warn", "▲"),
    "release_proposed": ("info", "◐"),
    "released": ("good", "●"),
    "expired": ("quiet", "⊘"),
    "vanished": ("quiet", "○"),
    "declined": ("quiet", "⊘"),
    "unclear": ("quiet", "?"),
    # verdicts
    "met": ("good", "●"),
    "not met": ("bad", "■"),
    "no result": ("quiet", "○"),
    "pass": ("good", "●"),
    "fail": ("bad", "■"),
    "unknown": ("quiet", "?"),
    # what a replay found
    "blocked": ("bad", "■"),
    "unanswered": ("quiet", "○"),
    # requirements of the gate
    "satisfied": ("good", "●"),
    "unsatisfied": ("bad", "■"),
    "quarantined": ("warn", "▲"),
    "overridden": ("warn", "▲"),
    "missing": ("quiet", "?"),
    "errored": ("bad", "✕"),
    "excluded": ("quiet", "○"),
    "ok": ("good", "●"),
    "broken": ("bad", "■"),
}

# How far a figure can be trusted: label → (tone, shape, what it means).
TRUST: dict[str, tuple[str, str, str]] = {
    "measured": ("good", "●", "The hub observed this itself, with its own clock and records."),
    "verified": ("good", "◆", "Identity: proven by a signed token. Conclusion: read from GitHub's own record."),
    "relay-verified": ("info", "◇", "The relay that passed it on had verified it; the hub has its word."),
    "corroborated": ("info", "◐", "Stated by the platform and consistent with the tests it uploaded."),
    "self-reported": ("quiet", "○", "Stated by the platform; the hub holds nothing that confirms or denies it."),
    "contradicted": ("bad", "✕", "Stated by the platform, and another record says otherwise."),
}

# The header's navigation: key of the context variable `nav`, URL name, text.
NAV: tuple[tuple[str, str, str], ...] = (
    ("overview", "public:overview", "Overview"),
    ("platforms", "public:platforms", "Platforms"),
    ("tests", "reports:tests", "Tests"),
    ("decisions", "audit:decisions", "Decisions"),
    ("policy", "public:policy", "Policy"),
)

NO_DATA = "no data"
MINUTE, HOUR, DAY = 60, 3_600, 86_400


# --- states and labels ------------------------------------------------------------------------------------------


def _chip(tone: str, shape: str, text: object) -> SafeString:
    return format_html(
        '<span class="chip {}"><span class="shape" aria-hidden="true">{}</span> {}</span>', tone, shape, text
    )


@register.simple_tag
def chip(tone: str, text: object) -> SafeString:
    """`{% chip "warn" "notice, 1 d left" %}`: any short remark, with its tone's own shape. Unknown tone: quiet."""
    tone = tone if tone in TONES else "quiet"
    return _chip(tone, TONES[tone], text)


@register.simple_tag
def status(word: object, text: object = None) -> SafeString:
    """`{% status job.state %}`: the one way a state is shown. `text` replaces the word, never the tone or shape."""
    if word is None or word == "":
        return _chip("quiet", TONES["quiet"], NO_DATA)
    key = str(word)
    if key not in STATUS:
        return _chip("quiet", TONES["quiet"], key if text is None else text)
    tone, shape = STATUS[key]
    return _chip(tone, shape, key.replace("_", " ") if text is None else text)


@register.simple_tag
def mark(word: object) -> SafeString:
    """`{% mark job.state %}`: a state's shape alone, in its colour, beside a text that says the word."""
    tone, shape = STATUS.get(str(word), ("quiet", TONES["quiet"]))
    return format_html('<span class="shape {}" aria-hidden="true">{}</span>', tone, shape)


@register.simple_tag
def trust(label: object) -> SafeString:
    """`{% trust "self-reported" %}`: text, shape and colour, with the meaning in the title. Unknown label: quiet."""
    key = NO_DATA if label is None or label == "" else str(label)
    tone, shape, meaning = TRUST.get(key, ("quiet", "○", ""))
    return format_html(
        '<span class="trust {}"{}><span class="shape" aria-hidden="true">{}</span> {}</span>',
        tone,
        format_html(' title="{}"', meaning) if meaning else "",
        shape,
        key,
    )


@register.inclusion_tag("components/trust_legend.html")
def trust_legend() -> dict[str, object]:
    """`{% trust_legend %}`: the table of trust labels, for the pages that explain them."""
    return {"labels": [(label, meaning) for label, (_tone, _shape, meaning) in TRUST.items()]}


@register.simple_tag
def level(code: object, name: object = "") -> SafeString:
    """`{% level "L3" "Stable" %}`: the level's code, its name in the title."""
    if code is None or code == "":
        return format_html('<span class="level none">{}</span>', "no level")
    if not name:
        return format_html('<span class="level">{}</span>', code)
    return format_html('<abbr class="level" title="{}">{}</abbr>', name, code)


# --- times ------------------------------------------------------------------------------------------------------


def _exact(value: datetime.datetime) -> str:
    return value.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _time(value: datetime.datetime, text: str, age: float | None = None) -> SafeString:
    """The text with its exact time; `age` in seconds lets static/js/hub.js go on counting."""
    machine = value.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    counted = "" if age is None else format_html(' data-age="{}"', int(age))
    return format_html('<time datetime="{}" title="{}"{}>{}</time>', machine, _exact(value), counted, text)


def _coarse(seconds: float) -> str:
    """One unit, cut off and never rounded up: what is 59 s old is not called a minute old."""
    if seconds < MINUTE:
        return f"{int(seconds)} s"
    if seconds < HOUR:
        return f"{int(seconds // MINUTE)} min"
    if seconds < 2 * DAY:
        return f"{int(seconds // HOUR)} h"
    return f"{int(seconds // DAY):,} d"


@register.simple_tag
def ago(value: datetime.datetime | None, now: datetime.datetime | None = None) -> SafeString:
    """`{% ago job.finished_at now %}`: relative, exact UTC in the title. Without a `now` the exact time is the text."""
    if not isinstance(value, datetime.datetime):
        return format_html('<span class="muted">{}</span>', "never")
    if not isinstance(now, datetime.datetime):
        return _time(value, _exact(value))
    seconds = (now - value).total_seconds()
    if seconds < 0:
        return _time(value, f"in {_coarse(-seconds)}")
    return _time(value, f"{_coarse(seconds)} ago", seconds)


@register.simple_tag
def data_age(as_of: datetime.datetime | None, now: datetime.datetime | None = None) -> SafeString:
    """`{% data_age as_of now %}`: how old the page's figures are."""
    if not isinstance(as_of, datetime.datetime):
        return format_html('<span class="age">{}</span>', "No data yet")
    if not isinstance(now, datetime.datetime):
        return format_html('<span class="age">Data as of {}</span>', _time(as_of, _exact(as_of)))
    seconds = max((now - as_of).total_seconds(), 0)
    return format_html('<span class="age">Data {} old</span>', _time(as_of, _coarse(seconds), seconds))


@register.filter
def utc(value: datetime.datetime | None) -> str:
    """`{{ when|utc }}` → 2026-11-30 14:51:05 UTC."""
    return _exact(value) if isinstance(value, datetime.datetime) else NO_DATA


@register.filter
def duration(value: object) -> str:
    """`{{ seconds|duration }}` → `1 h 12 min`, `40 s`, `350 ms`: at most two units, rounded to the smaller one."""
    if isinstance(value, datetime.timedelta):
        value = value.total_seconds()
    number = _number(value)
    if number is None:
        return NO_DATA
    sign, seconds = "−" if number < 0 else "", abs(number)
    if 0 < seconds < 1:
        milliseconds = round(seconds * 1000)
        return "< 1 ms" if not milliseconds else f"{sign}{milliseconds} ms" if milliseconds < 1000 else f"{sign}1 s"
    for unit, step, above in ((1, MINUTE, HOUR), (MINUTE, HOUR, DAY), (HOUR, DAY, math.inf)):
        total = round(seconds / unit) * unit
        if total < above:
            large, small = divmod(total, step)
            parts = [f"{large:,} {_UNITS[step]}" if large else "", f"{small // unit} {_UNITS[unit]}" if small else ""]
            return sign + (" ".join(filter(None, parts)) or "0 s")
    raise AssertionError("the last step has no upper end")  # pragma: no cover


_UNITS = {1: "s", MINUTE: "min", HOUR: "h", DAY: "d"}


# --- numbers ----------------------------------------------------------------------------------------------------


def _number(value: object) -> float | None:
    """The value as a finite float, or None: text, nothing, and not-a-number are no data."""
    if value is None or isinstance(value, (bool, str)):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


@register.filter
def grouped(value: object) -> str:
    """`{{ n|grouped }}` → 12,345."""
    if _number(value) is None:
        return NO_DATA
    return f"{value:,}".replace("-", "−")


@register.filter
def percent(value: object) -> str:
    """`{{ rate|percent }}`: a share from 0 to 1, one decimal: `98.7 %`. Says 0 % and 100 % only of none and all."""
    share = _number(value)
    if share is None:
        return NO_DATA
    if 0 < share < 0.0005:
        return "< 0.1 %"
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    return f"{round(share * 100, 1) + 0.0:.1f} %".replace("-", "−")


# --- words, hashes and the page around --------------------------------------------------------------------------


@register.filter
def ticks(value: object) -> SafeString:
    """`{{ row.next_step|ticks }}`: words between backticks as code; everything else escaped."""
    parts = str(value).split("`")
    if len(parts) % 2 == 0:  # an odd tick has no partner: leave all of them alone
        return conditional_escape(str(value))
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", p) if i % 2 else p,) for i, p in enumerate(parts))
    )


@register.filter
def short(value: object, length: int = 7) -> str:
    """`{{ sha|short }}` → its first seven characters."""
    return NO_DATA if value is None or value == "" else str(value)[:length]


@register.simple_tag(name="hash")
def hash_tag(value: object, length: int = 7, href: str = "") -> SafeString:
    """`{% hash job.head_sha %}`: the short form, the whole one in the title; a link when `href` is given."""
    if value is None or value == "":
        return format_html('<span class="muted">{}</span>', NO_DATA)
    code = format_html('<code class="hash" title="{}">{}</code>', value, short(value, length))
    return format_html('<a href="{}">{}</a>', href, code) if href else code


@register.inclusion_tag("components/nav.html", takes_context=True)
def main_nav(context: Mapping[str, Any]) -> dict[str, object]:
    """The header's links. `nav` in the context names the current one; otherwise the address does.

    `console_url` in the context adds the link to the console: set it only for those who have something there.
    `operations_url` in the context adds the link to the staff's rooms: set it only for those who may enter one;
    `operations_paths` are these rooms' addresses, on which it is the current one.
    `rejections_url` in the context adds the link to rejected callbacks: set it only for those who may see some.
    """
    items = [(key, reverse(name), text) for key, name, text in NAV]
    if console := context.get("console_url"):
        items.append(("console", str(console), "Console"))
    if operations := context.get("operations_url"):
        items.append(("operations", str(operations), "Operations"))
    if rejections := context.get("rejections_url"):
        items.append(("rejections", str(rejections), "Rejected callbacks"))
    path = getattr(context.get("request"), "path", "")
    places = [(href, key) for key, href, _text in items]
    places += [(str(room), "operations") for room in context.get("operations_paths", ())]
    above = [place for place in places if path == place[0] or (place[0] != "/" and path.startswith(place[0]))]
    nearest = max(above, key=lambda place: len(place[0]), default=("", None))[1]
    wanted = context.get("nav")
    return {
        "items": [
            {
                "href": href,
                "text": text,
                "current": ("page" if path == href else "true") if key == (wanted or nearest) else "",
            }
            for key, href, text in items
        ]
    }


# --- parts that ask again ---------------------------------------------------------------------------------------


@register.simple_tag(takes_context=True)
def live(context: Mapping[str, Any], part: str) -> SafeString:
    """`<div {% live "jobs" %}>` as the outermost element of `{% partialdef jobs inline %}`, on a page whose view is
    `@live`: the part asks again while its tab is seen, and is swapped only when something changed."""
    request = context["request"]
    headers = json.dumps({"If-None-Match": etag_of(request, part)})
    return format_html(
        'id="{}" hx-get="{}" hx-trigger="every 20s, visibilitychange from:document" hx-target="this"'
        ' hx-swap="outerHTML" hx-headers="{}"',
        part,
        request.get_full_path(),
        headers,
    )
