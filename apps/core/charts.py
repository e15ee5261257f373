"""The four drawings: day strip, sparkline, stacked bar, burn-down. Pure functions to one SVG text each, and the tables
behind them. Nothing else is drawn.

Colour never speaks alone: a day's cell has its tone's own outline, a bar's part carries its tone's shape and stands in
the legend's order. What is missing is a gap or a dash at the bottom, never a zero and never green.
"""

import datetime
import functools
import html
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.utils.safestring import SafeString

from apps.core.templatetags.hub import NO_DATA, TONES, percent

Number = int | float


class Day(NamedTuple):
    """One cell of a strip. `label` says the day's value in words: `41 of 42 ended as success`."""

    date: datetime.date
    tone: str
    label: str


class Part(NamedTuple):
    """One part of a bar. `number` None is no data and takes no room."""

    label: str
    number: int | None
    tone: str


class Point(NamedTuple):
    """How many were left on a day; None: nobody counted."""

    date: datetime.date
    left: Number | None


# What a tone is called where a drawing is told in words.
TONE_WORDS = {"good": "good", "warn": "warning", "bad": "bad", "info": "open", "quiet": NO_DATA}

# A day's cell is 5 wide and 18 high, the next one begins at 6. A path from its upper left corner, by tone: good is
# whole, warning has a pointed top, bad is cut through, open is half, no data is a dash at the bottom.
CELL_PITCH, CELL_WIDTH, CELL_HEIGHT = 6, 5, 18
CELLS = {
    "good": "v18h5v-18z",
    "warn": "m0 8v10h5v-10l-2.5-5z",
    "bad": "v7h5v-7zm0 11v7h5v-7z",
    "info": "m0 9v9h5v-9z",
    "quiet": "m0 15v3h5v-3z",
}

SPARK_WIDTH, SPARK_HEIGHT, SPARK_EDGE = 120, 24, 3
BAR_HEIGHT, BAR_GAP = 14, 0.2
# A part that is there is seen, however small: percent of the width. From SHAPE_FROM on it has room for its shape.
PART_LEAST, SHAPE_FROM = 0.6, 6.0
BURN_HEIGHT, BURN_TOP, BURN_BOTTOM = 152, 20, 128


# --- the drawings -----------------------------------------------------------------------------------------------


def day_strip(days: Iterable[tuple[datetime.date, str, str]], title: str = "") -> SafeString:
    """One cell a day, in the order given; each says its date and value. An unknown tone is no data."""
    cells = [Day(*day) for day in days]
    return _strip([(_iso(day.date), day.tone, day.label) for day in cells], title, strip_words(cells, title))


def run_strip(runs: Iterable[tuple[str, str, str]], title: str = "") -> SafeString:
    """One cell a run, in the order given: which run, its tone, and how it ended in a word. As day_strip, for what does
    not happen once a day."""
    cells = list(runs)
    return _strip(cells, title, run_words(cells, title))


def _strip(cells: Sequence[tuple[str, str, str]], title: str, words: str) -> SafeString:
    if not cells:
        return _nothing("strip", title)
    drawn = [
        f'<path class="{tone}" d="M{place} 0{CELLS[tone]}"><title>{_text(name)}: {_text(label)}</title></path>'
        for place, (name, given, label) in zip(itertools.count(0, CELL_PITCH), cells, strict=False)
        for tone in (_tone(given),)
    ]
    return _svg("strip", words, *drawn, size=(len(cells) * CELL_PITCH - 1, CELL_HEIGHT))


def sparkline(values: Iterable[Number | None], title: str = "") -> SafeString:
    """A line through the values, left to right, the last one marked. None is a gap; a value between gaps is a dot."""
    numbers = [_finite(value) for value in values]
    known = [number for number in numbers if number is not None]
    if not known:
        return _nothing("spark", title)
    low, high = min(known), max(known)
    places = _places(
        numbers,
        across=(SPARK_EDGE, SPARK_WIDTH - SPARK_EDGE),
        down=(SPARK_EDGE, SPARK_HEIGHT - SPARK_EDGE),
        between=(low, high),
    )
    drawn = [_line(run) for run in _runs(places)]
    last = next(place for place in reversed(places) if place is not None)
    drawn += [_dot(*place) for (place, *more) in _runs(places) if not more and place != last]
    drawn.append(_dot(*last, "last"))
    return _svg("spark", spark_words(numbers, title), *drawn, size=(SPARK_WIDTH, SPARK_HEIGHT))


def stacked_bar(parts: Iterable[tuple[str, int | None, str]], title: str = "") -> SafeString:
    """Parts of a whole beside each other, as wide as there is room. `legend` goes with it, in the same order."""
    shown = [Part(*part) for part in parts]
    counts = [_count(part) or 0 for part in shown]
    if all(_count(part) is None for part in shown):
        return _nothing("stack", title, wide=True)
    if not sum(counts):
        return _nothing("stack", bar_words(shown, title), "none", wide=True)
    drawn, place = [], 0.0
    for part, width in zip(shown, part_widths(counts), strict=True):
        if not width:
            continue
        tone = _tone(part.tone)
        drawn.append(
            f'<rect class="{tone}" x="{_n(place)}%" width="{_n(width - BAR_GAP)}%" height="{BAR_HEIGHT}">'
            f"<title>{_text(part.label)}: {_number(_count(part))}</title></rect>"
        )
        if width >= SHAPE_FROM:
            middle = place + (width - BAR_GAP) / 2
            drawn.append(f'<text class="on-tone" x="{_n(middle)}%" y="{BAR_HEIGHT - 4}">{TONES[tone]}</text>')
        place += width
    return _svg("stack", bar_words(shown, title), *drawn, size=("100%", BAR_HEIGHT))


def burn_down(points: Iterable[tuple[datetime.date, Number | None]], title: str = "") -> SafeString:
    """How many were left day by day, from zero up. A day nobody counted is a gap. As wide as there is room."""
    shown = [Point(date, _finite(left)) for date, left in points]
    known = [point.left for point in shown if point.left is not None]
    if not known:
        return _nothing("burn", title, wide=True)
    most = max(*known, 0)
    # Percent across and pixels down for the dots; the line is drawn 100 wide and stretched.
    places = _places(
        [point.left for point in shown], across=(0, 100), down=(BURN_TOP, BURN_BOTTOM), between=(min(*known, 0), most)
    )
    runs = _runs(places)
    lines = "".join(_line(run) for run in runs)
    areas = "".join(_area(run, BURN_BOTTOM) for run in runs if len(run) > 1)
    last = next(place for place in reversed(places) if place is not None)
    dots = [place for (place, *more) in runs if not more and place != last]
    drawn = [
        f'<line class="base" x1="0" x2="100%" y1="{BURN_BOTTOM}" y2="{BURN_BOTTOM}"/>',
        f'<svg width="100%" height="{BURN_HEIGHT}" viewBox="0 0 100 {BURN_HEIGHT}" preserveAspectRatio="none">'
        f"{areas}{lines}</svg>",
        *(_dot(*place, percent=True) for place in dots),
        _dot(*last, "last", percent=True),
        f'<text class="axis" x="0" y="12">{_number(most)}</text>',
        f'<text class="axis end" x="100%" y="{BURN_HEIGHT - 6}">{shown[-1].date}</text>',
    ]
    if len(shown) > 1:
        drawn.append(f'<text class="axis" x="0" y="{BURN_HEIGHT - 6}">{shown[0].date}</text>')
    return _svg("burn", burn_words(shown, title), *drawn, size=("100%", BURN_HEIGHT))


def legend(parts: Iterable[tuple[str, int | None, str]]) -> SafeString:
    """What a bar's parts are, in its order: shape, label, count."""
    rows = "".join(
        f'<li><span class="shape {tone}" aria-hidden="true">{TONES[tone]}</span> '
        f"{_text(part.label)} <b>{_number(_count(part))}</b></li>"
        for part in (Part(*part) for part in parts)
        for tone in (_tone(part.tone),)
    )
    return SafeString(f'<ul class="legend">{rows}</ul>')


def part_widths(counts: Sequence[int]) -> list[float]:
    """Percent of the width for each count: none for none, at least PART_LEAST for one; together 100."""
    total = sum(counts)
    if not total:
        return [0.0] * len(counts)
    wanted = [max(count / total * 100, PART_LEAST) if count else 0.0 for count in counts]
    scale = 100 / sum(wanted)
    return [width * scale for width in wanted]


# --- the same in words: an image's name -------------------------------------------------------------------------


def strip_words(days: Sequence[Day], title: str = "") -> str:
    """`Kestrel NPU: 30 days, 2026-11-01 to 2026-11-30: 24 good, 2 warning, 1 bad, 3 no data`."""
    if not days:
        return title
    counts = Counter(_tone(day.tone) for day in days)
    said = ", ".join(f"{counts[tone]} {TONE_WORDS[tone]}" for tone in TONES if counts[tone])
    span = f"{days[0].date} to {days[-1].date}" if len(days) > 1 else f"{days[0].date}"
    return _titled(title, f"{len(days)} {'day' if len(days) == 1 else 'days'}, {span}: {said}")


def run_words(runs: Sequence[tuple[str, str, str]], title: str = "") -> str:
    """`Kestrel NPU: 12 runs: 11 passed, 1 failed`, the most frequent first."""
    said = ", ".join(f"{count} {word}" for word, count in Counter(word for _, _, word in runs).most_common())
    return _titled(title, f"{len(runs)} run{'' if len(runs) == 1 else 's'}: {said}")


def spark_words(values: Sequence[Number | None], title: str = "") -> str:
    """`Queue: 12 values, 3 to 9, last 5, 2 missing`."""
    known = [value for value in values if value is not None]
    count = f"{len(known)} {'value' if len(known) == 1 else 'values'}"
    missing = [f"{len(values) - len(known)} missing"] if len(known) < len(values) else []
    span = [f"{_number(min(known))} to {_number(max(known))}"] if len(known) > 1 else []
    return _titled(title, ", ".join([count, *span, f"last {_number(known[-1])}", *missing]))


def bar_words(parts: Sequence[Part], title: str = "") -> str:
    """`Tests: 90 passed, 4 failed, of 94`."""
    said = [f"{_number(_count(part))} {part.label}" for part in parts]
    return _titled(title, ", ".join([*said, f"of {sum(_count(part) or 0 for part in parts):,}"]))


def burn_words(points: Sequence[Point], title: str = "") -> str:
    """`Unclassified: 1,043 left on 2026-11-30, 1,284 on 2026-11-01, 3 days not counted`."""
    known = [point for point in points if point.left is not None]
    said = [f"{_number(known[-1].left)} left on {known[-1].date}"]
    if len(known) > 1:
        said.append(f"{_number(known[0].left)} on {known[0].date}")
    if missing := len(points) - len(known):
        said.append(f"{missing} {'day' if missing == 1 else 'days'} not counted")
    return _titled(title, ", ".join(said))


# --- the tables behind ------------------------------------------------------------------------------------------


def strip_table(days: Iterable[tuple[datetime.date, str, str]]) -> SafeString:
    """A strip's days, newest first."""
    shown = [Day(*day) for day in days]
    rows = [(f"{day.date}", _state(day.tone), _text(day.label)) for day in reversed(shown)]
    return _behind(("Day", "State", "Value"), rows)


def strips_table(rows: Iterable[tuple[str, Sequence[tuple[datetime.date, str, str]]]]) -> SafeString:
    """The strips of several rows as one table: names down, the days of the first across. For a list of strips."""
    named = [(name, {day.date: day for day in map(Day._make, days)}) for name, days in rows]
    dates = [date for _name, days in named[:1] for date in days]
    body = [
        (_text(name), *(_text(days[date].label) if date in days else NO_DATA for date in dates)) for name, days in named
    ]
    return _behind(("Row", *(f"{date}" for date in dates)), body, wide=True)


def spark_table(values: Iterable[Number | None], names: Sequence[object] = (), head: str = "Value") -> SafeString:
    """A line's values; `names` are what each is of (days, runs), else they are numbered."""
    numbers = [_finite(value) for value in values]
    rows = [
        (_text(names[place]) if place < len(names) else f"{place + 1}", _number(number))
        for place, number in enumerate(numbers)
    ]
    return _behind(("Of", _text(head)), rows)


def bar_table(parts: Iterable[tuple[str, int | None, str]]) -> SafeString:
    """A bar's parts with their share of the whole."""
    shown = [Part(*part) for part in parts]
    total = sum(_count(part) or 0 for part in shown)
    rows = [(_text(part.label), _number(_count(part)), _share(_count(part), total)) for part in shown]
    return _behind(("Part", "Count", f"Share of {total:,}"), rows)


def burn_table(points: Iterable[tuple[datetime.date, Number | None]]) -> SafeString:
    """What was left on each day, newest first."""
    rows = [(f"{date}", _number(_finite(left))) for date, left in reversed(list(points))]
    return _behind(("Day", "Left"), rows)


def _behind(heads: Sequence[str], rows: Sequence[Sequence[str]], wide: bool = False) -> SafeString:
    """A table behind a word that opens it. Cells are markup already. `wide` scrolls inside itself."""
    frame = f'class="frame{" scroll" if wide else ""}" tabindex="0" role="group" aria-label="The same as a table"'
    head = "".join(f'<th scope="col">{text}</th>' for text in heads)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for first, *cells in rows
    )
    return SafeString(
        f'<details class="behind"><summary>As a table</summary><div {frame}><table class="keep dense">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></details>"
    )


# --- parts of drawings ------------------------------------------------------------------------------------------

Place = tuple[float, float]


def _svg(kind: str, words: str, *drawn: str, size: tuple[int | str, int]) -> SafeString:
    width, height = size
    box = f' viewBox="0 0 {width} {height}"' if isinstance(width, int) else ""
    return SafeString(
        f'<svg class="drawn {kind}" role="img" width="{width}" height="{height}"{box}>'
        f"<title>{_text(words)}</title>{''.join(drawn)}</svg>"
    )


def _nothing(kind: str, title: str, text: str = NO_DATA, wide: bool = False) -> SafeString:
    """A drawing of nothing says so."""
    words = _titled(title, NO_DATA) if text == NO_DATA else title
    return _svg(
        f"{kind} none",
        words,
        f'<text class="axis" x="0" y="14">{text}</text>',
        size=("100%" if wide else SPARK_WIDTH, 18),
    )


def _places(
    values: Sequence[Number | None],
    *,
    across: tuple[Number, Number],
    down: tuple[Number, Number],
    between: tuple[Number, Number],
) -> list[Place | None]:
    """Where each value stands: evenly from left to right, the highest at the top. A single value stands at the end."""
    (left, right), (top, bottom), (low, high) = across, down, between
    step = (right - left) / (len(values) - 1) if len(values) > 1 else 0.0
    start = left if len(values) > 1 else right
    # Halved before they are subtracted: the largest floats are farther apart than a float can say.
    span = high / 2 - low / 2

    def height(value: Number) -> float:
        return (top + bottom) / 2 if not span else bottom - (value / 2 - low / 2) / span * (bottom - top)

    return [None if value is None else (start + step * place, height(value)) for place, value in enumerate(values)]


def _runs(places: Sequence[Place | None]) -> list[list[Place]]:
    """The places between the gaps."""
    runs: list[list[Place]] = [[]]
    for place in places:
        if place is None:
            runs.append([])
        else:
            runs[-1].append(place)
    return [run for run in runs if run]


def _line(run: Sequence[Place]) -> str:
    if len(run) < 2:
        return ""
    return f'<path class="line" d="M{"L".join(f"{_n(x)} {_n(y)}" for x, y in run)}"/>'


def _area(run: Sequence[Place], bottom: Number) -> str:
    edge = "L".join(f"{_n(x)} {_n(y)}" for x, y in run)
    return f'<path class="area" d="M{_n(run[0][0])} {_n(bottom)}L{edge}L{_n(run[-1][0])} {_n(bottom)}z"/>'


def _dot(x: float, y: float, kind: str = "dot", percent: bool = False) -> str:
    return (
        f'<circle class="{kind}" cx="{_n(x)}{"%" if percent else ""}" cy="{_n(y)}" r="{3 if kind == "last" else 2}"/>'
    )


# --- words and numbers ------------------------------------------------------------------------------------------

# What XML has no spelling for: a label with one of these would make the drawing unreadable as a whole.
_UNSPEAKABLE = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@functools.lru_cache(4096)
def _escaped(text: str) -> str:
    return html.escape(_UNSPEAKABLE.sub("\ufffd", text))


def _text(value: object) -> str:
    """The value as text of the drawing. Thousands of cells say the same few things: each is escaped once."""
    return _escaped(value if type(value) is str else str(value))


@functools.lru_cache(1024)
def _iso(date: datetime.date) -> str:
    return date.isoformat()


def _titled(title: str, words: str) -> str:
    return f"{title}: {words}" if title else words


def _tone(tone: str) -> str:
    return tone if tone in TONES else "quiet"


def _state(tone: str) -> str:
    tone = _tone(tone)
    return f'<span class="shape {tone}" aria-hidden="true">{TONES[tone]}</span> {TONE_WORDS[tone]}'


def _finite(value: Number | None) -> Number | None:
    """The value where it is a number that can be drawn."""
    if value is None or isinstance(value, bool):
        return None
    try:
        return value if math.isfinite(float(value)) else None
    except OverflowError:
        return None


def _count(part: Part) -> int | None:
    return part.number if part.number is not None and part.number >= 0 else None


def _number(value: Number | None) -> str:
    """12,345 or 3.25: whole numbers whole, others with two decimals at most; what no hub counts in short."""
    if value is None:
        return NO_DATA
    if abs(value) >= 1e15:
        return f"{value:.2e}".replace("-", "−")
    text = f"{value:,.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"
    return "0" if text == "-0" else text.replace("-", "−")


def _share(count: int | None, total: int) -> str:
    return _text(percent(count / total if count is not None and total else None))


def _n(value: Number) -> str:
    """A coordinate, two decimals at most."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
