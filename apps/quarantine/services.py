"""Verbs on quarantines. Each is one transaction: state by compare-and-set, members, exclusions, one event of the log.

Who may do what is the edges' to ask; `is_bound` says that the platform's cap and budget hold for whoever does it.
"""

import datetime
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction
from django.db.models import F
from django.urls import reverse

from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.services import Actor, Subject, record
from apps.core.errors import Problem, written
from apps.core.wakeups import wake
from apps.platforms.models import Platform
from apps.platforms.policy import PUBLIC_FROM
from apps.quarantine import rules as rule_versions
from apps.quarantine.enums import ReasonClass, Source, State, Verb
from apps.quarantine.models import Member, Quarantine
from apps.quarantine.policy import PLACEHOLDERS, Rules, next_state
from apps.quarantine.room import SOURCE, earlier_of, last_report, room_of
from apps.quarantine.topics import QUARANTINE_BROKEN
from apps.results.exclusions import exclude, fits, move_end, parts_of
from apps.results.models import Test
from apps.results.namesakes import all_numbers

REASON_MAX = 2_000
OWNER_MAX = 39
TESTS_MAX = 1_000
_SAID_MAX = 100
_ISSUE_MAX = 300

ACTIONS: dict[Verb, Action] = {
    Verb.NAME_PLATFORM: Action.QUARANTINE_NAMED,
    Verb.PUT_IN_FORCE: Action.QUARANTINE_PUT_IN_FORCE,
    Verb.DECLINE: Action.QUARANTINE_DECLINED,
    Verb.RENEW: Action.QUARANTINE_RENEWED,
    Verb.PROPOSE_RELEASE: Action.QUARANTINE_RELEASE_PROPOSED,
    Verb.KEEP: Action.QUARANTINE_KEPT,
    Verb.RELEASE: Action.QUARANTINE_RELEASED,
    Verb.REOPEN: Action.QUARANTINE_REOPENED,
    Verb.EXPIRE: Action.QUARANTINE_EXPIRED,
    Verb.VANISH: Action.QUARANTINE_VANISHED,
    Verb.BREAK: Action.QUARANTINE_BROKEN,
}


def subject_of(quarantine: Quarantine) -> Subject:
    """The quarantine as the log names it."""
    return Subject("quarantine", str(quarantine.public_id), label_of(quarantine))


def label_of(quarantine: Quarantine) -> str:
    """What it is about, in a line: its pattern, its only test, or how many tests."""
    where = quarantine.platform.name if quarantine.platform else f"“{quarantine.said}”"
    what = quarantine.pattern
    if not what:
        first = Member.objects.filter(quarantine=quarantine).select_related("test").first()
        what = str(first.test)[:150] if first and quarantine.tests == 1 else f"{quarantine.tests:,} tests"
    return f"{what} on {where} ({quarantine.variant})"[:200]


@transaction.atomic
def propose(
    *,
    platform: Platform | None,
    variant: str,
    tests: Iterable[int],
    source: Source,
    reason_class: ReasonClass,
    reason: str,
    owner: str,
    actor: Actor,
    now: datetime.datetime,
    pattern: str = "",
    issue_url: str = "",
    is_aggregate: bool = False,
    previous: Quarantine | None = None,
    said: str = "",
) -> Quarantine:
    """Propose a quarantine of some tests, or of a pattern, on one platform and variant. It has no effect yet.

    Without a platform it is without effect until somebody names it: `said` is what was written instead, and a
    placeholder never means all. What was in force before for one of the tests is continued. Raises Problem:
    `malformed` by field, `quarantine_open` where a test stands in another open one.
    """
    numbers = sorted(set(tests))
    reason, owner = written(reason, "reason", REASON_MAX), written(owner, "owner", OWNER_MAX)
    _check_issue(issue_url)
    if bool(numbers) == bool(pattern):
        raise Problem("malformed", "tests: name one test or more, or a pattern, and not both.", "tests")
    if len(numbers) > TESTS_MAX:
        raise Problem("malformed", f"tests: saw {len(numbers)}, send at most {TESTS_MAX}, or a pattern.", "tests")
    if not variant.strip():
        raise Problem("malformed", "variant: it is empty, name the variant (default).", "variant")
    if pattern:
        parts_of(pattern)
        numbers = fitted(platform, variant, pattern) if platform else []
    elif Test.objects.filter(pk__in=numbers).count() != len(numbers):
        raise Problem("malformed", "tests: one of them is no test of the catalogue.", "tests")
    _check_standing(platform, variant, numbers)
    if platform is not None and previous is None:
        previous = next(
            iter(earlier_of(platform, variant, numbers, pattern, rule_versions.in_force(now), now=now)), None
        )
    if previous is not None and Quarantine.objects.filter(previous=previous).exists():
        previous = None  # it has been continued already; caps and budget count it all the same
    quarantine = Quarantine(
        platform=platform,
        said=said.strip()[:_SAID_MAX],
        variant=variant,
        pattern=pattern,
        is_aggregate=is_aggregate,
        state=State.PROPOSED if platform else State.UNCLEAR,
        source=source,
        reason_class=ReasonClass(reason_class),
        reason=reason,
        owner=owner,
        issue_url=issue_url,
        previous=previous,
        tests=len(numbers),
        proposed_at=now,
        changed_at=now,
    )
    _open(quarantine, numbers)
    _record(quarantine, Action.QUARANTINE_PROPOSED, actor, now, f"Quarantine proposed: {label_of(quarantine)}", reason)
    return quarantine


def _open(quarantine: Quarantine, numbers: list[int]) -> None:
    """Write the record and its members. Raises Problem `quarantine_open`."""
    try:
        with transaction.atomic():
            quarantine.save()
            Member.objects.bulk_create(
                Member(quarantine=quarantine, platform=quarantine.platform, variant=quarantine.variant, test_id=number)
                for number in numbers
            )
    except IntegrityError:
        _check_standing(quarantine.platform, quarantine.variant, numbers)
        raise _standing(quarantine.pattern) from None


def _check_standing(platform: Platform | None, variant: str, numbers: Iterable[int]) -> None:
    """Whether one of these tests already stands there, under any of its names: PostgreSQL knows one name alone. Raises
    Problem `quarantine_open`."""
    standing = Member.objects.filter(platform=platform, variant=variant, test__in=all_numbers(numbers), is_open=True)
    taken = standing.select_related("test").first() if platform else None
    if taken:
        raise _standing(str(taken.test)[:150])


def _standing(what: str) -> Problem:
    return Problem(
        "quarantine_open",
        f"tests: {what} already stands in an open quarantine of this platform and variant. Look at that one, or leave "
        "the test out.",
        "tests",
    )


def fitted(platform: Platform, variant: str, pattern: str) -> list[int]:
    """The tests of the platform's last report of the variant that a pattern fits: what a pattern counts as."""
    report = last_report(platform, variant)
    if report is None or not report.outcomes_name:
        return []
    from apps.results import outcomes  # pyarrow: only where it is needed

    numbers = outcomes.read(report.outcomes_name, ["test"])["test"].tolist()
    beginning = parts_of(pattern)[0].removesuffix(".py").partition("*")[0]
    found = Test.objects.filter(pk__in=numbers, file__startswith=beginning)
    return [test.pk for test in found.order_by("pk") if fits(pattern, test)]


def name_platform(
    *, quarantine: Quarantine, revision: int, platform: Platform, actor: Actor, now: datetime.datetime
) -> Quarantine:
    """Say which platform an unclear one is about: it is proposed there. Raises Problem as `propose`."""
    with transaction.atomic():
        try:
            with transaction.atomic():
                moved = _move(quarantine, Verb.NAME_PLATFORM, revision, now, platform=platform)
                Member.objects.filter(quarantine=quarantine).update(platform=platform)
        except IntegrityError:
            raise Problem(
                "quarantine_open", "platform: one of its tests already stands in an open quarantine there.", "platform"
            ) from None
        _note(moved, Verb.NAME_PLATFORM, actor, now, f"“{moved.said}” is {platform.name}: {label_of(moved)}", "")
    return moved


def put_in_force(
    *,
    quarantine: Quarantine,
    revision: int,
    is_bound: bool,
    actor: Actor,
    now: datetime.datetime,
    effective_from: datetime.datetime | None = None,
    expires_at: datetime.datetime | None = None,
) -> Quarantine:
    """Results that come from `effective_from` on (never before now) are judged by it, until it expires.

    Raises Problem: `malformed` (dates; longer than the rules' expiry), `quarantine_cap`, `quarantine_budget`,
    `quarantine_renewed` (it continues records that used up their renewals), `quarantine_stale`.
    """
    rules = rule_versions.in_force(now)
    begins = max(effective_from or now, now)
    most = begins + datetime.timedelta(hours=rules.expiry)
    ends = expires_at or most
    if not begins < ends <= most:
        raise Problem(
            "malformed", f"expires_at: saw {ends:%Y-%m-%d %H:%M}, send at most {most:%Y-%m-%d %H:%M}.", "expires_at"
        )
    with transaction.atomic():
        platform = _locked_platform(quarantine)
        _following(quarantine, Verb.PUT_IN_FORCE, revision)
        numbers = _remeasured(quarantine, platform)
        if is_bound:
            _check_room(quarantine, platform, len(numbers), rules, begins, ends, now)
        moved = _move(
            quarantine,
            Verb.PUT_IN_FORCE,
            revision,
            now,
            effective_from=begins,
            expires_at=ends,
            tests=len(numbers),
        )
        exclude(
            source=SOURCE,
            source_id=str(moved.public_id),
            url=url_of(moved),
            platform=platform,
            variant=moved.variant,
            tests=[] if moved.pattern else numbers,
            pattern=moved.pattern,
            reason=moved.reason[:500],
            from_at=begins,
            until_at=ends,
        )
        summary = f"In quarantine until {ends:%Y-%m-%d}: {label_of(moved)}"
        _note(moved, Verb.PUT_IN_FORCE, actor, now, summary, moved.reason)
    return moved


def renew(
    *, quarantine: Quarantine, revision: int, reason: str, is_bound: bool, actor: Actor, now: datetime.datetime
) -> Quarantine:
    """Let it hold for another while from its expiry on. Raises Problem: `malformed` (no reason), `quarantine_renewed`
    (the rules allow no further one), `quarantine_over` (its time is over: what came since was judged without it),
    `quarantine_budget`, `quarantine_stale`."""
    rules = rule_versions.in_force(now)
    reason = written(reason, "reason", REASON_MAX)
    with transaction.atomic():
        platform = _locked_platform(quarantine)
        _following(quarantine, Verb.RENEW, revision)
        if quarantine.renewals + len(_continued(quarantine)) >= rules.renewals:
            raise _renewed(rules)
        expires = quarantine.expires_at
        assert expires is not None  # the database refuses one in force without
        if expires <= now:
            raise Problem(
                "quarantine_over", f"expires_at: its time was over at {expires:%Y-%m-%d %H:%M}. Propose it again."
            )
        ends = expires + datetime.timedelta(hours=rules.expiry)
        if is_bound:
            _check_budget(quarantine, platform, quarantine.tests, rules, expires, ends, now)
        moved = _move(quarantine, Verb.RENEW, revision, now, expires_at=ends, renewals=F("renewals") + 1)
        move_end(source=SOURCE, source_id=str(moved.public_id), until_at=ends, now=now)
        _note(moved, Verb.RENEW, actor, now, f"Renewed until {ends:%Y-%m-%d}: {label_of(moved)}", reason)
    return moved


def propose_release(
    *,
    quarantine: Quarantine,
    revision: int,
    reason: str,
    actor: Actor,
    now: datetime.datetime,
    fix_sha: str = "",
    fix_place: int | None = None,
) -> Quarantine:
    """Say that it may go: from which commit on (`fix_place`, on main) passes prove it. It stays in force meanwhile."""
    reason = written(reason, "reason", REASON_MAX)
    with transaction.atomic():
        moved = _move(quarantine, Verb.PROPOSE_RELEASE, revision, now, fix_sha=fix_sha, fix_place=fix_place)
        _note(moved, Verb.PROPOSE_RELEASE, actor, now, f"Release proposed: {label_of(moved)}", reason)
    return moved


def keep(*, quarantine: Quarantine, revision: int, reason: str, actor: Actor, now: datetime.datetime) -> Quarantine:
    """Refuse a proposed release: it holds until it expires."""
    reason = written(reason, "reason", REASON_MAX)
    with transaction.atomic():
        moved = _move(quarantine, Verb.KEEP, revision, now, fix_sha="", fix_place=None)
        _note(moved, Verb.KEEP, actor, now, f"Release refused: {label_of(moved)}", reason)
    return moved


def decline(*, quarantine: Quarantine, revision: int, reason: str, actor: Actor, now: datetime.datetime) -> Quarantine:
    """Refuse a proposal, or one whose platform nobody knows."""
    return _end(quarantine, Verb.DECLINE, revision, reason, actor, now)


def release(
    *, quarantine: Quarantine, revision: int, reason: str, proof: str, actor: Actor, now: datetime.datetime
) -> Quarantine:
    """Take it back: whoever calls this has asked proof(), and `proof` says what it found. Results from now on are
    judged without it."""
    return _end(quarantine, Verb.RELEASE, revision, reason, actor, now, proof)


def end(*, quarantine: Quarantine, verb: Verb, reason: str, actor: Actor, now: datetime.datetime) -> Quarantine:
    """The ends that time and evidence bring: EXPIRE, VANISH, BREAK. Of the last its platform's people are told."""
    if verb not in (Verb.EXPIRE, Verb.VANISH, Verb.BREAK):
        raise ValueError(f"{verb} ends no quarantine")
    return _end(quarantine, verb, quarantine.revision, reason, actor, now)


def reopen(*, quarantine: Quarantine, revision: int, reason: str, actor: Actor, now: datetime.datetime) -> Quarantine:
    """A new flake after a release: it is proposed again, as the same record with its history."""
    reason = written(reason, "reason", REASON_MAX)
    with transaction.atomic():
        try:
            with transaction.atomic():
                moved = _move(
                    quarantine,
                    Verb.REOPEN,
                    revision,
                    now,
                    ended_at=None,
                    end_reason="",
                    fix_sha="",
                    fix_place=None,
                    proposed_at=now,
                    reason=reason,
                )
                Member.objects.filter(quarantine=quarantine).update(is_open=True)
        except IntegrityError:
            raise Problem(
                "quarantine_open", "tests: one of them stands in another open quarantine meanwhile.", "tests"
            ) from None
        _note(moved, Verb.REOPEN, actor, now, f"Flaky again after its release: {label_of(moved)}", reason)
    return moved


# --- what the verbs share ---------------------------------------------------------------------------------------


def _end(
    quarantine: Quarantine,
    verb: Verb,
    revision: int,
    reason: str,
    actor: Actor,
    now: datetime.datetime,
    proof: str = "",
) -> Quarantine:
    reason = written(reason, "reason", REASON_MAX)
    with transaction.atomic():
        moved = _move(quarantine, verb, revision, now, ended_at=now, end_reason=reason)
        Member.objects.filter(quarantine=quarantine).update(is_open=False)
        move_end(source=SOURCE, source_id=str(moved.public_id), until_at=now, now=now)
        stands_on = f" ({proof})" if proof else ""
        event = _note(moved, verb, actor, now, f"{moved.get_state_display()}{stands_on}: {label_of(moved)}", reason)
        if verb is Verb.BREAK:
            wake(QUARANTINE_BROKEN, [str(event.seq)], now=now)
    return moved


def _following(quarantine: Quarantine, verb: Verb, revision: int) -> tuple[State, State]:
    """Its state, and what the verb makes of it. Raises Problem `quarantine_stale`, `quarantine_state`."""
    current = Quarantine.objects.get(pk=quarantine.pk)
    if current.revision != revision:
        raise Problem(
            "quarantine_stale",
            f"revision: saw {revision}, it is {current.revision} by now. Look at the quarantine again.",
            "revision",
        )
    after = next_state(State(current.state), verb)
    if after is None:
        raise Problem(
            "quarantine_state", f"It is “{current.get_state_display()}”: {Verb(verb).label} may not follow on that."
        )
    return State(current.state), after


def _move(quarantine: Quarantine, verb: Verb, revision: int, now: datetime.datetime, **columns: Any) -> Quarantine:
    """The one way from state to state. Raises Problem as `_following`."""
    before, after = _following(quarantine, verb, revision)
    moved = Quarantine.objects.filter(pk=quarantine.pk, state=before, revision=revision).update(
        state=after, revision=F("revision") + 1, changed_at=now, **columns
    )
    if not moved:
        raise Problem(
            "quarantine_stale", "revision: it has changed meanwhile. Look at the quarantine again.", "revision"
        )
    return Quarantine.objects.select_related("platform").get(pk=quarantine.pk)


def _locked_platform(quarantine: Quarantine) -> Platform:
    """Its platform, locked: caps are counted by one at a time. Raises Problem `quarantine_state` without one."""
    if quarantine.platform_id is None:
        raise Problem("quarantine_state", "platform: nobody has named it yet, so it can have no effect. Name it first.")
    return Platform.objects.select_for_update(no_key=True).get(pk=quarantine.platform_id)


def _remeasured(quarantine: Quarantine, platform: Platform) -> list[int]:
    """Its tests; of a pattern, those that it fits by now."""
    if not quarantine.pattern:
        return list(Member.objects.filter(quarantine=quarantine).values_list("test_id", flat=True))
    numbers = fitted(platform, quarantine.variant, quarantine.pattern)
    Member.objects.filter(quarantine=quarantine).exclude(test__in=numbers).delete()
    known = set(Member.objects.filter(quarantine=quarantine).values_list("test_id", flat=True))
    members = [
        Member(quarantine=quarantine, platform=platform, variant=quarantine.variant, test_id=number)
        for number in numbers
        if number not in known
    ]
    # A test that stands in a quarantine of its own stays there.
    Member.objects.bulk_create(members, ignore_conflicts=True)
    return list(Member.objects.filter(quarantine=quarantine).values_list("test_id", flat=True))


def _check_room(
    quarantine: Quarantine,
    platform: Platform,
    tests: int,
    rules: Rules,
    begins: datetime.datetime,
    ends: datetime.datetime,
    now: datetime.datetime,
) -> None:
    if len(_continued(quarantine)) > rules.renewals:
        raise _renewed(rules)
    room = room_of(platform, quarantine.variant, rules, now=now)
    if room.in_force + tests > room.cap:
        raise Problem(
            "quarantine_cap",
            f"cap_share: {room.in_force} tests are in force and this is {tests} more; {room.cap} may be at once on "
            f"{platform.name} ({quarantine.variant}). Release some, or ask a maintainer.",
        )
    _check_budget(quarantine, platform, tests, rules, begins, ends, now)


def _check_budget(
    quarantine: Quarantine,
    platform: Platform,
    tests: int,
    rules: Rules,
    begins: datetime.datetime,
    ends: datetime.datetime,
    now: datetime.datetime,
) -> None:
    room = room_of(platform, quarantine.variant, rules, now=now)
    asked = tests * ((ends - begins) / datetime.timedelta(days=1))
    if room.used_days + asked > room.budget_days:
        raise Problem(
            "quarantine_budget",
            f"budget_days: {room.used_days:.0f} test-days are used or given away and this asks for {asked:.0f} more; "
            f"{room.budget_days} may be used in {rules.budget_window / 24:.0f} days. Let it end earlier, or ask a "
            "maintainer.",
        )


def _continued(quarantine: Quarantine) -> list[Quarantine]:
    """The records that this one continues, whether it says so or not: each counts as a renewal."""
    if quarantine.platform is None:
        return []
    tests = Member.objects.filter(quarantine=quarantine).values_list("test_id", flat=True)
    rules, at = rule_versions.in_force(quarantine.proposed_at), quarantine.proposed_at
    found = earlier_of(quarantine.platform, quarantine.variant, tests, quarantine.pattern, rules, now=at)
    return [earlier for earlier in found if earlier.pk != quarantine.pk]


def _renewed(rules: Rules) -> Problem:
    return Problem(
        "quarantine_renewed",
        f"renewals: {rules.renewals} may follow on one another, records that were made again among them. "
        "Fix the test, or ask a maintainer to decide.",
    )


def _check_issue(url: str) -> None:
    """An address that a browser may be sent to, or none."""
    if url and (len(url) > _ISSUE_MAX or urlsplit(url).scheme != "https" or not urlsplit(url).netloc):
        raise Problem("malformed", f"issue_url: saw {url[:60]!r}, send an https address of an issue.", "issue_url")


def is_placeholder(said: str) -> bool:
    """Whether a platform's name says nothing."""
    return said.strip().lower() in PLACEHOLDERS


def url_of(quarantine: Quarantine) -> str:
    return reverse("quarantine:quarantine", args=[quarantine.public_id])


def is_public(platform: Platform | None) -> bool:
    """Whether anyone may see quarantines of a platform: as with its results, from L2 up."""
    if platform is None:
        return False
    return platform.kind == Platform.Kind.IN_TREE or platform.repositories.filter(level__gte=PUBLIC_FROM).exists()


def _note(quarantine: Quarantine, verb: Verb, actor: Actor, now: datetime.datetime, summary: str, reason: str) -> Event:
    return _record(quarantine, ACTIONS[verb], actor, now, summary, reason)


def _record(
    quarantine: Quarantine, action: Action, actor: Actor, now: datetime.datetime, summary: str, reason: str
) -> Event:
    quarantine.refresh_from_db()
    return record(
        action=action,
        actor=actor,
        subject=subject_of(quarantine),
        summary=summary[:500],
        after={
            "state": quarantine.state,
            "tests": quarantine.tests,
            "expires_at": quarantine.expires_at.isoformat() if quarantine.expires_at else "",
            "owner": quarantine.owner,
        },
        reason=reason,
        now=now,
        # What tests of a platform below L2 do stays its own.
        is_decision=is_public(quarantine.platform),
    )
