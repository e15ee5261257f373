"""Tests and skip messages by number: PostgreSQL keeps them, each process remembers the tests' digests.

Looking up the 600,000 tests of a known suite asks the database once. What is new is written with COPY in short
committed steps; one lock lets steps commit in the order of their numbers, so that "newer than the last number I know"
misses nothing. A step that is lost is found missing, and written, by whoever comes next.
"""

import hashlib
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from apps.core.errors import Problem
from apps.core.text import storable
from apps.results.models import Alias, Reason, Test
from apps.results.names.canonical import (
    DIGEST_BYTES,
    Canonical,
    Canonicals,
    Original,
    Spelling,
    apart,
    digest_of,
)

Ids = NDArray[np.int64]
Halves = NDArray[np.uint64]

# Locks of PostgreSQL, each for one short transaction. Any numbers that nobody else uses.
_TESTS_LOCK, _SEARCH_LOCK = (74_051_200, 1), (74_051_200, 2)
# New names a step: each step holds the lock for a few tenths of a second.
STEP = 20_000
# Names that are in hand at a time.
CHUNK = 65_536
# Rows a query of the refresh: 5 MB.
_REFRESH_ROWS = 200_000
_ROW = np.dtype([("id", ">i8"), ("high", ">u8"), ("low", ">u8")])
_REFRESH = """
SELECT string_agg(int8send(id) || uuid_send(digest), ''::bytea ORDER BY id)
FROM (SELECT id, digest FROM results_test WHERE id > %s ORDER BY id LIMIT %s) AS newer
"""


class Known(NamedTuple):
    """Digests of tests in two halves, sorted by the high one, with their ids; `last` is the highest id."""

    highs: Halves
    lows: Halves
    ids: Ids
    last: int


_NOTHING = Known(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int64), 0)
# What this process knows of each database. Arrays are replaced, never changed: threads may go on reading theirs.
_remembered: dict[tuple[str, str], Known] = {}
_remembering = threading.Lock()


def _database() -> tuple[str, str]:
    return str(connection.settings_dict["HOST"]), str(connection.settings_dict["NAME"])


def known() -> Known:
    """Every test that is committed, remembered from the last time and refreshed: one query where nothing is new."""
    return _refreshed(_remembered.get(_database(), _NOTHING))


def _refreshed(before: Known) -> Known:
    after = before
    while (newer := _newer_than(after.last)) is not None:
        after = _merged(after, newer)
        if len(newer) < _REFRESH_ROWS:
            break
    # What a transaction sees may be its own, and be rolled back: only what is committed is remembered.
    if after is not before and not connection.in_atomic_block:
        with _remembering:
            if _remembered.get(_database(), _NOTHING).last < after.last:
                _remembered[_database()] = after
    return after


def _newer_than(last: int) -> NDArray[np.void] | None:
    with connection.cursor() as cursor:
        cursor.execute(_REFRESH, [last, _REFRESH_ROWS])
        row = cursor.fetchone()
    return None if row is None or row[0] is None else np.frombuffer(row[0], _ROW)


def _merged(before: Known, newer: NDArray[np.void]) -> Known:
    order = np.argsort(newer["high"], kind="stable")
    highs = newer["high"][order].astype(np.uint64)
    at = np.searchsorted(before.highs, highs)
    return Known(
        np.insert(before.highs, at, highs),
        np.insert(before.lows, at, newer["low"][order].astype(np.uint64)),
        np.insert(before.ids, at, newer["id"][order].astype(np.int64)),
        int(newer["id"][-1]),
    )


def find(among: Known, digests: Sequence[bytes]) -> Ids:
    """The id of each digest, 0 where it is not among them. All 128 bits are compared."""
    halves = np.frombuffer(b"".join(digests), ">u8").astype(np.uint64).reshape(-1, 2)
    highs, lows = halves[:, 0], halves[:, 1]
    at = np.searchsorted(among.highs, highs)
    ids = np.zeros(len(highs), np.int64)
    left = np.arange(len(highs))
    # As a rule one round. One more for each further test whose digest begins with the same 64 bits.
    while left.size:
        left = left[at[left] < len(among.ids)]
        left = left[among.highs[at[left]] == highs[left]]
        is_hit = among.lows[at[left]] == lows[left]
        ids[left[is_hit]] = among.ids[at[left[is_hit]]]
        left = left[~is_hit]
        at[left] += 1
    return ids


# --- a report's tests ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Identified:
    """A report's tests, row by row: their ids, no two alike, and the number of their spelling in `spellings`.

    `collisions` were kept apart from a test whose identity they share; `added` were new to the catalogue.
    """

    tests: Ids
    spelling: NDArray[np.int32]
    spellings: tuple[Spelling, ...]
    collisions: int
    added: int


class Identifying:
    """The work of `identify`, chunk by chunk. At most CHUNK names are in hand; of the others only numbers are kept."""

    def __init__(self, words: frozenset[str]) -> None:
        self._canonicals = Canonicals(words)
        self._known = known()
        self._is_taken: NDArray[np.bool_] = np.zeros(self._known.last + 1, np.bool_)
        self.collisions = self.added = 0

    @property
    def spellings(self) -> tuple[Spelling, ...]:
        return self._canonicals.spellings

    def chunk(self, originals: Sequence[tuple[str, str, str]]) -> tuple[Ids, list[int]]:
        """Ids and spellings of some names."""
        digests, spelling = self._canonicals.digests(originals)
        ids = self._ids(digests, lambda at: self._canonicals.of(*originals[at]))
        doubles = self._doubles(ids)
        self.collisions += len(doubles)
        number = 1
        while len(doubles):
            others = [apart(Original(*originals[at]), number) for at in doubles]
            for at, other in zip(doubles, others, strict=True):
                spelling[at] = self._canonicals.number(other.spelling)
            ids[doubles] = self._ids([digest_of(*other[:3]) for other in others], others.__getitem__)
            doubles = doubles[self._doubles(ids[doubles])]
            number += 1
        return ids, spelling

    def _ids(self, digests: Sequence[bytes], identity_at: Callable[[int], Canonical]) -> Ids:
        """The ids of digests; those that nobody knew are written first, under the identity they are of."""
        ids = find(self._known, digests)
        new = {digests[at]: identity_at(at)[:3] for at in np.flatnonzero(ids == 0).tolist()}
        if not new:
            return ids
        self.added += add(new)
        self._known = _refreshed(self._known)
        return find(self._known, digests)

    def _doubles(self, ids: Ids) -> NDArray[np.intp]:
        """The rows whose id an earlier row has. The others' ids are taken."""
        if (more := self._known.last + 1 - len(self._is_taken)) > 0:
            self._is_taken = np.append(self._is_taken, np.zeros(more, np.bool_))
        is_double = np.ones(len(ids), np.bool_)
        is_double[np.unique(ids, return_index=True)[1]] = False
        is_double |= self._is_taken[ids]
        self._is_taken[ids] = True
        return np.flatnonzero(is_double)


def identify(originals: Iterable[tuple[str, str, str]], words: frozenset[str]) -> Identified:
    """The tests of a report, (file, class, name) as it writes them, each of which it names once.

    New ones are written in committed steps of their own, so not inside a transaction. A suite that is known costs one
    query, however many tests it has.
    """
    work = Identifying(words)
    ids: list[Ids] = []
    spelling: list[NDArray[np.int32]] = []
    for chunk in _chunks(originals):
        of_chunk, numbers = work.chunk(chunk)
        ids.append(of_chunk)
        spelling.append(np.array(numbers, np.int32))
    return Identified(
        np.concatenate(ids) if ids else np.empty(0, np.int64),
        np.concatenate(spelling) if spelling else np.empty(0, np.int32),
        work.spellings,
        work.collisions,
        work.added,
    )


def _chunks(originals: Iterable[tuple[str, str, str]]) -> Iterator[list[tuple[str, str, str]]]:
    walk = iter(originals)
    while chunk := list(islice(walk, CHUNK)):
        yield chunk


def add(names: Mapping[bytes, tuple[str, str, str]]) -> int:
    """Write names that are not there yet, (file, class, name) by digest, in committed steps. Returns how many.

    Whoever runs this at the same time, and wherever it is stopped: each name gets one row. Raises RuntimeError inside a
    transaction: the lock would be held, and what is written unseen, until that ends.
    """
    walk = iter(names.items())
    written = 0
    while step := list(islice(walk, STEP)):
        written += _add_step(step)
    return written


def _add_step(step: Sequence[tuple[bytes, tuple[str, str, str]]]) -> int:
    # Read before the lock is held: what the step before has written, and others.
    before = known()
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", _TESTS_LOCK)
        ids = find(_refreshed(before), [digest for digest, _ in step])
        missing = [step[at] for at in np.flatnonzero(ids == 0).tolist()]
        if missing:
            with cursor.copy("COPY results_test (digest, file, class_name, name) FROM STDIN") as copy:
                copy.write(
                    "".join(f"{digest.hex()}\t" + "\t".join(map(_copied, parts)) + "\n" for digest, parts in missing)
                )
    return len(missing)


def _copied(text: str) -> str:
    """A text as COPY's own format spells it. Nearly every one is spelled as it is."""
    if text.isprintable() and "\\" not in text:
        return text
    return storable(text).translate(_COPY_ESCAPES)


_COPY_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


# --- skip messages ---------------------------------------------------------------------------------------------------

# So many different messages of one report are kept; the rest count as one that says so.
REASONS_MAX = 5_000
OVERFLOW = f"(more than {REASONS_MAX:,} different reasons in this report: this is one of the rest)"


def reason_ids(messages: Iterable[str]) -> dict[str, int]:
    """The id of each distinct message. The first REASONS_MAX are kept, the rest share the id of OVERFLOW."""
    distinct = list(dict.fromkeys(messages))
    kept = distinct[:REASONS_MAX]
    texts = {message: storable(message) for message in kept + [OVERFLOW] * (len(distinct) > REASONS_MAX)}
    digests = {message: _reason_digest(text) for message, text in texts.items()}
    ids = _reasons(digests.values())
    if new := {digests[message]: text for message, text in texts.items() if digests[message] not in ids}:
        Reason.objects.bulk_create(
            [Reason(digest=digest, text=text) for digest, text in new.items()], ignore_conflicts=True
        )
        ids |= _reasons(new)
    found = {message: ids[digest] for message, digest in digests.items()}
    if len(distinct) <= REASONS_MAX:
        return found
    return found | dict.fromkeys(distinct[REASONS_MAX:], found[OVERFLOW])


def _reason_digest(text: str) -> uuid.UUID:
    return uuid.UUID(bytes=hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest())


def _reasons(digests: Iterable[uuid.UUID]) -> dict[uuid.UUID, int]:
    return dict(Reason.objects.filter(digest__in=list(digests)).values_list("digest", "id"))


# --- renamed tests ---------------------------------------------------------------------------------------------------


def renamed(tests: Ids) -> Ids:
    """The same tests, renamed ones by their new id. Where a report names both, its rows stay two."""
    pairs = np.array(Alias.objects.order_by("old_id").values_list("old_id", "new_id"), np.int64).reshape(-1, 2)
    pairs = pairs[np.isin(pairs[:, 0], tests) & ~np.isin(pairs[:, 1], tests)]
    # Of several earlier names of one test that a report has at once, the first is read as it.
    pairs = pairs[np.unique(pairs[:, 1], return_index=True)[1]]
    pairs = pairs[np.argsort(pairs[:, 0])]
    if not len(pairs):
        return tests
    at = np.minimum(np.searchsorted(pairs[:, 0], tests), len(pairs) - 1)
    return np.where(pairs[at, 0] == tests, pairs[at, 1], tests)


def earlier_names(tests: Iterable[int]) -> dict[int, int]:
    """The former numbers of renamed tests, each with its new one: what rows of older reports stand under."""
    return dict(Alias.objects.filter(new__in=list(tests)).values_list("old_id", "new_id"))


# --- search ----------------------------------------------------------------------------------------------------------

SEARCH_STEP = 5_000
# Of a test's words so much is searched: whoever looks for more knows the beginning.
_SEARCHED_CHARACTERS = 1_000
_SEARCH_FILL = """
INSERT INTO results_searchedtest (test_id, words)
SELECT id, left(concat_ws(' ', file, class_name, name), %s) FROM results_test
WHERE id > (SELECT COALESCE(max(test_id), 0) FROM results_searchedtest) ORDER BY id LIMIT %s
"""


def fill_search(*, steps: int) -> int:
    """Put up to `steps` × SEARCH_STEP more tests under the search index, step by step. Returns how many; 0 also where
    another process is at it."""
    filled = 0
    for _ in range(steps):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", _SEARCH_LOCK)
            if cursor.fetchone() != (True,):
                break
            cursor.execute(_SEARCH_FILL, [_SEARCHED_CHARACTERS, SEARCH_STEP])
            filled += cursor.rowcount
            if cursor.rowcount < SEARCH_STEP:
                break
    return filled


# A word of fewer letters has no trigram, so the index could not help.
SEARCH_MIN = 3
# So many words of a question are looked for.
_SEARCH_WORDS_MAX = 8


def search(text: str, *, limit: int, only_public: bool = False) -> list[Test]:
    """Tests whose file, class and name hold every word of `text`, small and capital letters alike, the longest known
    first; `only_public`: those that a public report names. Raises Problem `malformed` for a word that is too short to
    search for, and without any."""
    words = text.split()[:_SEARCH_WORDS_MAX]
    if not words or min(map(len, words)) < SEARCH_MIN:
        raise Problem("malformed", f"q: saw {text[:40]!r}, send words of at least {SEARCH_MIN} characters.", "q")
    likes = ["%" + re.sub(r"([%_\\])", r"\\\1", storable(word)) + "%" for word in words]
    where = " AND ".join(["words ILIKE %s"] * len(likes))
    public = "JOIN results_publictest p ON p.test_id = s.test_id " if only_public else ""
    return list(
        Test.objects.raw(
            "SELECT t.* FROM results_searchedtest s JOIN results_test t ON t.id = s.test_id "  # noqa: S608
            f"{public}WHERE {where} "
            "ORDER BY s.test_id LIMIT %s",
            [*likes, limit],
        )
    )
