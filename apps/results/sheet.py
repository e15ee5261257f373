"""Every figure beside upstream's: the rows that the platform page, the API, its CSV and policy all read."""

from dataclasses import dataclass
from typing import Any

from apps.core.templatetags.hub import duration, percent
from apps.results.figure_table import METRICS, Metric
from apps.results.metrics import Counted, Figure, figures
from apps.results.upstream import upstream_figures


@dataclass(frozen=True)
class Row:
    """One metric over some counts. `upstream` is None where upstream has no such figure."""

    metric: Metric
    figure: Figure
    upstream: Figure | None

    @property
    def shown(self) -> str:
        return _written(self.metric, self.figure)

    @property
    def upstream_shown(self) -> str:
        """Upstream's value where it differs as it is written, else ''."""
        if self.upstream is None or self.upstream.value == self.figure.value:
            return ""
        return _written(self.metric, self.upstream)

    def as_data(self) -> dict[str, Any]:
        """As the API writes it. `upstream_*` is null where upstream has no such figure, or no rows for it."""
        upstream = self.upstream or Figure(None, 0)
        return {
            "unit": self.metric.unit,
            "value": self.figure.value,
            "rows": self.figure.rows,
            "part": self.figure.part,
            "of": self.metric.of,
            "upstream_value": upstream.value,
            "upstream_rows": upstream.rows if self.upstream else None,
            "upstream_part": upstream.part,
        }


def rows_of(counted: Counted) -> list[Row]:
    """Every metric of METRICS over these counts, in its order."""
    ours, upstream = figures(counted), upstream_figures(counted)
    return [Row(metric, ours[metric.key], upstream.get(metric.key)) for metric in METRICS]


def _written(metric: Metric, figure: Figure) -> str:
    if figure.value is None:
        return "no data"
    if metric.unit == "count":
        return f"{figure.value:,}"
    return percent(figure.value) if metric.unit == "share" else duration(figure.value)
