"""A draft becomes a version by a decision; versions are for ever."""

import datetime
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.errors import Problem
from apps.policies.models import PolicyDraft, PolicyVersion
from apps.policies.policy import SHIPPED, written
from apps.policies.selectors import drafts, numbered, policy_at, rows_of, versions
from apps.policies.services import change_draft, drop_draft, open_draft, put_in_force
from tests.factories.listing import user
from tests.factories.policies import edited, policy_in_force

pytestmark = pytest.mark.django_db
NOW = datetime.datetime(2026, 9, 7, 12, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)


@pytest.fixture
def ada() -> User:
    return user(Role.MAINTAINER, username="ada")


@pytest.fixture
def draft(ada: User) -> PolicyDraft:
    return open_draft(title="A stricter queue", by=ada, now=NOW)


def changed(draft: PolicyDraft) -> None:
    values = edited(SHIPPED, L3_rise_avg_queue_seconds="1200", L4_rise_avg_queue_seconds="1200")
    change_draft(draft=draft, title=draft.title, values=values, expected_revision=draft.revision, now=NOW)


def decide(draft: PolicyDraft, by: User, **values: Any) -> Event:
    given: dict[str, Any] = {"from_at": NOW + DAY, "reason": "queues are long", "effects": {"would_lose": "2"}}
    return put_in_force(
        draft=draft, by=by, now=NOW, expected_revision=values.pop("revision", draft.revision), **(given | values)
    )


def test_a_draft_begins_with_what_is_in_force_and_decides_nothing(draft: PolicyDraft) -> None:
    assert rows_of(draft) == SHIPPED
    assert (list(drafts()), versions(), policy_at(NOW)) == ([draft], [], SHIPPED)
    assert not Event.objects.filter(action__startswith="policy").exists()


def test_a_version_holds_from_its_moment_and_what_was_before_keeps_its_own(draft: PolicyDraft, ada: User) -> None:
    changed(draft)
    event = decide(draft, ada)
    version = PolicyVersion.objects.get()
    assert (version.number, version.from_at, version.by, version.event_seq) == (1, NOW + DAY, "ada", event.seq)
    assert policy_at(NOW + DAY - datetime.timedelta(microseconds=1)) == SHIPPED
    later = policy_at(NOW + DAY)
    assert (later.number, later == numbered(1)) == (1, True)
    assert next(row.threshold for row in later.criteria if row.key == "L3.rise.avg_queue_seconds") == "1200"
    assert (list(drafts()), draft.state, draft.version) == ([], "in_force", version)
    body = body_of(event)
    row = "L3.rise.avg_queue_seconds"
    assert (body["summary"], body["reason"]) == ("Policy 1 from 2026-09-08: 2 rows changed", "queues are long")
    mature = "L4.rise.avg_queue_seconds"
    assert body["before"] == {
        row: "< 30 min, over 14 days (RFC-0050)",
        mature: "< 30 min, over 60 days (AccelHub)",
    }
    assert body["after"] == {
        row: "< 20 min, over 14 days (RFC-0050)",
        mature: "< 20 min, over 60 days (AccelHub)",
        "from_at": "2026-09-08T12:00:00+00:00",
    }
    assert body["evidence"] == {"draft": str(draft.public_id), "effects": {"would_lose": "2"}}


@pytest.mark.parametrize(
    ("values", "field", "says"),
    [
        ({"reason": "  "}, "reason", "saw 0 characters"),
        ({"reason": "x" * 2_001}, "reason", "saw 2001 characters"),
        ({"from_at": NOW - DAY}, "from_at", "has passed"),
    ],
)
def test_a_decision_without_a_reason_or_for_the_past_is_refused(
    draft: PolicyDraft, ada: User, values: dict[str, Any], field: str, says: str
) -> None:
    changed(draft)
    with pytest.raises(Problem, match=says) as refused:
        decide(draft, ada, **values)
    assert (refused.value.code, refused.value.field) == ("malformed", field)
    assert not PolicyVersion.objects.exists()


def test_a_draft_that_changes_nothing_is_refused(draft: PolicyDraft, ada: User) -> None:
    with pytest.raises(Problem, match="changes nothing"):
        decide(draft, ada)


def test_rows_that_contradict_do_not_enter_a_draft(draft: PolicyDraft) -> None:
    values = edited(SHIPPED, L3_stay_pass_rate="0.95")
    with pytest.raises(Problem, match="who rises would fall") as refused:
        change_draft(draft=draft, title="x", values=values, expected_revision=1, now=NOW)
    assert (refused.value.code, refused.value.field) == ("malformed", "L3.stay.pass_rate")
    assert PolicyDraft.objects.get().values == written(SHIPPED)


def test_who_decides_on_what_changed_meanwhile_is_told(draft: PolicyDraft, ada: User) -> None:
    changed(draft)
    with pytest.raises(Problem) as refused:
        decide(draft, ada, revision=1)
    assert refused.value.code == "draft_stale"
    drop_draft(draft=draft, expected_revision=2, now=NOW)
    for step in (lambda: decide(draft, ada), lambda: changed(draft)):
        with pytest.raises(Problem) as refused:
            step()
        assert refused.value.code == "draft_stale"
    assert not PolicyVersion.objects.exists()


def test_a_draft_of_an_older_policy_is_begun_anew(draft: PolicyDraft, ada: User) -> None:
    changed(draft)
    policy_in_force(NOW, limits={"dwell_days": 5})
    with pytest.raises(Problem, match="began with policy 0, and policy 1 has been decided") as refused:
        decide(draft, ada)
    assert refused.value.code == "draft_stale"


def test_versions_follow_one_another_in_time(ada: User) -> None:
    policy_in_force(NOW + DAY, limits={"dwell_days": 5})
    late = open_draft(title="Another", by=ada, now=NOW + DAY)
    values = edited(numbered(1), limits={"dwell_days": 6})
    change_draft(draft=late, title="Another", values=values, expected_revision=1, now=NOW + DAY)
    with pytest.raises(Problem, match="policy 1 holds from 2026-09-08 12:00, name a later moment"):
        decide(late, ada, from_at=NOW + DAY)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE policies_policyversion SET reason = 'another'",
        "DELETE FROM policies_policyversion",
        "TRUNCATE policies_policyversion CASCADE",
    ],
)
def test_postgresql_refuses_to_change_a_version(statement: str) -> None:
    policy_in_force(NOW, limits={"dwell_days": 5})
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # no foreign key still waits: TRUNCATE would stop at it
        with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
            cursor.execute(statement)
    assert PolicyVersion.objects.get().values["limits"]["dwell_days"] == 5
