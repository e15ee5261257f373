"""The API of figures."""

import datetime
from typing import Any

from django.conf import settings
from django.urls import reverse
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
from apps.results.figure_table import KINDS, METRICS, Metric
from apps.results.metrics import BUCKETS, PARTS, PULL_REQUESTS, SCOPES
from apps.results.models import SetAside
from apps.results.selectors import Window, repository_window
from apps.results.set_aside import aside_of

DAYS, DAYS_MAX = 14, 365


class MetricsTable(SheetView):
    """`GET /api/v1/metrics/?format=`: what every figure is.

    200 `{"kinds": [{"key", "title", "meaning"}], "results": [{"key", "title", "unit", "counts", "definition",
    "population", "numerator", "denominator", "of", "clock", "treatments", "upstream", "url"}]}`: `treatments` says for
    each kind of job what happens to it, `upstream` is upstream's own formula in words, null where it has none.
    """

    access = Open.PUBLIC
    columns = (
        *("key", "title", "unit", "counts", "definition", "population", "numerator", "denominator", "of", "clock"),
        *(f"treatments.{kind.key}" for kind in KINDS),
        *("upstream", "url"),
    )

    def get(self, request: Request) -> Response:
        kinds = [{"key": kind.key, "title": kind.title, "meaning": kind.meaning} for kind in KINDS]
        return Response({"kinds": kinds, "results": [_defined(metric) for metric in METRICS]})


class MetricsView(SheetView):
    """`GET /api/v1/repositories/{owner}/{name}/metrics/?days=&format=`: a repository's figures over its pull request
    jobs of the last `days` days, today included (UTC; 14 where it is left out, at most 365).

    200 with the repository's own fields, every figure of METRICS under its name (null: no data), `figures` with unit,
    rows and numerator of each, `less_appeals` the same of those that rows of accepted appeals change, without these
    rows (`set_aside`: job, why, url of the appeal; both empty where none is), `buckets` with counts that sum to `rows`,
    and `window`. Below L2 nothing is public: then there is no data, with 0 rows. 400 `malformed`; 404.
    """

    access = Open.PUBLIC
    columns = (
        *("repository", "from", "to", "figure", "unit", "value", "rows", "part", "of"),
        *("upstream_value", "upstream_rows", "upstream_part"),
    )

    def get(self, request: Request, owner: str, name: str) -> Response:
        repository = repository_or_404(owner, name)
        return Response(_figures_of(repository, _days(request)))

    def csv_rows(self, data: dict[str, Any]) -> list[dict[str, Any]]:
        """A line for each figure, for each without the rows of accepted appeals, then one for each bucket."""
        about = {"repository": data["full_name"], "from": data["window"]["from"], "to": data["window"]["to"]}
        figures = [about | {"figure": key} | figure for key, figure in data["figures"].items()]
        figures += [about | {"figure": f"{key}_less_appeals"} | one for key, one in data["less_appeals"].items()]
        rest = {"unit": "rows", "rows": data["rows"], "of": data["window"]["jobs"]}
        rest |= dict.fromkeys(("upstream_value", "upstream_rows", "upstream_part"))
        return figures + [
            about | rest | {"figure": f"bucket_{bucket}", "value": count, "part": count}
            for bucket, count in data["buckets"].items()
        ]


def _defined(metric: Metric) -> dict[str, Any]:
    plain = ("key", "title", "unit", "counts", "definition", "population", "numerator", "denominator", "of", "clock")
    return {
        **{name: getattr(metric, name) for name in plain},
        "treatments": {kind.key: treatment for kind, treatment in metric.treatments},
        "upstream": metric.upstream or None,
        "url": f"{settings.BASE_URL}{reverse('public:metrics')}#{metric.key}",
    }


def _days(request: Request) -> int:
    text = request.query_params.get("days", "") or str(DAYS)
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 0 < int(text) <= DAYS_MAX):
        raise Problem("malformed", f"days: saw {text[:20]!r}, send a number from 1 to {DAYS_MAX}.", "days")
    return int(text)


def _aside(row: SetAside) -> dict[str, Any]:
    return {"job": row.job.public_id, "why": row.why, "url": settings.BASE_URL + row.url}


def _figures_of(repository: Repository, days: int) -> dict[str, Any]:
    today = now().date()
    window, aside = Window(days), None
    if repository.level >= PUBLIC_FROM:
        window = repository_window(repository, scope=PULL_REQUESTS, today=today, days=days)
        aside = aside_of([repository], days=days, now=now())
    return {
        **RepositoryOut(repository).data,
        **{row.metric.key: row.figure.value for row in window.sheet},
        "figures": {row.metric.key: row.as_data() for row in window.sheet},
        "less_appeals": {one.less.metric.key: one.less.as_data() for one in aside.figures} if aside else {},
        "set_aside": [_aside(row) for row in aside.rows] if aside else [],
        "buckets": {bucket: window.counted.buckets.get(bucket, 0) for bucket in BUCKETS},
        "parts": {part: getattr(window.counted, part) for part in PARTS},
        "rows": window.counted.rows,
        "window": {
            "days": days,
            "from": (today - datetime.timedelta(days=days - 1)).isoformat(),
            "to": today.isoformat(),
            "jobs": SCOPES[PULL_REQUESTS],
            "counted_at": window.counted_at,
        },
    }
