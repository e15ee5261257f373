"""What became of a decision after it stood in the log, told by the app that knows: the log itself never changes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from apps.audit.models import Event


@dataclass(frozen=True)
class Note:
    """One thing to say beside a decision: a word of the table STATUS, a text, and where to look."""

    state: str
    text: str
    href: str = ""
    link: str = ""


Source = Callable[[Event], Iterable[Note]]
_sources: list[Source] = []


def register(source: Source) -> None:
    """Let an app say what it knows about decisions. It is asked on the page of each."""
    _sources.append(source)


def notes_of(event: Event) -> list[Note]:
    """Everything that is known about a decision beside its record."""
    return [note for source in _sources for note in source(event)]
