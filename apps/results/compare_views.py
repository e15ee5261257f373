"""The page that holds two reports against each other."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.core.validators import slug_re
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.core.access import public
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.rendering import render_page
from apps.results.bases import base_called
from apps.results.changes import MEANINGS, Change, Compared
from apps.results.compare import compared, rows_of
from apps.results.models import Report
from apps.results.report_selectors import report_or_404

ROWS_PAGE = 50


@public
@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """`/compare/?base=&head=&change=&page=`: what changed from one report to another of the same variant (`base` may
    be `previous`, `base` or a platform's slug): how many tests by change, and the tests of one (without `change`: of
    all but those that are as they were)."""
    context: dict[str, Any] = {"now": now()}
    try:
        pair = _pair(request)
        context |= pair or {}
        if pair:
            context |= _shown(request, compared(**pair), pair["head"])
    except Problem as problem:
        context["problem"] = problem
        return render_page(request, "results/compare.html", context, status=problem.row.status)
    return render_page(request, "results/compare.html", context)


def _pair(request: HttpRequest) -> dict[str, Report] | None:
    """Both reports that the address names; None where it names neither."""
    if not request.GET.get("base") and not request.GET.get("head"):
        return None
    return read_pair(request.GET, request.user)


def read_pair(query: Mapping[str, str], user: Any) -> dict[str, Report]:
    """The reports `base` and `head` of an address, in this order; `base` may also be a word (bases.base_called).
    Raises Problem `malformed`, `not_found`; Http404."""
    said, head_id = query.get("base", ""), _id(query.get("head", ""))
    if head_id is None:
        raise Problem("malformed", f"head: saw {query.get('head', '')[:40]!r}, send the id of a report.", "head")
    if (base_id := _id(said)) is not None:
        return {"base": report_or_404(base_id, user), "head": report_or_404(head_id, user)}
    if not slug_re.fullmatch(said):
        what = "send the id of a report, `previous`, `base`, or a platform's slug"
        raise Problem("malformed", f"base: saw {said[:40]!r}, {what}.", "base")
    head = report_or_404(head_id, user)
    return {"base": base_called(said, head, user), "head": head}


def _id(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def read_change(text: str) -> str:
    """A change from an address, '' for none. Raises Problem `malformed`."""
    if text and text not in Change.values:
        raise Problem("malformed", f"change: saw {text[:40]!r}, send one of {', '.join(Change.values)}.", "change")
    return text


@dataclass(frozen=True)
class Counted:
    """How many tests changed so."""

    change: Change
    count: int

    @property
    def tone(self) -> str:
        """A change that happened to no test is no alarm."""
        return MEANINGS[self.change][0] if self.count else "quiet"

    @property
    def meaning(self) -> str:
        return MEANINGS[self.change][1]


def _shown(request: HttpRequest, found: Compared, head: Report) -> dict[str, Any]:
    change = read_change(request.GET.get("change", ""))
    page = Paginator(found.rows(change), ROWS_PAGE).get_page(request.GET.get("page"))
    page.object_list = rows_of(found, page.object_list, head)
    counts = found.counts
    return {
        "counts": [Counted(each, counts[each]) for each in Change],
        "tests": len(found.test),
        "change": Change(change) if change else None,
        "page": page,
    }
