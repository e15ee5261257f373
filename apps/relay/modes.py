"""What the hub does in each mode: one table, printed at /policy/. Source: docs/operator.md, "Modes".

A hub is adopted step by step: first it stands behind today's relay and listens (observer), then it also computes what
it would do itself (shadow), then it is the relay (active).
"""

from dataclasses import dataclass

from django.conf import settings

from apps.core.errors import Problem

OBSERVER, SHADOW, ACTIVE = "observer", "shadow", "active"


@dataclass(frozen=True)
class Mode:
    """One row: which doors are open, and what leaves the hub."""

    name: str
    takes_webhooks: bool
    dispatches: bool
    takes_callbacks: bool
    takes_results: bool
    publishes_checks: bool
    meaning: str

    @property
    def compares(self) -> bool:
        """Whether what the hub would do is held against what the relay did."""
        return self.takes_webhooks and not self.dispatches


MODES: dict[str, Mode] = {
    mode.name: mode
    for mode in (
        Mode(OBSERVER, False, False, False, True, False, "stands behind the relay: keeps and passes on its results"),
        Mode(SHADOW, True, False, False, True, False, "also computes what it would do, and compares"),
        Mode(ACTIVE, True, True, True, True, True, "is the relay; takes the end of what another had dispatched"),
    )
}


def current() -> Mode:
    """The mode that ACCELHUB_MODE names."""
    return MODES[settings.MODE]


def require(is_open: bool, what: str) -> None:
    """Raises Problem `other_mode` where the mode keeps a door shut. `what` says what came, and where it belongs."""
    if not is_open:
        raise Problem("other_mode", f"This hub runs in the mode {settings.MODE}: {what}.")
