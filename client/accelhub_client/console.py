"""What is printed: results to standard output, everything about the way there to standard error."""

import sys
import time

TEXT_MAX = 500
_BAR_WIDTH = 30
_REDRAW_SECONDS = 0.1
_QUARTERS_FROM = 10_000_000  # bytes; below it is over before anybody wonders


def clean(said: object, most: int = TEXT_MAX) -> str:
    """Text of others on one line: no control characters (a terminal obeys them), nothing that a CI takes for a
    command, at most so many characters."""
    text = str(said)[: most * 4]
    text = "".join(sign if sign.isprintable() else " " for sign in text)
    text = " ".join(text.split()).replace("##", "# #")
    if text.startswith("::"):
        text = f": {text[1:]}"
    return text if len(text) <= most else text[: most - 1] + "…"


def size(count: int) -> str:
    """Bytes as people read them."""
    if count < 1_000:
        return f"{count} bytes"
    return f"{count / 1_000:.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def note(text: str) -> None:
    """A line about what is going on."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def result(text: str) -> None:
    """A line of what was asked for."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Progress:
    """How far something is: a bar on a terminal, else a line per quarter where there is much of it."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, total
        self._done, self._drawn_at, self._quarter = 0, 0.0, 0
        self._is_terminal = sys.stderr.isatty()

    def restart(self) -> None:
        """From the beginning again."""
        self._done, self._quarter = 0, 0

    def advance(self, count: int) -> None:
        """So many bytes more are done."""
        self._done += count
        if self._is_terminal:
            if time.monotonic() - self._drawn_at >= _REDRAW_SECONDS:
                self._draw()
        elif self._total >= _QUARTERS_FROM:
            self._say_quarter()

    def end(self) -> None:
        """Leave the bar's line."""
        if self._is_terminal:
            self._draw()
            sys.stderr.write("\n")

    def _draw(self) -> None:
        self._drawn_at = time.monotonic()
        share = min(1.0, self._done / self._total) if self._total else 1.0
        bar = "#" * int(share * _BAR_WIDTH)
        sys.stderr.write(f"\r{self._what} [{bar:<{_BAR_WIDTH}}] {share:4.0%} of {size(self._total)} ")
        sys.stderr.flush()

    def _say_quarter(self) -> None:
        quarter = self._done * 4 // self._total
        if self._quarter < quarter < 4:
            self._quarter = quarter
            note(f"{self._what}: {quarter * 25} % of {size(self._total)}")
