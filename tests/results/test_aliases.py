"""Renamed tests: read under their new name, in no chains, with an event of the log."""

import datetime
import threading

import numpy as np
import pytest
from django.db import IntegrityError, connections, transaction

from apps.audit.enums import ActorKind
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.audit.services import Actor
from apps.core.errors import Problem
from apps.results import catalogue
from apps.results.aliases import alias_test, remove_alias
from apps.results.models import Alias, Test
from tests.factories.tests import catalogued
from tests.live import ClonedDatabase

NOW = datetime.datetime(2026, 9, 1, 12, tzinfo=datetime.UTC)
ADA = Actor(ActorKind.USER, "u-1", "ada")


def alias(old: Test, new: Test, reason: str = "renamed in #123") -> Alias:
    return alias_test(old=old, new=new, reason=reason, actor=ADA, now=NOW)


def renamed(*tests: Test) -> list[int]:
    return catalogue.renamed(np.array([test.pk for test in tests], np.int64)).tolist()


@pytest.mark.django_db
def test_an_alias_is_written_with_its_event() -> None:
    old, new = catalogued("test_old"), catalogued("test_new")
    made = alias(old, new, " renamed in #123 ")
    assert Alias.objects.values().get() == {
        "id": made.pk,
        "old_id": old.pk,
        "new_id": new.pk,
        "reason": "renamed in #123",
        "by": "ada",
        "created_at": NOW,
    }
    body = body_of(Event.objects.get())
    assert {key: body[key] for key in ("action", "actor", "subject", "summary", "before", "after", "reason")} == {
        "action": "test.aliased",
        "actor": {"kind": "user", "id": "u-1", "label": "ada"},
        "subject": {"kind": "test", "id": str(old.pk), "label": "test_x TestX test_old"},
        "summary": "test_x TestX test_old is called test_x TestX test_new by now",
        "before": {},
        "after": {"new": str(new.pk)},
        "reason": "renamed in #123",
    }


@pytest.mark.django_db
def test_rows_are_read_under_the_new_name() -> None:
    old, new, other, older = (catalogued(name) for name in ("test_old", "test_new", "test_other", "test_older"))
    assert renamed(old, other) == [old.pk, other.pk]
    alias(old, new)
    assert renamed(old, other) == [new.pk, other.pk]
    assert renamed(other, old) == [other.pk, new.pk]
    assert renamed(other) == [other.pk]
    assert renamed() == []
    # A report that names both has two tests; so has one that names two earlier names of one.
    assert renamed(old, new) == [old.pk, new.pk]
    alias(older, new)
    assert renamed(old, older, other) == [new.pk, older.pk, other.pk]
    assert renamed(older) == [new.pk]


@pytest.mark.django_db
def test_an_alias_is_taken_back() -> None:
    old, new = catalogued("test_old"), catalogued("test_new")
    made = alias(old, new)
    remove_alias(alias=made, reason="it was another test", actor=ADA, now=NOW)
    assert renamed(old) == [old.pk]
    body = body_of(Event.objects.get(seq=2))
    assert (body["action"], body["before"], body["after"], body["reason"]) == (
        "test.alias_removed",
        {"new": str(new.pk)},
        {},
        "it was another test",
    )
    with pytest.raises(Problem) as caught:
        remove_alias(alias=Alias(pk=1_000_000, old=old, new=new), reason="again", actor=ADA, now=NOW)
    assert caught.value.code == "not_found"
    assert Event.objects.count() == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("pair", "code", "field"),
    [
        ("aa", "malformed", "new"),  # itself
        ("ac", "alias_taken", "old"),  # it has a new name already
        ("bc", "alias_taken", "old"),  # a → b → c
        ("ca", "alias_taken", "old"),  # c → a → b
        ("ba", "alias_taken", "old"),  # in a circle
    ],
)
def test_chains_and_circles_are_refused(pair: str, code: str, field: str) -> None:
    tests = {letter: catalogued(f"test_{letter}") for letter in "abc"}
    alias(tests["a"], tests["b"])
    with pytest.raises(Problem) as caught:
        alias(tests[pair[0]], tests[pair[1]])
    assert (caught.value.code, caught.value.field) == (code, field)
    assert list(Alias.objects.values_list("old_id", "new_id")) == [(tests["a"].pk, tests["b"].pk)]
    assert Event.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("reason", ["", "  ", "x" * 501])
def test_a_reason_is_needed(reason: str) -> None:
    with pytest.raises(Problem) as caught:
        alias(catalogued("test_a"), catalogued("test_b"), reason)
    assert (caught.value.code, caught.value.field) == ("malformed", "reason")


@pytest.mark.django_db
@pytest.mark.parametrize("pair", ["aa", "bc", "ca", "ba"])
def test_postgresql_refuses_them_too(pair: str) -> None:
    tests = {letter: catalogued(f"test_{letter}") for letter in "abc"}
    alias(tests["a"], tests["b"])
    with pytest.raises(IntegrityError), transaction.atomic():
        Alias.objects.create(old=tests[pair[0]], new=tests[pair[1]], reason="by hand", by="nobody", created_at=NOW)


def test_two_aliases_at_once_make_no_chain(cloned_database: ClonedDatabase) -> None:
    tests = [catalogued(f"test_{letter}") for letter in "abc"]
    together, refused = threading.Barrier(2), []

    def write(number: int) -> None:
        together.wait()
        try:
            alias(tests[number], tests[number + 1])
        except Problem as problem:
            refused.append(problem.code)
        connections.close_all()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == ["alias_taken"]
    assert (Alias.objects.count(), Event.objects.count()) == (1, 1)
