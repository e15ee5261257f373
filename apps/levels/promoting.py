"""Verbs on promotions: open, freeze anew, approve, object, decline, withdraw; and what the hub does by itself.

Each takes the promotion's lock first, so of two at the same moment the second sees what the first did.
"""

import datetime
from typing import Any

from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.accounts.services import actor_of
from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.services import HUB, Actor, Subject, record
from apps.core.errors import Problem, written
from apps.core.text import HIDDEN_IN_LINE, HIDDEN_IN_TEXT, URL, hidden_finding
from apps.core.workdays import deadline
from apps.governance.evaluation import Evaluation, Verdict
from apps.governance.nights import evaluations_of
from apps.governance.notices import announce_event
from apps.levels.bundle import changes_since, hash_of, packed
from apps.levels.enums import Form, PromotionState
from apps.levels.freezing import Item, asked_evidence, freeze
from apps.levels.models import Approval, EvidenceBundle, Objection, Promotion
from apps.levels.promotion_policy import PROMOTED_TO, Given, Standing, standing
from apps.levels.readers import deciders, readers
from apps.platforms.allowlist import DEVICE
from apps.platforms.models import Repository
from apps.platforms.policy import STABLE
from apps.platforms.recusals import recusal_of
from apps.platforms.services import promote
from apps.policies.policy import Use
from apps.policies.selectors import policy_at

REASON_MAX, TITLE_MAX, TEXT_MAX, URL_MAX = 2_000, 100, 4_000, 500
DAY = datetime.timedelta(days=1)


def subject_of(promotion: Promotion) -> Subject:
    """The promotion as the log names it."""
    return Subject("promotion", str(promotion.public_id), str(promotion))


@transaction.atomic
def open_promotion(
    *,
    repository: Repository,
    reason: str,
    items: tuple[Item, ...] = (),
    device: str = "",
    by: User,
    now: datetime.datetime,
) -> Promotion:
    """Propose that a repository rises by one level, to L3 or L4, and freeze the evidence for it.

    Raises Problem: `malformed` (no reason, evidence missing or not of the web, no device for L3), `level_transition`
    (nothing to be promoted to), `not_eligible` (the first criteria that are not met), `already_open`.
    """
    reason = written(reason, "reason", REASON_MAX)
    locked = Repository.objects.select_related("platform").select_for_update(of=("self",)).get(pk=repository.pk)
    target = locked.level + 1
    if target not in PROMOTED_TO:
        raise Problem(
            "level_transition", f"{locked.full_name} is at {locked.level_code}: promotions lead to L3 and L4."
        )
    device = device.strip() or locked.device
    if target == STABLE and not DEVICE.fullmatch(device):
        raise Problem("malformed", "device: L3 needs one, the word in the label ciflow/crcr/<device>.", "device")
    _check(items, target, now)
    promotion = Promotion(
        repository=locked,
        target=target,
        device=device,
        reason=reason,
        opened_by=by,
        opened_at=now,
        objections_until=_objections_until(locked, now),
    )
    try:
        with transaction.atomic():
            promotion.save()
    except IntegrityError:
        raise Problem("already_open", f"A promotion of {locked.full_name} is open.") from None
    bundle, evaluation = _freeze(promotion, items, now)
    event = record(
        action=Action.PROMOTION_OPENED,
        actor=actor_of(by),
        subject=subject_of(promotion),
        summary=f"{locked.full_name} proposed for {promotion.target_code}: {evaluation.sentence}",
        after={"target": promotion.target_code, "objections_until": promotion.objections_until.isoformat()},
        reason=reason,
        evidence=_evidence(bundle),
        now=now,
    )
    announce_event(event, deciders(besides=by), now=now)
    return promotion


@transaction.atomic
def freeze_anew(*, promotion: Promotion, expected_revision: int, by: User, now: datetime.datetime) -> EvidenceBundle:
    """Freeze the evidence as it is now; approvals of the old one do not count any more, and the time for objections
    begins anew. What is shown by evidence stays. Raises Problem: `promotion_stale`, `not_eligible`."""
    locked = _locked(promotion, expected_revision)
    last = newest_bundle(locked)
    items = tuple(Item(**item) for item in last.opened()["evidence"])
    locked.objections_until = _objections_until(locked.repository, now)
    locked.revision += 1
    locked.save(update_fields=["objections_until", "revision"])
    bundle, evaluation = _freeze(locked, items, now)
    record(
        action=Action.PROMOTION_FROZEN,
        actor=actor_of(by),
        subject=subject_of(locked),
        summary=f"Evidence for {locked} frozen anew: {evaluation.sentence}",
        before=_evidence(last),
        after={"objections_until": locked.objections_until.isoformat()},
        evidence=_evidence(bundle),
        now=now,
        is_decision=False,
    )
    return bundle


@transaction.atomic
def approve(
    *, promotion: Promotion, reason: str, note: str = "", expected_revision: int, by: User, now: datetime.datetime
) -> Standing:
    """A maintainer's yes. The repository rises with the approval that was missing, or once the time for objections is
    over. Returns how far the promotion is.

    Raises Problem: `malformed` (no reason; no note where the evidence asks for one; no organisation for L4), `recusal`,
    `promotion_stale` (with what changed), `evidence_stale`.
    """
    reason = written(reason, "reason", REASON_MAX)
    locked = _locked(promotion, expected_revision)
    _refuse_recused(locked, by)
    bundle = newest_bundle(locked)
    content = bundle.opened()
    if content["notes"]:
        note = written(note, "note", REASON_MAX)
    if locked.target != STABLE and by.organisation_id is None:
        raise Problem(
            "malformed",
            f"organisation: {locked.target_code} counts maintainers of different organisations, and your account "
            "names none. Ask an administrator to enter it.",
            "organisation",
        )
    _refuse_stale(locked, bundle, content, now)
    event = record(
        action=Action.PROMOTION_APPROVED,
        actor=actor_of(by),
        subject=subject_of(locked),
        summary=f"{locked} approved by {by.get_username()}",
        after={"revision": locked.revision, "note": note},
        reason=reason,
        evidence=_evidence(bundle) | {"recused": recused(locked), "organisation": str(by.organisation or "")},
        now=now,
    )
    try:
        with transaction.atomic():
            Approval.objects.create(
                promotion=locked,
                bundle=bundle,
                revision=locked.revision,
                by=by,
                organisation=by.organisation,
                reason=reason,
                note=note,
                at=now,
                event_seq=event.seq,
            )
    except IntegrityError:
        raise Problem("promotion_stale", "You have approved it already.") from None
    reached = standing_of(locked, now=now)
    if reached.is_due(now):
        _take_effect(locked, bundle, actor_of(by), now)
    return reached


@transaction.atomic
def object_to(
    *, promotion: Promotion, criterion: str, words: str, expected_revision: int, by: User, now: datetime.datetime
) -> Objection:
    """An objection, which cites a criterion of the level: the decision becomes explicit, and approvals that did not see
    it do not count. Raises Problem: `malformed` (no words, a criterion that the level does not ask for),
    `promotion_stale`."""
    words = written(words, "words", REASON_MAX)
    locked = _locked(promotion, expected_revision)
    bundle = newest_bundle(locked)
    keys = [row["criterion"] for row in bundle.opened()["stated"]["results"]]
    if criterion not in keys:
        raise Problem("malformed", f"criterion: saw {criterion[:60]!r}, cite one of {', '.join(keys)}.", "criterion")
    event = record(
        action=Action.PROMOTION_OBJECTED,
        actor=actor_of(by),
        subject=subject_of(locked),
        summary=f"{by.get_username()} objects to {locked}, citing {criterion}",
        before={"form": locked.form},
        after={"form": Form.EXPLICIT.value, "criterion": criterion},
        reason=words,
        evidence=_evidence(bundle),
        now=now,
    )
    made = Objection.objects.create(
        promotion=locked, criterion=criterion, words=words, by=by, at=now, event_seq=event.seq
    )
    locked.form, locked.revision = Form.EXPLICIT, locked.revision + 1
    locked.save(update_fields=["form", "revision"])
    announce_event(event, readers(locked, besides=by), now=now)
    return made


@transaction.atomic
def decline(*, promotion: Promotion, reason: str, expected_revision: int, by: User, now: datetime.datetime) -> None:
    """A maintainer's no, which ends it. Raises Problem: `malformed` (no reason), `recusal`, `promotion_stale`."""
    reason = written(reason, "reason", REASON_MAX)
    locked = _locked(promotion, expected_revision)
    _refuse_recused(locked, by)
    event = _end(locked, PromotionState.DECLINED, Action.PROMOTION_DECLINED, reason, actor_of(by), now)
    announce_event(event, readers(locked, besides=by), now=now)


@transaction.atomic
def withdraw(*, promotion: Promotion, reason: str, expected_revision: int, by: User, now: datetime.datetime) -> None:
    """Its platform, or who opened it, takes it back. Raises Problem: `malformed` (no reason), `promotion_stale`."""
    reason = written(reason, "reason", REASON_MAX)
    locked = _locked(promotion, expected_revision)
    _end(locked, PromotionState.WITHDRAWN, Action.PROMOTION_WITHDRAWN, reason, actor_of(by), now)


def take_due(*, now: datetime.datetime) -> int:
    """Bring into force what is approved and waited for objections, where its evidence still holds; close what another
    change of the level has overtaken. Returns how many were moved."""
    moved = 0
    for pk in Promotion.objects.filter(state=PromotionState.OPEN).order_by("pk").values_list("pk", flat=True):
        moved += _look_after(pk, now)
    return moved


@transaction.atomic
def _look_after(pk: int, now: datetime.datetime) -> bool:
    promotion = _lock(pk)
    if promotion.state != PromotionState.OPEN:
        return False
    if promotion.repository.level != promotion.target - 1:
        words = f"{promotion.repository.full_name} is at {promotion.repository.level_code} now."
        event = _end(promotion, PromotionState.OVERTAKEN, Action.PROMOTION_OVERTAKEN, words, HUB, now)
        announce_event(event, readers(promotion), now=now)
        return True
    if not standing_of(promotion, now=now).is_due(now):
        return False
    bundle = newest_bundle(promotion)
    content = bundle.opened()
    live = live_evaluation(promotion, content, now=now)
    if live.verdict is Verdict.MET:
        _take_effect(promotion, bundle, HUB, now)
        return True
    _hold(promotion, bundle, changes_since(content["stated"]["results"], live), now)
    return True


def _hold(promotion: Promotion, bundle: EvidenceBundle, changes: list[str], now: datetime.datetime) -> None:
    """What was approved lazily does not come into force on evidence that has fallen: people decide."""
    event = record(
        action=Action.PROMOTION_HELD,
        actor=HUB,
        subject=subject_of(promotion),
        summary=f"{promotion} does not come into force: its evidence does not hold any more",
        before={"form": promotion.form},
        after={"form": Form.EXPLICIT.value},
        reason=" ".join(changes),
        evidence=_evidence(bundle),
        now=now,
    )
    promotion.form, promotion.revision = Form.EXPLICIT, promotion.revision + 1
    promotion.save(update_fields=["form", "revision"])
    announce_event(event, readers(promotion), now=now)


# --- what pages and verbs ask -----------------------------------------------------------------------------------


def newest_bundle(promotion: Promotion) -> EvidenceBundle:
    """What is decided on."""
    return promotion.bundles.order_by("-number")[0]


def standing_of(promotion: Promotion, *, now: datetime.datetime) -> Standing:
    """How far an open promotion is, under the policy in force."""
    given = promotion.approvals.values_list("revision", "organisation_id")
    return standing(
        target=promotion.target,
        policy=policy_at(now),
        form=Form(promotion.form),
        revision=promotion.revision,
        approvals=[Given(*row) for row in given],
        objections_until=promotion.objections_until,
    )


def live_evaluation(promotion: Promotion, content: dict[str, Any], *, now: datetime.datetime) -> Evaluation:
    """The criteria of its level as of now, with the evidence that it brought."""
    shown_by = [item["measure"] for item in content["evidence"]]
    found = evaluations_of([promotion.repository], now=now, shown_by=shown_by)[promotion.repository_id]
    return next(one for one in found if one.use is Use.RISE)


def decision_recusal(promotion: Promotion, user: User) -> str:
    """Why this user may not decide it, in one sentence; empty where they may."""
    opener = promotion.opened_by
    if opener.pk == user.pk:
        return f"{user.get_username()} opened it"
    if opener.organisation_id is not None and opener.organisation_id == user.organisation_id:
        return f"{user.get_username()} is of the organisation that opened it: {user.organisation}"
    return recusal_of(user, promotion.repository.platform)


def recused(promotion: Promotion) -> list[str]:
    """Of all who could decide, those who may not here, each with why: it stands beside each approval in the log."""
    return [why for user in deciders().select_related("organisation") if (why := decision_recusal(promotion, user))]


# --- steps of the verbs -----------------------------------------------------------------------------------------


def _check(items: tuple[Item, ...], target: int, now: datetime.datetime) -> None:
    asked = asked_evidence(policy_at(now), target)
    for item in items:
        if item.measure not in asked:
            wanted = f"one of {', '.join(asked)}" if asked else "none: this level asks for no evidence"
            raise Problem("malformed", f"evidence: saw {item.measure[:40]!r}, send {wanted}.", "evidence")
        written(item.title, "evidence", TITLE_MAX)
        for pattern, text in ((HIDDEN_IN_LINE, item.title), (HIDDEN_IN_TEXT, item.text)):
            if finding := hidden_finding(pattern, text):
                raise Problem("malformed", f"evidence: {finding}", "evidence")
        if len(item.text) > TEXT_MAX or len(item.url) > URL_MAX or not (item.text or item.url):
            raise Problem(
                "malformed", f"evidence: {item.measure} needs a text or an address, not too long.", "evidence"
            )
        if item.url and not URL.fullmatch(item.url):
            raise Problem("malformed", f"evidence: {item.url[:60]!r} is no http(s) address.", "evidence")


def _freeze(promotion: Promotion, items: tuple[Item, ...], now: datetime.datetime) -> tuple[EvidenceBundle, Evaluation]:
    content, evaluation = freeze(promotion.repository, target=promotion.target, items=items, now=now)
    if evaluation.verdict is not Verdict.MET:
        missing = [result.sentence for result in evaluation.results if not result.stands]
        raise Problem("not_eligible", f"{evaluation.sentence} {' '.join(missing[:5])}")
    text = packed(content)
    number = promotion.bundles.count() + 1
    made = EvidenceBundle.objects.create(
        promotion=promotion,
        number=number,
        sha256=hash_of(content),
        content=text,
        bytes=len(text),
        policy_number=content["policy"]["number"],
        frozen_at=now,
    )
    return made, evaluation


def _objections_until(repository: Repository, now: datetime.datetime) -> datetime.datetime:
    return deadline(now, policy_at(now).limits["objection_working_days"], repository.platform.calendar)


def _evidence(bundle: EvidenceBundle) -> dict[str, Any]:
    return {"bundle": bundle.sha256, "policy": bundle.policy_number}


def _lock(pk: int) -> Promotion:
    return (
        Promotion.objects.select_related("repository__platform", "opened_by__organisation")
        .select_for_update(of=("self",))
        .get(pk=pk)
    )


def _locked(promotion: Promotion, expected_revision: int) -> Promotion:
    """The promotion under its lock. Raises Problem `promotion_stale`, with what changed."""
    locked = _lock(promotion.pk)
    if locked.state != PromotionState.OPEN:
        raise Problem(
            "promotion_stale", f"It is {locked.get_state_display()} since {locked.ended_at:%Y-%m-%d %H:%M} UTC."
        )
    if locked.repository.level != locked.target - 1:
        raise Problem("promotion_stale", f"{locked.repository} is at {locked.repository.level_code} now.")
    if locked.revision != expected_revision:
        said = [f"{one.by} objected, citing {one.criterion}" for one in locked.objections.select_related("by")]
        bundle = newest_bundle(locked)
        said.append(f"evidence {bundle.number} was frozen {bundle.frozen_at:%Y-%m-%d %H:%M} UTC")
        raise Problem("promotion_stale", f"It changed since you looked: {'; '.join(said)}.")
    return locked


def _refuse_recused(promotion: Promotion, by: User) -> None:
    if why := decision_recusal(promotion, by):
        raise Problem("recusal", f"{why}, so another maintainer has to decide.")


def _refuse_stale(
    promotion: Promotion, bundle: EvidenceBundle, content: dict[str, Any], now: datetime.datetime
) -> None:
    """Raises Problem `evidence_stale` where the bundle is too old, of another policy, or does not hold any more."""
    policy = policy_at(now)
    if now > bundle.frozen_at + policy.limits["bundle_days"] * DAY:
        raise Problem(
            "evidence_stale",
            f"It was frozen {bundle.frozen_at:%Y-%m-%d}, {policy.limits['bundle_days']} days are the most.",
        )
    if policy.number != bundle.policy_number:
        raise Problem("evidence_stale", f"It is of policy {bundle.policy_number}, policy {policy.number} is in force.")
    live = live_evaluation(promotion, content, now=now)
    if live.verdict is not Verdict.MET:
        changes = changes_since(content["stated"]["results"], live)
        raise Problem("evidence_stale", f"Changed since it was frozen: {' '.join(changes)}")


def _take_effect(promotion: Promotion, bundle: EvidenceBundle, actor: Actor, now: datetime.datetime) -> None:
    counting = promotion.approvals.filter(revision=promotion.revision)
    decisions = [f"#{seq}" for seq in counting.values_list("event_seq", flat=True)]
    event = promote(
        repository=promotion.repository,
        level=promotion.target,
        device=promotion.device,
        reason=promotion.reason,
        promotion=str(promotion.public_id),
        bundle_sha256=bundle.sha256,
        approvals=decisions,
        actor=actor,
        now=now,
    )
    Promotion.objects.filter(pk=promotion.pk).update(
        state=PromotionState.APPROVED, ended_at=now, event_seq=event.seq, end_words=""
    )
    promotion.refresh_from_db()
    announce_event(event, readers(promotion), now=now)


def _end(
    promotion: Promotion, state: PromotionState, action: Action, words: str, actor: Actor, now: datetime.datetime
) -> Event:
    promotion.state, promotion.ended_at, promotion.end_words = state, now, words
    promotion.save(update_fields=["state", "ended_at", "end_words"])
    return record(
        action=action,
        actor=actor,
        subject=subject_of(promotion),
        summary=f"{promotion} {state.value}",
        before={"state": PromotionState.OPEN.value},
        after={"state": state.value},
        reason=words,
        evidence=_evidence(newest_bundle(promotion)),
        now=now,
    )
