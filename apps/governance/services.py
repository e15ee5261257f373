"""Verbs on proposals: submit, return, resubmit, accept, withdraw."""

import contextlib
import dataclasses
import datetime
import hashlib
import secrets
from collections.abc import Iterator
from typing import Any

from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.accounts.services import actor_of
from apps.audit.chain import canonical
from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.services import HUB, Subject, record
from apps.core.errors import Problem
from apps.governance import policy
from apps.governance.enums import State, Verb
from apps.governance.models import Evidence, Proposal, Transition
from apps.governance.notices import announce
from apps.governance.policy import MOVES, PROPOSED_LEVEL, SUBMISSIONS_PER_DAY, WORDS_MAX, Draft, Item, Move
from apps.governance.selectors import evidence_of, is_colleague, known_repository
from apps.platforms.models import AllowlistEdit
from apps.platforms.policy import LEVELS
from apps.platforms.selectors import open_edit_of
from apps.platforms.services import add_member, list_repository

LEVEL = LEVELS[PROPOSED_LEVEL].code


def subject_of(proposal: Proposal) -> Subject:
    """The proposal as the log names it."""
    return Subject("proposal", str(proposal.public_id), proposal.full_name)


@transaction.atomic
def submit_proposal(*, draft: Draft, by: User, now: datetime.datetime) -> Proposal:
    """Propose a repository for L1.

    Raises Problem: `malformed` (the first finding about the draft), `already_listed`, `already_proposed` (one open
    proposal per repository), `rate_limited` (so many submissions a day).
    """
    _check(draft)
    # One submission of a person at a time, so that they are counted right.
    User.objects.select_for_update(no_key=True).get(pk=by.pk)
    recent = Proposal.objects.filter(proposer=by, submitted_at__gt=now - datetime.timedelta(days=1)).count()
    if recent >= SUBMISSIONS_PER_DAY:
        raise Problem("rate_limited", f"{recent} proposals in 24 hours are the most: submit this one tomorrow.")
    with _one_open_proposal(draft.full_name):
        proposal = Proposal.objects.create(proposer=by, submitted_at=now, changed_at=now, **_columns(draft))
    _add_evidence(proposal, draft.evidence)
    _note(proposal, Verb.SUBMIT, MOVES[None, Verb.SUBMIT], by, "", now)
    record(
        action=Action.PROPOSAL_SUBMITTED,
        actor=actor_of(by),
        subject=subject_of(proposal),
        summary=f"{proposal.full_name} proposed for {LEVEL}",
        after=_spelled(proposal),
        evidence=_digests(proposal),
        now=now,
        is_decision=False,
    )
    return proposal


@transaction.atomic
def resubmit_proposal(
    *, proposal: Proposal, draft: Draft, words: str, expected_revision: int, by: User, now: datetime.datetime
) -> None:
    """Bring a returned proposal back, completed. `words` say what changed; they may be empty.

    Raises Problem like `submit_proposal`, and `proposal_stale`.
    """
    _check(draft)
    locked, move = _locked(proposal, Verb.RESUBMIT, expected_revision, by)
    words = _words(words, move, locked, field="words")
    before = _spelled(locked)
    with _one_open_proposal(draft.full_name):
        _move(locked, move, now, revision=locked.revision + 1, **_columns(draft))
    _add_evidence(locked, draft.evidence)
    _note(locked, Verb.RESUBMIT, move, by, words, now)
    record(
        action=Action.PROPOSAL_RESUBMITTED,
        actor=actor_of(by),
        subject=subject_of(locked),
        summary=f"{locked.full_name} proposed for {LEVEL} again",
        before=before,
        after=_spelled(locked),
        reason=words,
        evidence=_digests(locked),
        now=now,
        is_decision=False,
    )


@transaction.atomic
def return_proposal(
    *, proposal: Proposal, words: str, expected_revision: int, by: User, now: datetime.datetime
) -> None:
    """Give a waiting proposal back to the vendor. `words` say what is missing.

    Raises Problem: `malformed` (no words), `recusal`, `proposal_stale`.
    """
    _turn(proposal, Verb.RETURN, Action.PROPOSAL_RETURNED, words, expected_revision, by, now)


@transaction.atomic
def withdraw_proposal(
    *, proposal: Proposal, words: str, expected_revision: int, by: User, now: datetime.datetime
) -> None:
    """Take an open proposal back. Raises Problem: `not_permitted` (it is another's), `proposal_stale`."""
    _turn(proposal, Verb.WITHDRAW, Action.PROPOSAL_WITHDRAWN, words, expected_revision, by, now)


@transaction.atomic
def accept_proposal(
    *, proposal: Proposal, reason: str, expected_revision: int, by: User, now: datetime.datetime
) -> Event:
    """Accept a waiting proposal: its repository is listed at L1 (where a file of upstream's is the authority, when that
    says so) and its proposer speaks for the platform, at once.

    Returns the public decision, which names the proposal and the digests of what was decided on. Raises Problem:
    `malformed` (no reason), `recusal`, `proposal_stale`, `already_listed`.
    """
    locked, move = _locked(proposal, Verb.ACCEPT, expected_revision, by)
    reason = _words(reason, move, locked, field="reason")
    actor = actor_of(by)
    repository, event = list_repository(
        full_name=locked.full_name,
        platform_name=locked.platform_name,
        device=locked.device,
        oncalls=locked.oncalls,
        events=locked.events,
        reason=reason,
        evidence={"proposal": str(locked.public_id), "revision": locked.revision} | _digests(locked),
        actor=actor,
        now=now,
    )
    _move(locked, move, now, platform=repository.platform, repository=repository)
    _note(locked, Verb.ACCEPT, move, by, reason, now, event_seq=event.seq)
    add_member(
        platform=repository.platform,
        user=locked.proposer,
        actor=actor,
        reason="proposal accepted",
        evidence={"proposal": str(locked.public_id)},
        now=now,
    )
    return event


@transaction.atomic
def put_back_proposal(*, edit_pk: int, now: datetime.datetime) -> bool:
    """Let an accepted proposal wait again, because upstream's file will not say what was decided. Returns whether this
    call did it: no proposal stood behind the decision, or another one of the repository is open, changes nothing."""
    edit = AllowlistEdit.objects.get(pk=edit_pk)
    accepted = Transition.objects.filter(event_seq=edit.event_seq, verb=Verb.ACCEPT).first()
    if accepted is None:
        return False
    locked = Proposal.objects.select_for_update().get(pk=accepted.proposal_id)
    is_newest = not locked.transitions.filter(pk__gt=accepted.pk).exists()
    others = Proposal.objects.filter(full_name__iexact=locked.full_name, state__in=policy.OPEN)
    if locked.state != State.ACCEPTED or not is_newest or others.exists():
        return False
    move = MOVES[State.ACCEPTED, Verb.PUT_BACK]
    _move(locked, move, now, platform=None, repository=None)
    transition = Transition.objects.create(
        proposal=locked,
        verb=Verb.PUT_BACK,
        state=move.to,
        revision=locked.revision,
        actor_label=HUB.label,
        words=edit.error,
        at=now,
        event_seq=edit.event_seq,
    )
    announce(transition, tells=move.tells, now=now)
    record(
        action=Action.PROPOSAL_PUT_BACK,
        actor=HUB,
        subject=subject_of(locked),
        summary=f"Proposal of {locked.full_name} for {LEVEL} {Verb.PUT_BACK.label}",
        before={"state": State.ACCEPTED.value},
        after={"state": move.to.value},
        reason=edit.error,
        evidence={"decision": edit.event_seq},
        now=now,
        is_decision=False,
    )
    return True


def _turn(
    proposal: Proposal,
    verb: Verb,
    action: Action,
    words: str,
    expected_revision: int,
    by: User,
    now: datetime.datetime,
) -> None:
    """A move that changes nothing but the state."""
    locked, move = _locked(proposal, verb, expected_revision, by)
    words = _words(words, move, locked, field="words")
    before = locked.state
    _move(locked, move, now)
    _note(locked, verb, move, by, words, now)
    record(
        action=action,
        actor=actor_of(by),
        subject=subject_of(locked),
        summary=f"Proposal of {locked.full_name} for {LEVEL} {verb.label}",
        before={"state": before},
        after={"state": move.to.value},
        reason=words,
        now=now,
        is_decision=False,
    )


# --- steps of the verbs -----------------------------------------------------------------------------------------


def _check(draft: Draft) -> None:
    for finding in policy.findings(draft):
        raise Problem("malformed", f"{finding.field}: {finding.text}", finding.field)
    for field in ("platform_name", "device"):
        _refuse_contact_in(getattr(draft, field), draft.contact, field)
    known = known_repository(draft.full_name)
    if known is not None and known.level >= PROPOSED_LEVEL:
        raise Problem(
            "already_listed",
            f"full_name: {known.full_name} is listed already, at {known.level_code}. To speak for it, ask its members "
            "or a maintainer.",
            "full_name",
        )
    if known is not None and (edit := open_edit_of(known)) is not None:
        raise Problem(
            "already_listed",
            f"full_name: decision #{edit.event_seq} about {known.full_name} waits for upstream's file. Wait for it, or "
            "ask a maintainer.",
            "full_name",
        )


def _refuse_contact_in(text: str, contact: str, field: str) -> None:
    """The log is for good, so no e-mail address may slip into it."""
    if contact.lower() in text.lower():
        raise Problem("malformed", f"{field}: leave the contact's e-mail address out, this stays in the log.", field)


@contextlib.contextmanager
def _one_open_proposal(full_name: str) -> Iterator[None]:
    """PostgreSQL says whether another proposal is open for the repository; this says it to people."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        if "governance_proposal_open_once" not in str(error):
            raise
        raise Problem(
            "already_proposed",
            f"full_name: a proposal for {full_name} is open already. If it is not yours, tell the maintainers that the "
            "repository is.",
            "full_name",
        ) from None


def _locked(proposal: Proposal, verb: Verb, expected_revision: int, by: User) -> tuple[Proposal, Move]:
    """The proposal under its row's lock, and the move that the verb is in its state."""
    locked = Proposal.objects.select_related("proposer").select_for_update(of=("self",)).get(pk=proposal.pk)
    is_proposer = locked.proposer_id == by.pk
    if why := policy.recusal(verb, is_proposer=is_proposer, is_colleague=is_colleague(locked, by)):
        raise Problem("recusal", f"{why}: another maintainer has to.")
    if policy.is_for_proposer(verb) and not is_proposer:
        raise Problem("not_permitted", f"Only {locked.proposer}, who made the proposal, can do this.")
    move = MOVES.get((State(locked.state), verb))
    if move is None or locked.revision != expected_revision:
        raise Problem(
            "proposal_stale",
            f"The proposal is {locked.get_state_display()} now, submission {locked.revision}: look again, then decide.",
        )
    return locked, move


def _words(words: str, move: Move, proposal: Proposal, *, field: str) -> str:
    words = words.strip()
    if not words and not move.is_wordless:
        raise Problem("malformed", f"{field}: say {move.words}.", field)
    if finding := policy.text_finding(words, WORDS_MAX):
        raise Problem("malformed", f"{field}: {finding}", field)
    _refuse_contact_in(words, proposal.contact, field)
    return words


def _move(locked: Proposal, move: Move, now: datetime.datetime, **changes: Any) -> None:
    """The compare-and-set, and the same on the object in hand."""
    changes |= {"state": move.to, "changed_at": now}
    unchanged = Proposal.objects.filter(pk=locked.pk, state=locked.state, revision=locked.revision)
    if unchanged.update(**changes) != 1:
        raise Problem("proposal_stale", "The proposal has changed meanwhile: look again, then decide.")
    for name, value in changes.items():
        setattr(locked, name, value)


def _note(
    proposal: Proposal,
    verb: Verb,
    move: Move,
    by: User,
    words: str,
    now: datetime.datetime,
    event_seq: int | None = None,
) -> None:
    """The line of the proposal's history, and the e-mails to whoever is told."""
    transition = Transition.objects.create(
        proposal=proposal,
        verb=verb,
        state=move.to,
        revision=proposal.revision,
        actor_label=by.get_username(),
        words=words,
        at=now,
        event_seq=event_seq,
    )
    announce(transition, tells=move.tells, now=now)


def _columns(draft: Draft) -> dict[str, Any]:
    columns = {field.name: getattr(draft, field.name) for field in dataclasses.fields(Draft)}
    del columns["evidence"]
    return columns | {"oncalls": list(draft.oncalls), "events": sorted(draft.events)}


def _add_evidence(proposal: Proposal, items: tuple[Item, ...]) -> None:
    rows = []
    for position, item in enumerate(items):
        salt = secrets.token_hex(16)
        rows.append(
            Evidence(
                proposal=proposal,
                revision=proposal.revision,
                position=position,
                salt=salt,
                digest=evidence_digest(item, salt=salt),
                **dataclasses.asdict(item),
            )
        )
    Evidence.objects.bulk_create(rows)


def evidence_digest(item: Item, *, salt: str) -> str:
    """SHA-256, hex, over the canonical JSON of title, text, url and salt."""
    return hashlib.sha256(canonical(dataclasses.asdict(item) | {"salt": salt}).encode()).hexdigest()


def _digests(proposal: Proposal) -> dict[str, str]:
    """What the log knows of the evidence: a digest of each item, in order."""
    return {"evidence_sha256": " ".join(evidence_of(proposal).values_list("digest", flat=True))}


def _spelled(proposal: Proposal) -> dict[str, Any]:
    """The proposal as the log may have it: without the contact."""
    return {
        "state": str(proposal.state),
        "platform": proposal.platform_name,
        "repository": proposal.full_name,
        "device": proposal.device,
        "oncalls": proposal.oncalls,
        "events": proposal.events,
    }
