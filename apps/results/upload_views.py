"""The door of reports. A plain view: REST framework would read the body before its caller is known."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt

from apps.core.access import signed
from apps.core.clock import now
from apps.core.errors import Problem, problem_response
from apps.relay import callbacks, identity
from apps.results import meta, origins, quotas, uploads
from apps.results.incoming import FILE, META, Receiver, too_large


@csrf_exempt
@signed
def upload(request: HttpRequest) -> HttpResponse:
    """`POST /api/v1/reports/`: a CI job uploads its test reports.

    `Authorization: Bearer <OIDC token>`, multipart/form-data with one or more `file` parts and `meta`, a JSON object
    (docs/reports.md). Answers 202 `{"id", "receipt", "status": "received"|"duplicate"}`, or 200 `{"status": "ignored"}`
    for an unlisted repository, of which nothing is read. Refusals of status 401, 403, 409 and 429 are counted. Raises
    Problem: `malformed`, `too_large`, `token_*`, `identity_*`, `claims_contradict`, `never_dispatched`,
    `report_conflict`, `report_removed`, `rate_limited`, `quota_used`, `unavailable`.
    """
    if request.method != "POST":
        return problem_response(Problem("method", "Send a POST.", headers={"Allow": "POST"}))
    moment = now()
    caller, standing = None, None
    receiver = Receiver(request)
    try:
        _refuse_shape(request)
        caller = identity.verify(identity.bearer_token(request.headers.get("Authorization", "")))
        quotas.check_rate(caller.numbers[0])
        sources = origins.sources_of(caller)
        if not sources:
            standing = callbacks.resolve(identity=caller, now=moment)
        origin = origins.origin_of_repository(caller, standing, moment)
        if origin is None and not sources:
            return JsonResponse({"status": "ignored"})
        said = meta.read(_read_body(request, receiver))
        taken = uploads.take(
            identity=caller,
            origin=origin or origins.origin_in_tree(caller, sources, said.platform),
            meta=said,
            files=receiver.taken,
            now=moment,
        )
    except Problem as problem:
        if problem.row.status in callbacks.COUNTED_STATUSES:
            callbacks.count_rejection(problem=problem, identity=caller, standing=standing, now=moment)
        raise
    finally:
        receiver.forget()
    receipt = settings.BASE_URL + reverse("reports:report", args=[taken.report])
    return JsonResponse({"id": str(taken.report), "receipt": receipt, "status": taken.status}, status=202)


def _refuse_shape(request: HttpRequest) -> None:
    """What can be refused without reading the body."""
    if request.content_type != "multipart/form-data":
        seen = str(request.content_type)[:60]
        raise Problem("malformed", f"Content-Type: saw {seen!r}, send multipart/form-data.", "Content-Type")
    length = request.headers.get("Content-Length", "0")
    if length.isdecimal() and int(length) > quotas.UPLOAD_MAX_BYTES + quotas.ENVELOPE_BYTES:
        raise too_large(int(length))


def _read_body(request: HttpRequest, receiver: Receiver) -> bytes:
    """Read the body's parts: the meta is returned, the files are with the receiver. Raises Problem."""
    request.upload_handlers = [receiver]
    try:
        fields, _ = request.POST, request.FILES
    except MultiPartParserError as error:
        raise Problem("malformed", f"The body is no multipart/form-data: {error}") from None
    if FILE in fields:
        raise Problem("malformed", "file: is a plain field. Send a file: curl -F file=@report.xml.", FILE)
    if receiver.meta is not None:
        return receiver.meta
    if META not in fields:
        raise Problem("malformed", "meta: is missing. Send a JSON object: curl -F meta=@meta.json.", META)
    return str(fields[META]).encode("utf-8", "surrogatepass")
