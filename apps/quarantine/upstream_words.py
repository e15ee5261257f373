"""What the platforms of upstream's list are here, and the verb by which a maintainer says what a word means."""

import datetime
from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from apps.audit.enums import Action
from apps.audit.services import Actor, Subject, record
from apps.core.errors import Problem, written
from apps.platforms.models import Platform
from apps.quarantine.disabled_list import WORDS, Reach, identity, is_askable, reach
from apps.quarantine.models import UpstreamDisabled, UpstreamWord
from apps.quarantine.services import REASON_MAX
from apps.results.models import Test


@dataclass(frozen=True)
class Known:
    """What is known about words: the in-tree platforms by slug, and what maintainers said (None: no platform here)."""

    platforms: dict[str, Platform]
    named: dict[str, str | None]

    def reach(self, words: list[str]) -> Reach:
        return reach(words, self.platforms, self.named)

    def is_known(self, word: str) -> bool:
        return word in self.platforms or word in self.named or word in WORDS


def known() -> Known:
    """Two queries."""
    in_tree = Platform.objects.filter(kind=Platform.Kind.IN_TREE).order_by("slug")
    named = UpstreamWord.objects.values_list("word", "platform__slug")
    return Known({platform.slug: platform for platform in in_tree}, dict(named))


@dataclass(frozen=True)
class Disabled:
    """A line of the list, with what its platforms are here."""

    line: UpstreamDisabled
    reach: Reach
    platforms: tuple[Platform, ...]


def read(lines: list[UpstreamDisabled], known: Known) -> list[Disabled]:
    """Lines with what they come to here."""
    found = []
    for line in lines:
        at = known.reach(line.words)
        found.append(Disabled(line, at, tuple(known.platforms[slug] for slug in at.here)))
    return found


def about(test: Test) -> list[Disabled]:
    """The lines that name a test, under its name now or before, on whatever device. Two queries where there is none.

    Upstream's list leaves the file out, as its runner does: tests of one class and name in two files are both meant.
    """
    numbers = [identity(test.class_name, test.name)]
    files = {test.file}
    for old in Test.objects.filter(alias__new=test):
        numbers.append(identity(old.class_name, old.name))
        files.add(old.file)
    found = UpstreamDisabled.objects.filter(identities__overlap=numbers)
    lines = [line for line in found if not line.file or line.file in files]
    return read(lines, known()) if lines else []


@dataclass(frozen=True)
class Unknown:
    """A word that nobody knows, and how many lines it leaves without effect. `is_askable`: somebody may say what it
    means; a placeholder stays what it is."""

    word: str
    lines: int
    is_askable: bool


def unknown_words(known: Known) -> list[Unknown]:
    """The words of the list that nobody knows, the most frequent first. One query."""
    said: Counter[str] = Counter()
    for words in UpstreamDisabled.objects.exclude(words=[]).values_list("words", flat=True):
        said.update(words)
    return [Unknown(word, lines, is_askable(word)) for word, lines in said.most_common() if not known.is_known(word)]


def found(given: dict[str, Any], unknown: list[Unknown]) -> QuerySet[UpstreamDisabled]:
    """The list, by name, narrowed by `q` (part of a name) and `unknown` (only what is without effect)."""
    lines = UpstreamDisabled.objects.all()
    if text := given.get("q"):
        lines = lines.filter(said__icontains=text)
    if given.get("unknown"):
        asked = Q(pk=None)
        for one in unknown:
            asked |= Q(words__contains=[one.word])
        lines = lines.filter(asked)
    return lines


@transaction.atomic
def name_word(
    *, word: str, platform: Platform | None, reason: str, actor: Actor, now: datetime.datetime
) -> UpstreamWord:
    """Say which in-tree platform a word of the list means; None: none of those here.

    Raises Problem `malformed`: a platform outside PyTorch's tree, which upstream's list never means; a placeholder; a
    word that the list does not have or that is known already; no reason.
    """
    reason = written(reason, "reason", REASON_MAX)
    if platform is not None and platform.kind != Platform.Kind.IN_TREE:
        raise Problem(
            "malformed",
            f"platform: {platform.name} is outside PyTorch's tree, and upstream's list never means such a one. Choose "
            "an in-tree platform, or none.",
            "platform",
        )
    if not is_askable(word):
        raise Problem("malformed", f"word: {word!r} names no platform, and never all. It stays without effect.", "word")
    asked = {one.word for one in unknown_words(known())}
    if word not in asked:
        raise Problem("malformed", f"word: {word[:50]!r} is none that waits for an answer: look again.", "word")
    made = UpstreamWord.objects.create(word=word, platform=platform, reason=reason, by=actor.label[:200], at=now)
    where = platform.name if platform else "no platform here"
    record(
        action=Action.UPSTREAM_WORD_NAMED,
        actor=actor,
        subject=Subject("upstreamword", word, word),
        summary=f"“{word}” in upstream's list of disabled tests is {where}",
        after={"platform": platform.slug if platform else ""},
        reason=reason,
        now=now,
    )
    return made
