"""The four drawings by the exact markup they give, and by what holds for whatever they are given."""

import datetime
import math
import re
import time
from xml.etree import ElementTree as ET

import pytest
from django.template import engines
from hypothesis import given
from hypothesis import strategies as st

from apps.core import charts
from apps.core.charts import Day, Part, Point
from apps.core.templatetags.hub import TONES

FIRST = datetime.date(2026, 11, 28)
HOSTILE = "<script>alert('1')</script>"
ESCAPED = "&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;"


def day(offset: int) -> datetime.date:
    return FIRST + datetime.timedelta(days=offset)


def render(source: str, **context: object) -> str:
    return engines["django"].from_string(source).render(context)


# --- day strip --------------------------------------------------------------------------------------------------


def test_a_strip_has_a_cell_of_its_own_outline_for_each_tone() -> None:
    days = [Day(day(place), tone, f"{tone} day") for place, tone in enumerate(TONES)]
    assert charts.day_strip(days, "Kestrel NPU") == (
        '<svg class="drawn strip" role="img" width="29" height="18" viewBox="0 0 29 18">'
        "<title>Kestrel NPU: 5 days, 2026-11-28 to 2026-12-02: 1 good, 1 warning, 1 bad, 1 open, 1 no data</title>"
        '<path class="good" d="M0 0v18h5v-18z"><title>2026-11-28: good day</title></path>'
        '<path class="warn" d="M6 0m0 8v10h5v-10l-2.5-5z"><title>2026-11-29: warn day</title></path>'
        '<path class="bad" d="M12 0v7h5v-7zm0 11v7h5v-7z"><title>2026-11-30: bad day</title></path>'
        '<path class="info" d="M18 0m0 9v9h5v-9z"><title>2026-12-01: info day</title></path>'
        '<path class="quiet" d="M24 0m0 15v3h5v-3z"><title>2026-12-02: quiet day</title></path>'
        "</svg>"
    )


def test_every_tone_has_an_outline_and_a_word_and_no_two_the_same() -> None:
    assert set(charts.CELLS) == set(charts.TONE_WORDS) == set(TONES)
    assert len(set(charts.CELLS.values())) == len(set(charts.TONE_WORDS.values())) == len(TONES)


def test_an_unknown_tone_is_no_data_and_a_label_stays_text() -> None:
    assert charts.day_strip([(FIRST, "green", HOSTILE)]) == (
        '<svg class="drawn strip" role="img" width="5" height="18" viewBox="0 0 5 18">'
        "<title>1 day, 2026-11-28: 1 no data</title>"
        f'<path class="quiet" d="M0 0m0 15v3h5v-3z"><title>2026-11-28: {ESCAPED}</title></path></svg>'
    )


def test_a_drawing_of_nothing_says_so() -> None:
    small = '<text class="axis" x="0" y="14">no data</text></svg>'
    assert [charts.day_strip([], "Days"), charts.sparkline([None], "Queue")] == [
        '<svg class="drawn strip none" role="img" width="120" height="18" viewBox="0 0 120 18">'
        f"<title>Days: no data</title>{small}",
        '<svg class="drawn spark none" role="img" width="120" height="18" viewBox="0 0 120 18">'
        f"<title>Queue: no data</title>{small}",
    ]
    assert [charts.stacked_bar([("passed", None, "good")]), charts.burn_down([(FIRST, None)])] == [
        f'<svg class="drawn stack none" role="img" width="100%" height="18"><title>no data</title>{small}',
        f'<svg class="drawn burn none" role="img" width="100%" height="18"><title>no data</title>{small}',
    ]


def test_a_hundred_strips_of_a_month_take_a_moment() -> None:
    rows = [
        [Day(day(place), list(TONES)[(place + row) % 5], f"{place} of {row}") for place in range(30)]
        for row in range(100)
    ]
    began = time.perf_counter()
    for days in rows:
        charts.day_strip(days)
    assert time.perf_counter() - began < 0.25  # 5 ms on an idle machine


# --- sparkline --------------------------------------------------------------------------------------------------


def test_a_line_breaks_where_a_value_is_missing() -> None:
    assert charts.sparkline([1, 3, None, 2, None, 2.5], "Queue") == (
        '<svg class="drawn spark" role="img" width="120" height="24" viewBox="0 0 120 24">'
        "<title>Queue: 4 values, 1 to 3, last 2.5, 2 missing</title>"
        '<path class="line" d="M3 21L25.8 3"/>'
        '<circle class="dot" cx="71.4" cy="12" r="2"/><circle class="last" cx="117" cy="7.5" r="3"/></svg>'
    )


def test_equal_values_are_a_level_line_and_one_value_a_dot() -> None:
    assert charts.sparkline([5, 5]) == (
        '<svg class="drawn spark" role="img" width="120" height="24" viewBox="0 0 120 24">'
        "<title>2 values, 5 to 5, last 5</title>"
        '<path class="line" d="M3 12L117 12"/><circle class="last" cx="117" cy="12" r="3"/></svg>'
    )
    assert charts.sparkline([float("nan"), 22]) == (
        '<svg class="drawn spark" role="img" width="120" height="24" viewBox="0 0 120 24">'
        "<title>1 value, last 22, 1 missing</title>"
        '<circle class="last" cx="117" cy="12" r="3"/></svg>'
    )


# --- stacked bar ------------------------------------------------------------------------------------------------


def test_a_part_is_as_wide_as_its_share_and_carries_its_shape() -> None:
    parts = [Part("passed", 75, "good"), Part("failed", 25, "bad"), Part("lost", 0, "warn"), Part("new", None, "info")]
    assert charts.stacked_bar(parts, "Tests") == (
        '<svg class="drawn stack" role="img" width="100%" height="14">'
        "<title>Tests: 75 passed, 25 failed, 0 lost, no data new, of 100</title>"
        '<rect class="good" x="0%" width="74.8%" height="14"><title>passed: 75</title></rect>'
        '<text class="on-tone" x="37.4%" y="10">●</text>'
        '<rect class="bad" x="75%" width="24.8%" height="14"><title>failed: 25</title></rect>'
        '<text class="on-tone" x="87.4%" y="10">■</text></svg>'
    )
    assert charts.legend(parts) == (
        '<ul class="legend">'
        '<li><span class="shape good" aria-hidden="true">●</span> passed <b>75</b></li>'
        '<li><span class="shape bad" aria-hidden="true">■</span> failed <b>25</b></li>'
        '<li><span class="shape warn" aria-hidden="true">▲</span> lost <b>0</b></li>'
        '<li><span class="shape info" aria-hidden="true">◆</span> new <b>no data</b></li></ul>'
    )


def test_one_in_a_million_is_seen() -> None:
    widths = charts.part_widths([999_999, 1])
    assert [round(width, 2) for width in widths] == [99.4, 0.6]


def test_none_of_each_is_none_and_not_no_data() -> None:
    assert charts.stacked_bar([("passed", 0, "good"), ("failed", 0, "bad")], "Tests") == (
        '<svg class="drawn stack none" role="img" width="100%" height="18">'
        '<title>Tests: 0 passed, 0 failed, of 0</title><text class="axis" x="0" y="14">none</text></svg>'
    )


# --- burn-down --------------------------------------------------------------------------------------------------


def test_a_burn_down_starts_at_zero_and_leaves_gaps() -> None:
    points = [Point(day(0), 1200), Point(day(1), 600), Point(day(2), None), Point(day(3), 0)]
    assert charts.burn_down(points, "Unclassified") == (
        '<svg class="drawn burn" role="img" width="100%" height="152">'
        "<title>Unclassified: 0 left on 2026-12-01, 1,200 on 2026-11-28, 1 day not counted</title>"
        '<line class="base" x1="0" x2="100%" y1="128" y2="128"/>'
        '<svg width="100%" height="152" viewBox="0 0 100 152" preserveAspectRatio="none">'
        '<path class="area" d="M0 128L0 20L33.33 74L33.33 128z"/><path class="line" d="M0 20L33.33 74"/></svg>'
        '<circle class="last" cx="100%" cy="128" r="3"/>'
        '<text class="axis" x="0" y="12">1,200</text>'
        '<text class="axis end" x="100%" y="146">2026-12-01</text><text class="axis" x="0" y="146">2026-11-28</text>'
        "</svg>"
    )


def test_one_point_is_a_dot_under_its_day() -> None:
    assert charts.burn_down([(FIRST, 0)]) == (
        '<svg class="drawn burn" role="img" width="100%" height="152"><title>0 left on 2026-11-28</title>'
        '<line class="base" x1="0" x2="100%" y1="128" y2="128"/>'
        '<svg width="100%" height="152" viewBox="0 0 100 152" preserveAspectRatio="none"></svg>'
        '<circle class="last" cx="100%" cy="74" r="3"/><text class="axis" x="0" y="12">0</text>'
        '<text class="axis end" x="100%" y="146">2026-11-28</text></svg>'
    )


# --- the tables behind ------------------------------------------------------------------------------------------


def table(heads: str, *rows: str, frame: str = "frame") -> str:
    head = "".join(f'<th scope="col">{text}</th>' for text in heads.split("|"))
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for first, *cells in (row.split("|") for row in rows)
    )
    return (
        f'<details class="behind"><summary>As a table</summary>'
        f'<div class="{frame}" tabindex="0" role="group" aria-label="The same as a table"><table class="keep dense">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></details>"
    )


def test_behind_every_drawing_stands_a_table() -> None:
    assert charts.strip_table([(day(0), "good", "2 of 2"), (day(1), "quiet", "no data")]) == table(
        "Day|State|Value",
        '2026-11-29|<span class="shape quiet" aria-hidden="true">○</span> no data|no data',
        '2026-11-28|<span class="shape good" aria-hidden="true">●</span> good|2 of 2',
    )
    assert charts.spark_table([4, None], names=[day(0)], head=HOSTILE) == table(
        f"Of|{ESCAPED}", "2026-11-28|4", "2|no data"
    )
    assert charts.bar_table([("passed", 3, "good"), ("failed", 1, "bad"), ("new", None, "info")]) == table(
        "Part|Count|Share of 4", "passed|3|75.0 %", "failed|1|25.0 %", "new|no data|no data"
    )
    assert charts.bar_table([("passed", 9_999, "good"), ("failed", 1, "bad")]) == table(
        "Part|Count|Share of 10,000", "passed|9,999|&gt; 99.9 %", "failed|1|&lt; 0.1 %"
    )
    assert charts.burn_table([(day(0), 7), (day(1), None)]) == table("Day|Left", "2026-11-29|no data", "2026-11-28|7")


def test_a_list_of_strips_has_one_table() -> None:
    rows = [
        (HOSTILE, [(day(0), "good", "2 of 2"), (day(1), "bad", "0 of 3")]),
        ("Pallas", [(day(1), "good", "1 of 1")]),
    ]
    assert charts.strips_table(rows) == table(
        "Row|2026-11-28|2026-11-29", f"{ESCAPED}|2 of 2|0 of 3", "Pallas|no data|1 of 1", frame="frame scroll"
    )


def test_the_tags_bring_the_table_unless_told_otherwise() -> None:
    days = [(FIRST, "good", "2 of 2")]
    drawn, behind = charts.day_strip(days, "A"), charts.strip_table(days)
    assert render('{% day_strip days "A" %}', days=days) == f'<div class="chart">{drawn}{behind}</div>'
    assert render('{% day_strip days "A" behind=False %}', days=days) == drawn
    assert render("{% strips_table rows %}", rows=[("A", days)]) == charts.strips_table([("A", days)])
    line = charts.sparkline([1, 2], "Q") + charts.spark_table([1, 2], ["x"], "Q")
    assert render('{% sparkline values "Q" names=names %}', values=[1, 2], names=["x"]) == (
        f'<div class="chart">{line}</div>'
    )
    assert render("{% sparkline values behind=False %}", values=[1, 2]) == charts.sparkline([1, 2])
    parts = [("passed", 1, "good")]
    bar = charts.stacked_bar(parts, "T") + charts.legend(parts)
    assert render('{% stacked_bar parts "T" %}', parts=parts) == (
        f'<div class="chart">{bar}{charts.bar_table(parts)}</div>'
    )
    assert render('{% stacked_bar parts "T" behind=False %}', parts=parts) == f'<div class="chart">{bar}</div>'
    points = [(FIRST, 3)]
    burn = charts.burn_down(points, "U")
    assert render('{% burn_down points "U" %}', points=points) == (
        f'<div class="chart">{burn}{charts.burn_table(points)}</div>'
    )
    assert render('{% burn_down points "U" behind=False %}', points=points) == f'<div class="chart">{burn}</div>'


def test_nothing_has_no_table_behind_it() -> None:
    assert render("{% stacked_bar parts %}", parts=[]) == f'<div class="chart">{charts.stacked_bar([])}</div>'
    assert render("{% day_strip days %}", days=[]) == charts.day_strip([])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "no data"),
        (12_345, "12,345"),
        (-3, "−3"),
        (2.0, "2"),
        (3.256, "3.26"),
        (-0.001, "0"),
        (1e300, "1.00e+300"),
    ],
)
def test_numbers_in_words(value: float | None, text: str) -> None:
    assert charts.burn_table([(FIRST, value)]) == table("Day|Left", f"2026-11-28|{text}")


# --- whatever they are given ------------------------------------------------------------------------------------

DATES = st.dates(datetime.date(2000, 1, 1), datetime.date(2100, 1, 1))
WORDS = st.text(max_size=20)
NUMBERS = st.none() | st.integers() | st.floats()
DAYS = st.lists(st.tuples(DATES, st.sampled_from([*TONES, "green", ""]), WORDS), max_size=40)
PARTS = st.lists(st.tuples(WORDS, st.none() | st.integers(-5, 10**12), st.sampled_from([*TONES, "green"])), max_size=9)
POINTS = st.lists(st.tuples(DATES, NUMBERS), max_size=40)


def sound(svg: str) -> ET.Element:
    """The drawing, read as XML, with every coordinate a number."""
    root = ET.fromstring(svg)  # noqa: S314 — our own
    assert re.search(r"\bnan\b|\binf\b", re.sub(r"<title>.*?</title>", "", svg, flags=re.DOTALL)) is None
    for element in root.iter():
        for name in ("x", "y", "width", "height", "cx", "cy", "r", "x1", "x2", "y1", "y2"):
            if value := element.get(name):
                assert math.isfinite(float(value.removesuffix("%")))
    assert root[0].tag == "title"
    assert root[0].text
    return root


@given(DAYS, WORDS)
def test_any_strip_is_sound_and_counts_every_day_once(days: list[tuple[datetime.date, str, str]], title: str) -> None:
    root = sound(charts.day_strip(days, title))
    assert len(root.findall("path")) == len(days)
    if days:
        said = (root[0].text or "").rpartition(": ")[2]
        assert sum(int(count) for count in re.findall(r"(\d+) ", said)) == len(days)
    unknown = sum(tone not in TONES or tone == "quiet" for _date, tone, _label in days)
    assert len([path for path in root.findall("path") if path.get("class") == "quiet"]) == unknown


@given(st.lists(NUMBERS, max_size=40), WORDS)
def test_any_line_is_sound_and_stays_in_its_frame(values: list[float | None], title: str) -> None:
    root = sound(charts.sparkline(values, title))
    for path in root.findall("path"):
        places = [float(part) for part in re.findall(r"-?[\d.]+", path.get("d") or "")]
        assert all(3 <= x <= 117 for x in places[::2])
        assert all(3 <= y <= 21 for y in places[1::2])


@given(PARTS, WORDS)
def test_the_parts_of_any_bar_fill_it(parts: list[tuple[str, int | None, str]], title: str) -> None:
    root = sound(charts.stacked_bar(parts, title))
    counts = [count for _label, count, _tone in parts if count is not None and count > 0]
    drawn = [float((rect.get("width") or "").removesuffix("%")) for rect in root.findall("rect")]
    assert len(drawn) == len(counts)
    if counts:
        assert sum(drawn) + len(drawn) * charts.BAR_GAP == pytest.approx(100, abs=0.1)
        assert (root[0].text or "").endswith(f"of {sum(counts):,}")


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=12))
def test_widths_sum_to_the_whole_and_keep_the_order(counts: list[int]) -> None:
    widths = charts.part_widths(counts)
    assert sum(widths) == pytest.approx(100 if any(counts) else 0)
    assert [bool(width) for width in widths] == [bool(count) for count in counts]
    by_count = [width for _count, width in sorted(zip(counts, widths, strict=True))]
    assert by_count == sorted(by_count)


@given(POINTS, WORDS)
def test_any_burn_down_is_sound(points: list[tuple[datetime.date, float | None]], title: str) -> None:
    sound(charts.burn_down(points, title))


@given(DAYS, st.lists(NUMBERS, max_size=9), PARTS, POINTS)
def test_any_table_is_sound(
    days: list[tuple[datetime.date, str, str]],
    values: list[float | None],
    parts: list[tuple[str, int | None, str]],
    points: list[tuple[datetime.date, float | None]],
) -> None:
    for html, rows in (
        (charts.strip_table(days), len(days)),
        (charts.strips_table([("a", days)]), 1),
        (charts.spark_table(values), len(values)),
        (charts.bar_table(parts), len(parts)),
        (charts.burn_table(points), len(points)),
    ):
        assert len(ET.fromstring(html).findall(".//tbody/tr")) == rows  # noqa: S314 — our own
