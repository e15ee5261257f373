"""What two states of the allowlist differ in, entry by entry. Pure; the import, the sync and the drift page ask it."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from apps.platforms.allowlist import Entry


class Kind(enum.StrEnum):
    """What became of an entry. Exactly one holds: a change of level goes before a change of details."""

    ADDED = "added"
    REMOVED = "removed"
    RAISED = "raised"
    LOWERED = "lowered"
    CHANGED = "changed"


# What an entry says beside its level, in the order in which a difference names it.
DETAILS = ("device", "oncalls", "events")


@dataclass(frozen=True)
class Difference:
    """One entry that differs. `before` is None for a repository that was not known, `after` for one that left."""

    kind: Kind
    before: Entry | None
    after: Entry | None

    @property
    def entry(self) -> Entry:
        """The entry on the side that has one; before goes first, so that a known name keeps its spelling."""
        entry = self.before or self.after
        assert entry is not None
        return entry

    @property
    def full_name(self) -> str:
        return self.entry.full_name

    @property
    def details(self) -> list[str]:
        """The details that differ; none where an entry comes or goes."""
        if self.before is None or self.after is None:
            return []
        return [name for name in DETAILS if getattr(self.before, name) != getattr(self.after, name)]

    @property
    def summary(self) -> str:
        """The difference as a sentence."""
        old, new = self.before.level if self.before else 0, self.after.level if self.after else 0
        if self.before is None:
            return f"{self.full_name} listed at L{new}"
        if self.after is None:
            return f"{self.full_name} taken off the allowlist, from L{old}"
        if old != new:
            return f"{self.full_name} {'raised' if new > old else 'lowered'} from L{old} to L{new}"
        return f"{self.full_name}: {' and '.join(self.details)} changed"


def compare(before: Iterable[Entry], after: Iterable[Entry]) -> list[Difference]:
    """What `after` has otherwise than `before`, in the order of `after`; then what it lacks, in the order of `before`.

    Names are compared without regard to case, and a name that is only spelled otherwise is no difference. An entry of
    `before` at level 0 is a repository that is known and not listed.
    """
    old = {entry.key: entry for entry in before}
    new = {entry.key: entry for entry in after}
    found = []
    for key, entry in new.items():
        known = old.get(key)
        kind = _kind(known, entry)
        if kind is not None:
            found.append(Difference(kind, known, entry))
    found += [Difference(Kind.REMOVED, entry, None) for key, entry in old.items() if key not in new and entry.level > 0]
    return found


def _kind(before: Entry | None, after: Entry) -> Kind | None:
    if before is None or before.level == 0:
        return Kind.ADDED
    if after.level != before.level:
        return Kind.RAISED if after.level > before.level else Kind.LOWERED
    if any(getattr(before, name) != getattr(after, name) for name in DETAILS):
        return Kind.CHANGED
    return None
