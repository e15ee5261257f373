"""A refusal of the hub, as it says it: problem+json (RFC 9457)."""

from accelhub_client.console import clean
from accelhub_client.transport import Answer

_LINES = (("detail", "seen"), ("field", "field"), ("next_step", "next"))


def sentence(answer: Answer) -> str:
    """Status, title and code of an answer, then detail, field and next step on lines of their own, as far as said."""
    said = answer.json()
    head = f"HTTP {answer.status} {clean(said.get('title') or '')}".rstrip()
    if said.get("code"):
        head += f" ({clean(said['code'])})"
    return "\n".join((head, *(f"  {label}: {clean(said[name])}" for name, label in _LINES if said.get(name))))


def brief(answer: Answer) -> str:
    """Status and detail of an answer, without a full stop."""
    said = answer.json()
    detail = clean(said.get("detail") or said.get("title") or "").rstrip(".")
    return f"HTTP {answer.status}: {detail}" if detail else f"HTTP {answer.status}"
