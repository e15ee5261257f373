"""The allowlist as others read it."""

import hashlib

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag
from django.views.decorators.http import require_safe

from apps.core.access import public
from apps.platforms.allowlist import dump
from apps.platforms.selectors import listing

# How long (seconds) a copy may be used unasked. Then a reader asks with its tag, and gets 304 while nothing changed.
FRESH_SECONDS = 60


@public
@require_safe
def published(request: HttpRequest) -> HttpResponseBase:
    """`GET /allowlist.yml`: the allowlist in force, in upstream's format. 304 to a reader that has it."""
    text = dump(listing()).encode()
    etag = quote_etag(hashlib.sha256(text).hexdigest())
    answer = HttpResponse(text, content_type="application/yaml; charset=utf-8")
    answer.headers["ETag"] = etag
    answer.headers["Cache-Control"] = f"public, max-age={FRESH_SECONDS}"
    return get_conditional_response(request, etag=etag, response=answer) or answer
