"""A page as its reader sees it: what stands in `<main>`, as text, by the section it stands in."""

from collections import Counter
from collections.abc import Iterable
from html.parser import HTMLParser
from typing import Any, Protocol

READ = {"h1", "th", "td", "dt", "dd", "li"}
BLOCKS = {"div", "p", "dl", "dt", "dd", "ul", "ol", "li", "details", "summary", "blockquote", "br"}


class Answer(Protocol):
    """What Django's test client answers."""

    @property
    def content(self) -> bytes: ...


class Page(HTMLParser):
    """Everything by the `aria-labelledby` of its section, '' outside of one. Runs of white space are one space."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.html = answer.content.decode()
        self.heading = ""
        self.tables: dict[str, list[tuple[str, ...]]] = {}
        self.facts: dict[str, dict[str, str]] = {}
        self.items: dict[str, list[str]] = {}
        self.links: list[str] = []
        self.text = ""
        self.sections: list[str] = [""]
        self.ids: list[str] = []
        self._open: list[list[str]] = []
        self._row: list[str] = []
        self._in_head = False
        self._term = ""
        # Header and footer are the same on every page.
        self.feed(self.html.partition("<main")[2].partition("</main>")[0])
        self.text = " ".join(self.text.split())
        # A label or a link to an id that is there twice leads to the first.
        twice = sorted(name for name, count in Counter(self.ids).items() if count > 1)
        assert not twice, f"ids that stand there more than once: {twice}"

    @property
    def section(self) -> str:
        return self.sections[-1]

    def handle_starttag(self, tag: str, attributes: Iterable[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if name := given.get("id"):
            self.ids.append(name)
        if tag == "section":
            self.sections.append(given.get("aria-labelledby") or "")
        elif tag == "thead":
            self._in_head = True
        elif tag == "tr":
            self._row = []
        elif tag == "a":
            self.links.append(given.get("href") or "")
        if tag in BLOCKS or "sub" in (given.get("class") or "").split():
            self.handle_data(" ")  # stands on a line of its own
        if tag in READ:
            self._open.append([])

    def handle_data(self, data: str) -> None:
        self.text += data
        for texts in self._open:
            texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in BLOCKS:
            self.handle_data(" ")
        if tag in READ:
            self._close(tag, " ".join("".join(self._open.pop()).split()))
        elif tag == "section":
            self.sections.append("")
        elif tag == "thead":
            self._in_head = False
        elif tag == "tr" and not self._in_head:
            self.tables.setdefault(self.section, []).append(tuple(self._row))

    def _close(self, tag: str, text: str) -> None:
        if tag == "h1":
            self.heading = text
        elif tag in {"th", "td"}:
            self._row.append(text)
        elif tag == "dt":
            self._term = text
        elif tag == "dd":
            self.facts.setdefault(self.section, {})[self._term] = text
        else:
            self.items.setdefault(self.section, []).append(text)


def problem(answer: Any) -> tuple[int, str, dict[str, Any]]:
    """A refusal as a program sees it: status, content type, body."""
    return answer.status_code, answer.headers["Content-Type"], answer.json()


def problem_body(code: str, detail: str, field: str | None = None) -> tuple[int, str, dict[str, Any]]:
    """What `problem` gives for a refusal of the table of codes."""
    from django.conf import settings

    from apps.core.errors import CODES

    body = {
        "type": f"{settings.BASE_URL}/docs/errors/{code}",
        "title": CODES[code].title,
        "status": CODES[code].status,
        "code": code,
        "detail": detail,
        "next_step": CODES[code].next_step,
    }
    return CODES[code].status, "application/problem+json", body | ({"field": field} if field else {})
