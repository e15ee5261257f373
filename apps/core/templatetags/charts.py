"""The four drawings as tags; each with its table behind it unless `behind=False`: where the row around says it all."""

import datetime
from collections.abc import Iterable, Sequence

from django import template
from django.utils.safestring import SafeString

from apps.core import charts

register = template.Library()


def _figure(*parts: str) -> SafeString:
    return SafeString(f'<div class="chart">{"".join(parts)}</div>')


@register.simple_tag
def day_strip(days: Iterable[tuple[datetime.date, str, str]], title: str = "", behind: bool = True) -> SafeString:
    """`{% day_strip row.days row.name behind=False %}`: one cell a day, (date, tone, label) each."""
    shown = list(days)
    drawn = charts.day_strip(shown, title)
    return _figure(drawn, charts.strip_table(shown)) if behind and shown else drawn


@register.simple_tag
def run_strip(runs: Iterable[tuple[str, str, str]], title: str = "") -> SafeString:
    """`{% run_strip runs "Kestrel NPU" %}`: one cell a run, (which, tone, word) each. List the runs below it."""
    return charts.run_strip(runs, title)


@register.simple_tag
def strips_table(rows: Iterable[tuple[str, Sequence[tuple[datetime.date, str, str]]]]) -> SafeString:
    """`{% strips_table rows %}`: the table behind a list of strips: (name, days) each."""
    return charts.strips_table(rows)


@register.simple_tag
def sparkline(
    values: Iterable[charts.Number | None], title: str = "", names: Sequence[object] = (), behind: bool = True
) -> SafeString:
    """`{% sparkline values "Queue" names=days %}`: a small line; None is a gap."""
    shown = list(values)
    drawn = charts.sparkline(shown, title)
    return _figure(drawn, charts.spark_table(shown, names, title or "Value")) if behind and shown else drawn


@register.simple_tag
def stacked_bar(parts: Iterable[tuple[str, int | None, str]], title: str = "", behind: bool = True) -> SafeString:
    """`{% stacked_bar parts "Tests" %}`: parts of a whole with their legend, (label, count, tone) each."""
    shown = list(parts)
    table = charts.bar_table(shown) if behind and shown else ""
    return _figure(charts.stacked_bar(shown, title), charts.legend(shown) if shown else "", table)


@register.simple_tag
def burn_down(
    points: Iterable[tuple[datetime.date, charts.Number | None]], title: str = "", behind: bool = True
) -> SafeString:
    """`{% burn_down points "Unclassified" %}`: how many were left, (date, left) each."""
    shown = list(points)
    table = charts.burn_table(shown) if behind and shown else ""
    return _figure(charts.burn_down(shown, title), table)
