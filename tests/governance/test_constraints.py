"""What PostgreSQL itself refuses, whatever code asks for it."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from apps.governance.models import Evidence, Notice, Proposal, Transition
from tests.factories.proposals import proposal, returned

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("model", "values", "constraint"),
    [
        (Proposal, {"state": "lost"}, "governance_proposal_state"),
        (Proposal, {"state": "accepted"}, "governance_proposal_accepted_whole"),
        (Proposal, {"events": ["push"]}, "governance_proposal_events_known"),
        (Proposal, {"revision": 0}, "governance_proposal_revision"),
        (Evidence, {"title": ""}, "governance_evidence_says_something"),
        (Evidence, {"text": "", "url": ""}, "governance_evidence_says_something"),
        (Evidence, {"url": "javascript:alert(1)"}, "governance_evidence_url_of_the_web"),
        (Transition, {"verb": "vote"}, "governance_transition_verb"),
        (Transition, {"state": "lost"}, "governance_transition_state"),
        (Transition, {"verb": "submit"}, "governance_transition_once"),
        (Notice, {"state": "lost"}, "governance_notice_state"),
        (Notice, {"state": "sent"}, "governance_notice_sent_at"),
        (Notice, {"event_seq": 1}, "governance_notice_about_one"),
    ],
)
def test_it_is_refused(model: Any, values: dict[str, Any], constraint: str) -> None:
    returned(proposal())
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        model.objects.update(**values)


def test_one_email_to_the_contact_per_transition() -> None:
    returned(proposal())
    twin = Notice.objects.get()
    twin.pk = None
    twin.public_id = Proposal.objects.get().public_id
    with pytest.raises(IntegrityError, match="governance_notice_once"), transaction.atomic():
        twin.save(force_insert=True)
