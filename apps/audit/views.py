"""The decision log's pages."""

from django.conf import settings
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render

from apps.audit import checkpoints, publishing, selectors
from apps.audit.export import MEDIA_TYPE, Scope
from apps.audit.exporting import lines_of_log
from apps.audit.forms import DecisionForm
from apps.audit.notes import notes_of
from apps.core.access import public
from apps.core.clock import now
from apps.core.rendering import render_page

PAGE = 50


@public
def decisions(request: HttpRequest) -> HttpResponse:
    """`/decisions/`: public decisions, newest first: `?about=&subject=&action=&actor=&since=&until=&page=`."""
    form = DecisionForm(request.GET)
    page = Paginator(selectors.decisions_found(form.filters()), PAGE).get_page(request.GET.get("page"))
    rows = [(event, selectors.body_of(event)) for event in page.object_list]
    verification = selectors.last_verification()
    context = {
        "form": form,
        "page": page,
        "rows": rows,
        "query": request.GET.urlencode(),
        "verification": verification,
        "now": now(),
    }
    return render_page(request, "audit/decision_list.html", context)


@public
def decision(request: HttpRequest, seq: int) -> HttpResponse:
    """`/decisions/<seq>/`: one decision, whole, with its place in the chain."""
    event = selectors.decision_or_404(seq)
    context = {
        "event": event,
        "body": selectors.body_of(event),
        "changes": selectors.changes_of(event),
        "notes": notes_of(event),
        "verification": selectors.last_verification(),
        "now": now(),
    }
    return render(request, "audit/decision_detail.html", context)


@public
def export_file(request: HttpRequest) -> StreamingHttpResponse:
    """`/decisions/export.jsonl`: the whole log in order, from which anyone proves the chain (docs/decisions.md). Of
    events that are no public decisions it has the hashes alone."""
    return saved_export()


def saved_export() -> StreamingHttpResponse:
    """The public export as a file to keep."""
    answer = StreamingHttpResponse(lines_of_log(Scope.PUBLIC, now=now()), content_type=MEDIA_TYPE)
    answer.headers["Content-Disposition"] = 'attachment; filename="accelhub-decisions.jsonl"'
    answer.headers["Cache-Control"] = "no-store"  # the next one has more
    return answer


@public
def checkpoint_list(request: HttpRequest) -> HttpResponse:
    """`/decisions/checkpoints/`: signed checkpoints of the log, newest first, and what to do with one: `?page=`."""
    key = publishing.signing_key()
    public_key = checkpoints.public_key_of(key) if key else ""
    context = {
        "page": Paginator(selectors.checkpoints_found(), PAGE).get_page(request.GET.get("page")),
        "public_key": public_key,
        "key_id": checkpoints.key_id(public_key) if key else "",
        "base_url": settings.BASE_URL,
        "now": now(),
    }
    return render_page(request, "audit/checkpoint_list.html", context)


@public
def checkpoint_file(request: HttpRequest, number: int) -> HttpResponse:
    """`/decisions/checkpoints/<number>.json`: one checkpoint, to be kept elsewhere."""
    checkpoint = selectors.checkpoint_or_404(number)
    answer = HttpResponse(checkpoint.file, content_type="application/json")
    answer.headers["Content-Disposition"] = f'attachment; filename="{checkpoint.file_name}"'
    return answer
