"""Tags, filters and includes by the exact markup they give; every template for what the content policy refuses."""

import datetime
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django import forms
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.template import engines
from django.template.loader import get_template, render_to_string
from django.test import RequestFactory

from apps.core.errors import CODES, Problem
from apps.core.rendering import etag_of
from apps.core.templatetags.hub import NAV, STATUS, TONES, TRUST

TEMPLATES = Path(settings.BASE_DIR) / "templates"
NOW = datetime.datetime(2026, 11, 30, 14, 51, 5, tzinfo=datetime.UTC)
HOSTILE = '<script>alert("1")</script>'
ESCAPED = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;"


def render(source: str, **context: Any) -> str:
    return engines["django"].from_string(source).render({"now": NOW, **context})


def squeezed(html: str) -> str:
    """The markup without the white space between its tags."""
    return re.sub(r"\s+", " ", re.sub(r">\s+<", "><", html)).strip()


def chip(tone: str, shape: str, text: str) -> str:
    return f'<span class="chip {tone}"><span class="shape" aria-hidden="true">{shape}</span> {text}</span>'


# --- states and labels ------------------------------------------------------------------------------------------

WORDS = {
    "success", "failure", "timed_out", "cancelled", "unexpected", "contradicted", "superseded", "neutral", "unheard",
    "informational",
    "in_progress", "dispatched", "stuck", "pending", "sending", "sent", "given_up", "received", "fanned_out",
    "handled", "ignored", "intended", "refused", "kept",
    "waiting", "returned", "accepted", "withdrawn",
    "opening", "opened", "open", "merged", "closed", "failed",
    "parsing", "ready", "removed", "parsed", "partial", "unread",
    "passed", "error", "lost", "xpassed", "flaky", "skipped", "xfailed",
    "proposed", "in_force", "release_proposed", "released", "expired", "vanished", "declined", "unclear",
    "met", "not met", "no result", "ok", "broken", "pass", "fail", "unknown",
    "paused", "amended", "overturned", "upheld", "blocked", "unanswered",
    "met_again", "demoted", "lifted", "undone", "confirmed",
    "satisfied", "unsatisfied", "quarantined", "overridden", "missing", "errored", "excluded",
}  # fmt: skip


def test_the_status_table_names_every_state_with_a_known_tone() -> None:
    assert set(STATUS) == WORDS
    assert {tone for tone, _shape in STATUS.values()} == set(TONES)
    good = {"success", "accepted", "merged", "ready", "passed", "released", "met", "ok", "pass", "satisfied"}
    good |= {"met_again", "undone"}
    assert {word for word, (tone, _shape) in STATUS.items() if tone == "good"} == good


def test_one_shape_never_has_two_meanings_within_the_buckets() -> None:
    """Printed in grey, what went wrong still differs from what went well and from what is unknown."""
    shapes = {tone: {shape for toned, shape in STATUS.values() if toned == tone} for tone in TONES}
    assert not shapes["good"] & (shapes["bad"] | shapes["warn"] | shapes["quiet"] | shapes["info"])
    assert not shapes["bad"] & (shapes["quiet"] | shapes["info"])


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ('{% status "failure" %}', chip("bad", "■", "failure")),
        ('{% status "timed_out" %}', chip("bad", "▲", "timed out")),
        ('{% status "success" "98.7 %" %}', chip("good", "●", "98.7 %")),
        ('{% status "some_new_word" %}', chip("quiet", "○", "some_new_word")),
        ("{% status None %}", chip("quiet", "○", "no data")),
        ("{% status nothing %}", chip("quiet", "○", "no data")),
        ("{% status hostile %}", chip("quiet", "○", ESCAPED)),
        ('{% status "success" hostile %}', chip("good", "●", ESCAPED)),
        ('{% chip "warn" "notice" %}', chip("warn", "▲", "notice")),
        ("{% chip hostile hostile %}", chip("quiet", "○", ESCAPED)),
        ('{% mark "in_progress" %}', '<span class="shape info" aria-hidden="true">◐</span>'),
        ("{% mark hostile %}", '<span class="shape quiet" aria-hidden="true">○</span>'),
    ],
)
def test_status(source: str, html: str) -> None:
    assert render(source, hostile=HOSTILE) == html


def test_the_trust_table_has_the_five_labels_and_explains_each() -> None:
    assert list(TRUST) == [
        *("measured", "verified", "relay-verified", "corroborated", "self-reported", "contradicted"),
    ]
    assert len({(tone, shape) for tone, shape, _meaning in TRUST.values()}) == 6
    assert all(meaning.endswith(".") for _tone, _shape, meaning in TRUST.values())


@pytest.mark.parametrize("label", TRUST)
def test_trust(label: str) -> None:
    tone, shape, meaning = TRUST[label]
    title = meaning.replace("'", "&#x27;")
    mark = f'<span class="shape" aria-hidden="true">{shape}</span>'
    assert (
        render("{% trust label %}", label=label) == f'<span class="trust {tone}" title="{title}">{mark} {label}</span>'
    )


@pytest.mark.parametrize(("label", "text"), [(HOSTILE, ESCAPED), (None, "no data"), ("", "no data")])
def test_an_unknown_trust_label_is_quiet(label: str | None, text: str) -> None:
    mark = '<span class="shape" aria-hidden="true">○</span>'
    assert render("{% trust label %}", label=label) == f'<span class="trust quiet">{mark} {text}</span>'


def test_the_trust_legend_prints_the_table() -> None:
    html = render("{% trust_legend %}")
    assert [part.split("</dd>")[0] for part in html.split("<dd>")[1:]] == [
        meaning.replace("'", "&#x27;") for _tone, _shape, meaning in TRUST.values()
    ]


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ('{% level "L3" "Stable" %}', '<abbr class="level" title="Stable">L3</abbr>'),
        ('{% level "L3" %}', '<span class="level">L3</span>'),
        ("{% level None %}", '<span class="level none">no level</span>'),
        ("{% level hostile hostile %}", f'<abbr class="level" title="{ESCAPED}">{ESCAPED}</abbr>'),
    ],
)
def test_level(source: str, html: str) -> None:
    assert render(source, hostile=HOSTILE) == html


# --- times, numbers, hashes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s ago"),
        (59.9, "59 s ago"),
        (60, "1 min ago"),
        (3599, "59 min ago"),
        (3600, "1 h ago"),
        (37 * 3600, "37 h ago"),
        (48 * 3600, "2 d ago"),
        (1000 * 86400, "1,000 d ago"),
        (-300, "in 5 min"),
    ],
)
def test_ago(seconds: float, text: str) -> None:
    assert f">{text}</time>" in render("{% ago value now %}", value=NOW - datetime.timedelta(seconds=seconds))


def test_ago_carries_the_exact_time_in_utc() -> None:
    value = NOW.astimezone(datetime.timezone(datetime.timedelta(hours=9))) - datetime.timedelta(minutes=2)
    stamps = 'datetime="2026-11-30T14:49:05Z" title="2026-11-30 14:49:05 UTC"'
    assert render("{% ago value now %}", value=value) == f'<time {stamps} data-age="120">2 min ago</time>'
    assert render("{% ago value missing %}", value=value) == f"<time {stamps}>2026-11-30 14:49:05 UTC</time>"
    assert render("{% ago None now %}") == '<span class="muted">never</span>'
    assert render("{{ value|utc }} {{ None|utc }}", value=value) == "2026-11-30 14:49:05 UTC no data"


def test_data_age() -> None:
    stamps = '<time datetime="2026-11-30T14:51:05Z" title="2026-11-30 14:51:05 UTC">'
    later = NOW + datetime.timedelta(seconds=40)
    assert render("{% data_age as_of later %}", as_of=NOW, later=later) == (
        f'<span class="age">Data {stamps[:-1]} data-age="40">40 s</time> old</span>'
    )
    assert render("{% data_age as_of missing %}", as_of=NOW) == (
        f'<span class="age">Data as of {stamps}2026-11-30 14:51:05 UTC</time></span>'
    )
    assert render("{% data_age None now %}") == '<span class="age">No data yet</span>'
    assert "Data" in render("{% data_age as_of earlier %}", as_of=NOW, earlier=NOW - datetime.timedelta(seconds=1))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "no data"),
        ("", "no data"),
        (float("nan"), "no data"),
        (object(), "no data"),
        (0, "0 s"),
        (0.0001, "&lt; 1 ms"),
        (0.35, "350 ms"),
        (0.9999, "1 s"),
        (40, "40 s"),
        (Decimal("59.7"), "1 min"),
        (250, "4 min 10 s"),
        (3599.6, "1 h"),
        (4320, "1 h 12 min"),
        (86399, "1 d"),
        (2 * 86400 + 3 * 3600, "2 d 3 h"),
        (datetime.timedelta(days=1200), "1,200 d"),
        (-40, "−40 s"),
    ],
)
def test_duration(value: object, text: str) -> None:
    assert render("{{ value|duration }}", value=value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "no data"), ("12", "no data"), (0, "0"), (12345, "12,345"), (-1234, "−1,234")]
)
def test_grouped(value: object, text: str) -> None:
    assert render("{{ value|grouped }}", value=value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "no data"),
        (float("inf"), "no data"),
        (0, "0.0 %"),
        (0.0004, "&lt; 0.1 %"),
        (0.987, "98.7 %"),
        (Decimal("0.5"), "50.0 %"),
        (0.9996, "&gt; 99.9 %"),
        (1, "100.0 %"),
        (-0.021, "−2.1 %"),
        (-0.0001, "0.0 %"),
    ],
)
def test_percent_says_none_and_all_only_of_none_and_all(value: object, text: str) -> None:
    assert render("{{ value|percent }}", value=value) == text


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("{{ sha|short }}", "c41d2e0"),
        ("{{ sha|short:12 }}", "c41d2e0f8a7b"),
        ("{{ None|short }}", "no data"),
        ("{% hash sha %}", '<code class="hash" title="c41d2e0f8a7b6c5d">c41d2e0</code>'),
        ('{% hash sha 4 "/x" %}', '<a href="/x"><code class="hash" title="c41d2e0f8a7b6c5d">c41d</code></a>'),
        ("{% hash None %}", '<span class="muted">no data</span>'),
        ("{% hash hostile 8 %}", f'<code class="hash" title="{ESCAPED}">&lt;script&gt;</code>'),
        ('{{ "send `a` < `b`"|ticks }}', "send <code>a</code> &lt; <code>b</code>"),
        ("{{ one_tick|ticks }}", "one ` tick &lt;"),
        ("{{ hostile|ticks }}", ESCAPED),
    ],
)
def test_hashes_and_code_words(source: str, html: str) -> None:
    assert render(source, sha="c41d2e0f8a7b6c5d", one_tick="one ` tick <", hostile=HOSTILE) == html


def test_a_live_part_asks_again_with_the_tag_of_what_it_shows() -> None:
    request = RequestFactory().get("/list/?a=1&b=2")
    request.user = AnonymousUser()
    request.live_version = "7"  # type: ignore[attr-defined]
    tag = etag_of(request, "jobs").replace('"', "\\&quot;")
    assert render('{% live "jobs" %}', request=request) == (
        'id="jobs" hx-get="/list/?a=1&amp;b=2" hx-trigger="every 20s, visibilitychange from:document" hx-target="this"'
        f' hx-swap="outerHTML" hx-headers="{{&quot;If-None-Match&quot;: &quot;{tag}&quot;}}"'
    )


@pytest.mark.parametrize(
    ("sort", "href", "attributes"),
    [
        ("", "?q=a+b&amp;sort=-count", ""),
        ("name", "?q=a+b&amp;sort=-count", ""),
        ("count", "?q=a+b&amp;sort=-count", ' aria-sort="ascending"'),
        ("-count", "?q=a+b&amp;sort=count", ' aria-sort="descending"'),
    ],
)
def test_a_head_that_sorts_turns_round_and_keeps_the_filters(sort: str, href: str, attributes: str) -> None:
    request = RequestFactory().get("/list/?q=a+b&sort=x&page=7")
    source = '{% sort_head "count" "Count" "list" sort "num" descends=True %}'
    assert render(source, request=request, sort=sort).strip() == (
        f'<th scope="col" class="num"{attributes}>'
        f'<a href="{href}" hx-get="{href}" hx-target="#list" hx-push-url="true">Count</a></th>'
    )
    plain = render('{% sort_head "name" "Name" "list" sort %}', request=request, sort="").strip()
    assert plain.startswith('<th scope="col"><a href="?q=a+b&amp;sort=name"')


# --- includes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "html"),
    [
        (
            '{% include "components/empty.html" with title="Jobs" text="Send one." href="/x" action="How" only %}',
            '<div class="empty"><b>Jobs</b><p>Send one.</p><a class="btn" href="/x">How</a></div>',
        ),
        (
            '{% include "components/section_head.html" with title="Jobs" id="jobs" note="7 days" only %}',
            '<div class="sect"><h2 id="jobs">Jobs</h2><span class="note dots"><span>7 days</span></span></div>',
        ),
        (
            '{% include "components/page_head.html" with title="Jobs" only %}',
            '<div class="head"><div class="head-text"><h1>Jobs</h1></div></div>',
        ),
        (
            '{% include "components/tile.html" with value=None label="platforms" only %}',
            '<div class="tile"><span class="v none">no data</span><span class="l">platforms</span></div>',
        ),
        (
            '{% include "components/tile.html" with value="12" label="platforms" href="/x" only %}',
            '<a class="tile" href="/x"><span class="v">12</span><span class="l">platforms</span></a>',
        ),
        (
            '{% include "components/banner.html" with tone="bad" title="Broken" only %}',
            '<div class="banner bad"><h2><span class="shape" aria-hidden="true">■</span> Broken</h2></div>',
        ),
        (
            '{% include "components/figure.html" with value=None|percent tone="good" rows=0 only %}',
            f'<div class="figure">{chip("quiet", "○", "no data")}<div class="sub dots"><span>0 jobs</span></div></div>',
        ),
        (
            '{% include "components/pages.html" with next_url="?page=2" target="log" only %}',
            '<nav class="pages" aria-label="Pages"><span class="of"></span>'
            '<a class="btn small" rel="next" href="?page=2" hx-get="?page=2" hx-target="#log" hx-push-url="true">'
            "Older →</a></nav>",
        ),
        ('{% include "components/pages.html" only %}', ""),
    ],
)
def test_includes(source: str, html: str) -> None:
    assert re.sub(r"{#.*?#}", "", squeezed(render(source))) == html


def test_facts_escape_and_name_what_is_missing() -> None:
    html = squeezed(render('{% include "components/facts.html" %}', facts=[("Device", HOSTILE), ("Driver", None)]))
    assert html == (
        f'<dl class="facts"><div><dt>Device</dt><dd>{ESCAPED}</dd></div>'
        '<div><dt>Driver</dt><dd><span class="muted">no data</span></dd></div></dl>'
    )


class _Form(forms.Form):
    reason = forms.CharField(help_text="Public.")
    note = forms.CharField(required=False)
    sure = forms.BooleanField()
    kind = forms.ChoiceField(widget=forms.RadioSelect, choices=[("a", "A")])
    token = forms.CharField(widget=forms.HiddenInput)


def test_a_field_points_at_its_help_and_its_errors() -> None:
    form = _Form({})
    source = '{% for field in form %}{% include "components/field.html" %}{% endfor %}'
    html = render(source, form=form)
    described = {target for value in re.findall(r'aria-describedby="([^"]+)"', html) for target in value.split()}
    assert described == {"id_reason_helptext", "id_reason_error", "id_sure_error", "id_kind_error"}
    assert described <= set(re.findall(r'\bid="([^"]+)"', html))
    assert html.count("(optional)") == 1
    assert re.search(r'<label for="id_token"', html) is None


def test_errors_of_a_form_as_a_whole() -> None:
    form = _Form({"token": "x"})
    form.add_error(None, HOSTILE)
    assert squeezed(render('{% include "components/form_errors.html" %}', form=form)) == (
        f'<div class="banner bad" role="alert"><p><span class="shape" aria-hidden="true">■</span> {ESCAPED}</p></div>'
    )


# --- pages ------------------------------------------------------------------------------------------------------


def page(template: str, path: str = "/", **context: Any) -> str:
    request = RequestFactory().get(path)
    request.user = AnonymousUser()
    request.session = {}  # type: ignore[assignment]
    return render_to_string(template, {"messages": [], **context}, request=request)


def test_the_header_marks_where_one_is() -> None:
    def current(path: str, **context: Any) -> list[tuple[str, str]]:
        html = page("base.html", path, **context)
        return re.findall(r'aria-current="(\w+)">([^<]+)<', html)

    assert current("/") == [("page", "Overview")]
    assert current("/policy/") == [("page", "Policy")]
    assert current("/decisions/7/") == [("true", "Decisions")]
    assert current("/elsewhere") == []
    assert current("/elsewhere", nav="platforms") == [("true", "Platforms")]
    assert current("/rejections/", rejections_url="/rejections/") == [("page", "Rejected callbacks")]
    assert "Rejected callbacks" not in page("base.html")
    assert [key for key, _name, _text in NAV] == ["overview", "platforms", "tests", "decisions", "policy"]


def test_search_ribbon_and_age_appear_only_when_given() -> None:
    bare = page("base.html", DEMO=False, search_url="")
    assert 'type="search"' not in bare
    assert "Demo: fictional platforms" not in bare
    assert 'class="age"' not in bare
    full = page("base.html", DEMO=True, search_url="/platforms/", search_query=HOSTILE, as_of=NOW, now=NOW)
    assert f'value="{ESCAPED}"' in full
    assert "Demo: fictional platforms" in full
    assert '<span class="age">Data <time' in full


@pytest.mark.parametrize("code", CODES)
def test_every_refusal_has_its_page(code: str) -> None:
    html = page("errors/problem.html", "/x", problem=Problem(code, HOSTILE))
    assert ESCAPED in html
    assert HOSTILE not in html
    assert f'href="/docs/errors/{code}"' in html
    assert "Rules and their sources" in html
    assert page("errors/code.html", code=code, row=CODES[code], codes=CODES).count("/docs/errors/") == len(CODES)


def test_the_page_of_a_failed_hub_asks_for_no_user() -> None:
    class Unreadable:
        @property
        def is_authenticated(self) -> bool:
            raise AssertionError("the session was read")

    assert "The hub failed" in page("errors/problem.html", user=Unreadable(), problem=Problem("internal", "Sorry."))


def test_login_offers_demo_accounts_only_in_a_demo() -> None:
    accounts = [{"username": "maintainer", "password": "for-the-demo", "role": "Maintainer"}]
    context: dict[str, Any] = {"form": _Form(), "next": "/policy/", "demo_accounts": accounts}
    context |= {"is_local_offered": True}
    html = page("accounts/login.html", DEMO=True, **context)
    assert '<input type="hidden" name="password" value="for-the-demo">' in html
    assert html.count('name="csrfmiddlewaretoken"') == html.count('<form method="post"') + 1 == 2
    assert "for-the-demo" not in page("accounts/login.html", DEMO=False, **context)


# --- every template and the stylesheet --------------------------------------------------------------------------

ALL = sorted(path.relative_to(TEMPLATES).as_posix() for path in TEMPLATES.rglob("*.html"))
REFUSED = {
    "a style attribute": r"\sstyle\s*=",
    "a style element": r"<style\b",
    "an event handler": r"\son[a-z]+\s*=",
    "an htmx handler": r"\shx-on\b|\bjs:",
    "an inline script": r"<script(?![^>]*\ssrc=)[^>]*>",
    "a javascript address": r"javascript:",
    "something from another host": r"""(?:src|action)\s*=\s*["'](?:https?:)?//""",
}


@pytest.mark.parametrize("name", ALL)
def test_every_template_compiles_and_keeps_to_the_content_policy(name: str) -> None:
    get_template(name)
    text = (TEMPLATES / name).read_text()
    assert {what for what, pattern in REFUSED.items() if re.search(pattern, text, re.IGNORECASE)} == set()


CSS = (Path(settings.BASE_DIR) / "static/css/hub.css").read_text()
TOKENS = {name: pair for name, *pair in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", CSS)}
PAPERS = ("paper", "paper-2", "paper-3")
SOFTS = ("good-soft", "warn-soft", "bad-soft", "info-soft", "accent-soft")


def _contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _pairs() -> list[tuple[str, str, float]]:
    text = [(ink, ground) for ink in ("ink", "ink-2", "link") for ground in PAPERS + SOFTS]
    text += [
        (tone, ground) for tone in ("good", "warn", "bad", "info", "accent") for ground in (*PAPERS, f"{tone}-soft")
    ]
    text += [("on-accent", "accent")]
    drawn = [("edge", ground) for ground in PAPERS] + [("focus", ground) for ground in PAPERS + SOFTS]
    return [(*pair, 4.5) for pair in text] + [(*pair, 3.0) for pair in drawn]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_pair_of_colours_has_enough_contrast(scheme: str) -> None:
    side = ["light", "dark"].index(scheme)
    weak = {
        (front, ground): round(_contrast(TOKENS[front][side], TOKENS[ground][side]), 2)
        for front, ground, least in _pairs()
        if _contrast(TOKENS[front][side], TOKENS[ground][side]) < least
    }
    assert weak == {}


def test_every_tone_is_a_class_of_the_stylesheet() -> None:
    assert all(re.search(rf"^\.{tone} {{ --tone:", CSS, re.MULTILINE) for tone in TONES)
