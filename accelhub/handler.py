"""How a WSGI server's call becomes a request of Django's."""

from typing import Any

from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.http import HttpRequest, HttpResponseBase
from django.utils.http import parse_header_parameters


class Request(WSGIRequest):
    """A request in UTF-8. Django reads form and query in whatever codec of Python's a Content-Type names, before any
    middleware: `charset=rot13` is a crash on every address, `unicode_escape` smuggles in what is no text."""

    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        self.content_type, self.content_params = parse_header_parameters(meta.get("CONTENT_TYPE", ""))


class Handler(WSGIHandler):
    request_class = Request

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        """The answer; to HEAD its headers alone, for servers complain about a body."""
        response = super().get_response(request)
        if request.method == "HEAD":
            if response.streaming:
                response.streaming_content = []  # type: ignore[attr-defined]
            else:
                response.content = b""  # type: ignore[attr-defined]
        return response
