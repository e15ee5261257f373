"""The API of figures."""

import datetime
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Open
from apps.core.sheets import SheetView
from apps.platforms.api import RepositoryOut
from apps.platforms.models import Repository
from apps.platforms.policy import PUBLIC_FROM
from apps.platforms.selectors import repository_or_404
from apps.results.metrics import BUCKETS, METRICS, PULL_REQUESTS, SCOPES
from apps.results.selectors import Window, repository_window

DAYS, DAYS_MAX = 14, 365


class MetricsView(SheetView):
    """`GET /api/v1/repositories/{owner}/{name}/metrics/?days=&format=`: a repository's figures over its pull request
    jobs of the last `days` days, today included (UTC; 14 where it is left out, at most 365).

    200 with the repository's own fields, every figure of METRICS under its name (null: no data), `figures` with unit,
    rows and numerator of each, `buckets` with counts that sum to `rows`, and `window`. Below L2 nothing is public: then
    there is no data, with 0 rows. 400 `malformed`; 404.
    """

    access = Open.PUBLIC
    columns = ("repository", "from", "to", "figure", "unit", "value", "rows", "part", "of")

    def get(self, request: Request, owner: str, name: str) -> Response:
        repository = repository_or_404(owner, name)
        return Response(_figures_of(repository, _days(request)))

    def csv_rows(self, data: dict[str, Any]) -> list[dict[str, Any]]:
        """A line for each figure, then one for each bucket."""
        about = {"repository": data["full_name"], "from": data["window"]["from"], "to": data["window"]["to"]}
        figures = [about | {"figure": key} | figure for key, figure in data["figures"].items()]
        rest = {"unit": "rows", "rows": data["rows"], "of": data["window"]["jobs"]}
        return figures + [
            about | rest | {"figure": f"bucket_{bucket}", "value": count, "part": count}
            for bucket, count in data["buckets"].items()
        ]


def _days(request: Request) -> int:
    text = request.query_params.get("days", "") or str(DAYS)
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 0 < int(text) <= DAYS_MAX):
        raise Problem("malformed", f"days: saw {text[:20]!r}, send a number from 1 to {DAYS_MAX}.", "days")
    return int(text)


def _figures_of(repository: Repository, days: int) -> dict[str, Any]:
    today = now().date()
    window = Window(days)
    if repository.level >= PUBLIC_FROM:
        window = repository_window(repository, scope=PULL_REQUESTS, today=today, days=days)
    found = window.figures
    return {
        **RepositoryOut(repository).data,
        **{metric.key: found[metric.key].value for metric in METRICS},
        "figures": {
            metric.key: {
                "unit": metric.unit,
                "value": found[metric.key].value,
                "rows": found[metric.key].rows,
                "part": found[metric.key].part,
                "of": metric.of,
            }
            for metric in METRICS
        },
        "buckets": {bucket: window.counted.buckets.get(bucket, 0) for bucket in BUCKETS},
        "rows": window.counted.rows,
        "window": {
            "days": days,
            "from": (today - datetime.timedelta(days=days - 1)).isoformat(),
            "to": today.isoformat(),
            "jobs": SCOPES[PULL_REQUESTS],
            "counted_at": window.counted_at,
        },
    }
