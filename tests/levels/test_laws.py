"""Laws: however approvals, objections and new evidence come, nothing is decided by too few, or by who did not see all;
rights grow with the level; no decision stands without reason and evidence."""

import datetime
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.audit.models import Event
from apps.core.clock import now
from apps.levels.enums import Form
from apps.levels.models import Promotion
from apps.levels.promoting import approve, object_to
from apps.levels.promotion_policy import Given, standing
from apps.platforms.policy import LEVELS, MATURE, STABLE
from apps.policies.policy import SHIPPED
from tests.factories.promotions import maintainer, promotion

UNTIL = datetime.datetime(2026, 12, 8, tzinfo=datetime.UTC)
# What happens to a promotion: an approval by somebody of an organisation (None: of none), an objection, new evidence.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("approve"), st.one_of(st.none(), st.integers(1, 4))),
        st.tuples(st.sampled_from(["object", "freeze"]), st.none()),
    ),
    max_size=15,
)


@given(steps=STEPS, target=st.sampled_from([STABLE, MATURE]), wait=st.integers(-2, 2))
def test_nothing_is_decided_by_too_few_or_by_who_did_not_see_all(
    steps: list[tuple[str, int | None]], target: int, wait: int
) -> None:
    revision, form, approvals = 1, Form.LAZY, list[Given]()
    since: list[int | None] = []
    for verb, organisation in steps:
        if verb == "approve":
            approvals.append(Given(revision, organisation))
            since.append(organisation)
            continue
        revision, since = revision + 1, []
        form = Form.EXPLICIT if verb == "object" else form
    found = standing(
        target=target,
        policy=SHIPPED,
        form=form,
        revision=revision,
        approvals=approvals,
        objections_until=UNTIL,
    )
    at = UNTIL + datetime.timedelta(hours=wait)
    counted = len(since) if target == STABLE else len({one for one in since if one is not None})
    enough = counted >= (1 if target == STABLE else 2)
    assert (found.counted, found.is_approved) == (counted, enough)
    assert found.is_due(at) is (enough and (form is Form.EXPLICIT or at >= UNTIL))


# What a level gives, from less to more.
GROWS = {
    "events": ["not sent", "sent"],
    "results": ["not kept", "private", "public"],
    "check": ["none", "on a pull request labelled", "on every pull request"],
    "blocks": ["no", "yes"],
}


@pytest.mark.parametrize("what", GROWS)
def test_rights_grow_with_the_level(what: str) -> None:
    ranks = []
    for level in LEVELS:
        says = getattr(level, what)
        ranks.append(max(place for place, words in enumerate(GROWS[what]) if says.startswith(words)))
    assert ranks == sorted(ranks)
    assert ranks[0] == 0
    assert ranks[-1] == len(GROWS[what]) - 1


@pytest.mark.django_db
def test_no_decision_without_reason_and_evidence() -> None:
    made = promotion()
    object_to(promotion=made, criterion="L3.rise.runs", words="few", expected_revision=1, by=maintainer(), now=now())
    approve(promotion=made, reason="enough", expected_revision=2, by=maintainer(), now=now())
    about = [str(made.public_id), str(made.repository.public_id)]
    events = Event.objects.filter(subject_id__in=about, is_decision=True, at__gte=made.opened_at).order_by("seq")
    bodies = [json.loads(event.body) for event in events]
    assert [body["action"] for body in bodies] == [
        "promotion.opened",
        "promotion.objected",
        "promotion.approved",
        "repository.level_changed",
    ]
    bundles = {body["evidence"]["bundle"] for body in bodies}
    assert bundles == {Promotion.objects.get().bundles.get().sha256}
    assert all(body["reason"] for body in bodies)
