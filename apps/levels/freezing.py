"""Freezing the evidence for a higher level: the rows as they count now, the policy, and what they come to."""

import dataclasses
import datetime
from dataclasses import dataclass
from typing import Any

from apps.gate.replay import DAYS, replay
from apps.governance.evaluation import DAY, Evaluation, Facts
from apps.governance.facts import facts_of, notes_of
from apps.governance.waiving import waivers_of
from apps.levels.bundle import FORMAT, evaluation_of, exact, table
from apps.platforms.models import LevelInterval, Repository
from apps.platforms.policy import MATURE
from apps.policies.policy import Policy, Use, written
from apps.policies.selectors import policy_at
from apps.results.counting import DISPATCH_COLUMNS, JOB_COLUMNS
from apps.results.input_rows import FORMULAS, input_rows
from apps.results.metrics import PULL_REQUESTS
from apps.results.models import UploadPart


@dataclass(frozen=True)
class Item:
    """One item of evidence, for one measure that people judge."""

    measure: str
    title: str
    text: str = ""
    url: str = ""


def freeze(
    repository: Repository, *, target: int, items: tuple[Item, ...], now: datetime.datetime
) -> tuple[dict[str, Any], Evaluation]:
    """The bundle for raising a repository to a level, and what it comes to. `items`: what is shown by evidence.

    The figures are counted from the rows that stand in it, not from the hub's rollups: who has the bundle has all that
    was looked at.
    """
    policy = policy_at(now)
    facts = facts_of([repository], now=now)[repository.pk]
    last = facts.today - DAY
    first = facts.today - max(row.window_days for row in policy.of(target, Use.RISE)) * DAY
    rows = input_rows(repository_id=repository.pk, scope=PULL_REQUESTS, first=first, last=last, now=now)
    held = LevelInterval.objects.filter(repository=repository, started_at__lte=now).order_by("started_at")
    bundle: dict[str, Any] = {
        "format": FORMAT,
        "formulas": FORMULAS,
        "frozen_at": now.isoformat(),
        "repository": {
            "public_id": str(repository.public_id),
            "full_name": repository.full_name,
            "github_id": repository.github_id,
            "level": repository.level,
            "platform": repository.platform.name,
        },
        "target": target,
        "policy": {"number": policy.number, "says": written(policy)},
        "window": {"first": first.isoformat(), "last": last.isoformat(), "scope": PULL_REQUESTS},
        "jobs": table(rows.jobs, JOB_COLUMNS),
        "dispatches": table(rows.dispatches, DISPATCH_COLUMNS),
        "tenure": table(
            (
                {
                    "level": one.level,
                    "from": one.started_at.isoformat(),
                    "until": one.ended_at.isoformat() if one.ended_at else None,
                    "imported": int(one.is_imported),
                    "decision": one.event_seq,
                }
                for one in held
            ),
            ("level", "from", "until", "imported", "decision"),
        ),
        "facts": _facts(facts),
        "replay": _replay(repository, target, policy, now),
        "reports": _reports(repository, first, now),
        "evidence": [dataclasses.asdict(item) for item in items],
        "waivers": waivers_of([repository], now=now).get(repository.pk, {}),
        "notes": list(notes_of([repository], now=now).get(repository.pk, ())),
    }
    evaluation = evaluation_of(bundle)
    bundle["stated"] = {
        "verdict": evaluation.verdict.value,
        "sentence": evaluation.sentence,
        "results": [result.written() for result in evaluation.results],
    }
    return bundle, evaluation


def _replay(repository: Repository, target: int, policy: Policy, now: datetime.datetime) -> dict[str, Any] | None:
    """What blocking would have done lately: part of every promotion to L4, which lets a repository block."""
    if target != MATURE:
        return None
    asked = [row.window_days for row in policy.of(target, Use.RISE) if row.measure == "wrongly_blocked_rate"]
    return exact(replay(repository, days=max([DAYS, *asked]), now=now).written())


def _facts(facts: Facts) -> dict[str, Any]:
    """What criteria read beside the rows."""
    return {
        "has_other_jobs": facts.has_other_jobs,
        "answered_at": _text(facts.answered_at),
        "asked_at": _text(facts.asked_at),
        "level_since": _text(facts.level_since),
        "pairs": {day.isoformat(): count for day, count in facts.pairs.items()},
        "refusals": {
            "refused": facts.refusals.refused,
            "requests": facts.refusals.requests,
            "since": facts.refusals.since.isoformat(),
        }
        if facts.refusals
        else None,
        "oncalls": list(facts.oncalls),
        "verified": facts.verified,
        "ended": facts.ended,
        "trips": None if facts.trips is None else {day.isoformat(): count for day, count in facts.trips.items()},
    }


def _reports(repository: Repository, first: datetime.date, now: datetime.datetime) -> list[list[str]]:
    """The reports that came in the window: their ids, each with the hash of one of its files."""
    begin = datetime.datetime.combine(first, datetime.time(), datetime.UTC)
    parts = UploadPart.objects.filter(
        upload__report__repository=repository, upload__report__received_at__range=(begin, now)
    )
    found = parts.order_by("upload__report__received_at", "upload__report_id", "sha256")
    return [[str(report), sha256] for report, sha256 in found.values_list("upload__report__public_id", "sha256")]


def _text(moment: datetime.datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def asked_evidence(policy: Policy, target: int) -> list[str]:
    """The measures of a level that a promotion brings evidence for."""
    return [row.measure for row in policy.of(target, Use.RISE) if row.of.is_evidence]
