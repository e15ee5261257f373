"""Verbs on renamed tests. Aliases are applied when rows are read (catalogue.renamed): nothing stored is rewritten."""

import datetime

from django.db import IntegrityError, transaction

from apps.audit.enums import Action
from apps.audit.services import Actor, Subject, record
from apps.core.errors import Problem
from apps.results.models import Alias, Test

REASON_MAX = 500
# A name may be of any length; the log shows its beginning.
_LABEL_MAX = 200


@transaction.atomic
def alias_test(*, old: Test, new: Test, reason: str, actor: Actor, now: datetime.datetime) -> Alias:
    """Say that `old` is called `new` by now. Raises Problem `malformed` for a test and itself, a missing or overlong
    reason, and `alias_taken` where one of the two already stands in an alias that this one would chain to."""
    reason = reason.strip()
    if not reason or len(reason) > REASON_MAX:
        raise Problem(
            "malformed",
            f"reason: {len(reason)} characters, write 1 to {REASON_MAX} that say what was renamed.",
            "reason",
        )
    if old.pk == new.pk:
        raise Problem("malformed", f"new: it is the old test, {_label(old)}; name another.", "new")
    try:
        with transaction.atomic():
            alias = Alias.objects.create(old=old, new=new, reason=reason, by=actor.label, created_at=now)
    except IntegrityError:
        raise Problem(
            "alias_taken",
            f"old or new: {_label(old)} already has a new name, or one of the two stands at the other end of an alias. "
            "Remove that alias first, or name its new end.",
            "old",
        ) from None
    record(
        action=Action.TEST_ALIASED,
        actor=actor,
        subject=_subject(old),
        summary=f"{_label(old)} is called {_label(new)} by now",
        after={"new": _subject(new).id},
        reason=reason,
        now=now,
    )
    return alias


@transaction.atomic
def remove_alias(*, alias: Alias, reason: str, actor: Actor, now: datetime.datetime) -> None:
    """Take an alias back: its two tests are two again, in all history. Raises Problem `not_found` where it is gone."""
    old, new = alias.old, alias.new
    if Alias.objects.filter(pk=alias.pk).delete()[0] == 0:
        raise Problem("not_found", "This alias is gone already: look at the test again.")
    record(
        action=Action.TEST_ALIAS_REMOVED,
        actor=actor,
        subject=_subject(old),
        summary=f"{_label(old)} is not called {_label(new)}",
        before={"new": _subject(new).id},
        reason=reason,
        now=now,
    )


def _subject(test: Test) -> Subject:
    return Subject("test", str(test.pk), _label(test))


def _label(test: Test) -> str:
    return str(test)[:_LABEL_MAX]
