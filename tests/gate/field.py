"""A field with a repository that blocks, and what it says of pull requests: rows as the doors leave them."""

import datetime
import hashlib
from dataclasses import dataclass
from typing import Any

from apps.gate import services
from apps.gate.rows import Question
from apps.gate.selectors import Told
from apps.platforms.models import LevelInterval, Repository
from apps.relay.models import Commit, Dispatch, GraphState, Job, MergeBase
from apps.results.models import Finding, Report, Test, Upload
from apps.results.names.canonical import DIGEST_BYTES
from tests.factories.jobs import dispatch, job
from tests.factories.listing import listed
from tests.factories.reports import report
from tests.factories.tests import catalogued

KESTREL, FEN = "kestrel/torch", "fen/torch"
# The hub's clock in these tests: long past, so that no wait is running out by itself.
SENT = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
HEAD, NUMBER, PLACE = "cd" * 20, 7, 100


def hours(count: float) -> datetime.datetime:
    return SENT + datetime.timedelta(hours=count)


def main_sha(place: int) -> str:
    """The commit at a place of main."""
    return f"{place:040x}"


def failure(words: str) -> bytes:
    """A fingerprint."""
    return hashlib.blake2b(words.encode(), digest_size=DIGEST_BYTES).digest()


@dataclass
class Field:
    """Kestrel blocks, Fen is at L3; the pull request left main at PLACE."""

    kestrel: Repository
    fen: Repository

    @classmethod
    def make(cls) -> "Field":
        made = listed({KESTREL: 4, FEN: 3}, now=hours(-500))
        for place in range(PLACE - 30, PLACE + 1):
            Commit.objects.create(
                sha=main_sha(place), parent_sha=main_sha(place - 1), position=place, placed_at=hours(-48)
            )
        return cls(made[KESTREL], made[FEN])

    def sends(self, *repositories: Repository, number: int = NUMBER, sha: str = HEAD, at: float = 0) -> None:
        """The webhook of a head is sent to repositories (default: Kestrel), and its merge base is known."""
        first: Dispatch | None = None
        for repository in repositories or (self.kestrel,):
            made = dispatch(
                repository, at=hours(at), pr_number=number, head_sha=sha, action="synchronize", title="A change"
            )
            if first is not None:
                other = made.delivery
                made.delivery = first.delivery
                made.save()
                other.delete()
            first = first or made
        MergeBase.objects.get_or_create(
            pr_number=number,
            head_sha=sha,
            defaults={"state": GraphState.KNOWN, "base_sha": main_sha(PLACE), "due_at": hours(at)},
        )

    def says(
        self,
        conclusion: str = "",
        *,
        repository: Repository | None = None,
        number: int | None = NUMBER,
        sha: str = HEAD,
        at: float = 0.5,
        **values: Any,
    ) -> Job:
        """A job of a repository (default: Kestrel) about a head: running, or ended ten minutes after `at`."""
        repository = repository or self.kestrel
        sent = Dispatch.objects.filter(
            repository=repository, delivery__head_sha=sha, delivery__pr_number=number
        ).order_by("-pk")
        about = {"dispatch": sent.first(), "head_sha": sha, "pr_number": number}
        return job(repository, conclusion, at=hours(at), **(about | values))

    def reports(
        self,
        red: dict[str, str],
        *,
        of: Job | None = None,
        repository: Repository | None = None,
        sha: str = HEAD,
        at: float = 0.6,
        **values: Any,
    ) -> Report:
        """A ready report: of a job, or of a commit. `red`: by the test's name the failure's words."""
        repository = of.repository if of else repository or self.kestrel
        times = {"received_at": hours(at), "changed_at": hours(at), "parsed_at": hours(at)}
        run = {"run_id": of.run_id} if of else {}
        made = report(
            repository,
            failed=len(red),
            passed=5,
            **({"head_sha": sha, "level": repository.level} | times | run | values),
        )
        Upload.objects.filter(report=made).update(
            job=of, tests=5 + len(red), failing=len(red), is_whole=True, received_at=hours(at)
        )
        for name, words in red.items():
            Finding.objects.create(report=made, test=self.test(name), outcome="failed", fingerprint=failure(words))
        return made

    def test(self, name: str) -> Test:
        return catalogued(name)

    def fails(self, red: dict[str, str], **values: Any) -> Job:
        """A job that fails, with a report of its red tests."""
        failed = self.says("failure", **values)
        self.reports(red, of=failed, sha=failed.head_sha, at=values.get("at", 0.5) + 0.2)
        return failed

    def asks(self, at: float = 1, *, number: int | None = NUMBER, sha: str = HEAD) -> Told:
        """What the gate says of the head, so many hours after the dispatch."""
        found = services.ask(Question(sha, number, hours(at)))
        assert found is not None
        return found

    def told(self, at: float = 1, **question: Any) -> tuple[str, list[tuple[str, str, str]]]:
        """The same in short, of Kestrel's part: verdict, and of each requirement type, effect and sentence."""
        found = self.asks(at, **question).answer
        own = [one for one in found.requirements if one.repository == KESTREL]
        return str(found.verdict), [(str(one.type), str(one.effect), one.sentence) for one in own]

    def levels(self, repository: Repository, *levels: tuple[int, float, float | None]) -> None:
        """A repository's history: (level, from hour, until hour)."""
        LevelInterval.objects.filter(repository=repository).delete()
        for level, start, end in levels:
            LevelInterval.objects.create(
                repository=repository,
                level=level,
                started_at=hours(start),
                ended_at=None if end is None else hours(end),
                event_seq=1,
            )
