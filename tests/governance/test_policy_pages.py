"""The policy's versions and drafts through the front door."""

import datetime
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.governance.effects import effects_of, logged, summary
from apps.governance.policy_forms import DraftForm
from apps.platforms.models import Repository
from apps.policies.models import PolicyDraft, PolicyVersion
from apps.policies.policy import CRITERIA, LIMITS, SHIPPED, read, written
from apps.policies.selectors import policy_at
from tests.factories.listing import listed, user
from tests.factories.pages import Page
from tests.factories.policies import edited, policy_in_force
from tests.governance.test_nights import filled, midday

pytestmark = pytest.mark.django_db
VERSIONS = "/policy/versions/"


@pytest.fixture
def ada(client: Client) -> User:
    maintainer = user(Role.MAINTAINER, username="ada")
    client.force_login(maintainer)
    return maintainer


@pytest.fixture
def zephyr() -> Repository:
    """At L2, and it meets all that L3 asks for."""
    found = listed({"zephyr/torch": 2}, now=midday(40))["zephyr/torch"]
    filled(found)
    return found


def begun(client: Client) -> PolicyDraft:
    client.post(VERSIONS, {"act": "begin", "title": "Longer tenure"})
    return PolicyDraft.objects.get()


def sent(draft: PolicyDraft, **changes: Any) -> dict[str, Any]:
    """What a browser sends of a draft's form, with changes."""
    form = DraftForm(draft.values, initial={"title": draft.title, "revision": draft.revision})
    values = {name: form[name].initial for name in form.fields}
    values = {name: value for name, value in values.items() if value is not None and value is not False}
    return {"act": "change"} | {name: "on" if value is True else value for name, value in values.items()} | changes


def place(key: str) -> int:
    return next(place for place, row in enumerate(CRITERIA) if row.key == key)


TENURE = f"criterion-{place('L3.rise.tenure_days')}-threshold"


def test_a_draft_is_begun_changed_looked_at_and_decided(client: Client, ada: User, zephyr: Repository) -> None:
    draft = begun(client)
    address = f"/policy/drafts/{draft.public_id}/"
    assert "Nothing is changed" in Page(client.get(address)).text
    assert client.post(address, sent(draft, **{TENURE: "50"})).status_code == 302
    page = Page(client.get(address))
    assert page.tables["changes"] == [
        ("L3.rise.tenure_days", ">= 30 days (RFC-0050)", ">= 50 days (RFC-0050)"),
    ]
    assert "1 would miss L3" in page.text
    assert [row[:2] for row in page.tables["effects"]] == [("zephyr/torch", "would miss L3")]
    draft.refresh_from_db()
    client.post(address, {"act": "decide", "reason": "a month is short", "from_at": "", "revision": draft.revision})
    version = PolicyVersion.objects.get()
    assert (version.number, version.values["criteria"][place("L3.rise.tenure_days")]["threshold"]) == (1, "50")
    event = Event.objects.get(seq=version.event_seq)
    assert body_of(event)["evidence"]["effects"] == {"would miss L3": "zephyr/torch"}
    assert (event.actor_label, body_of(event)["reason"]) == ("ada", "a month is short")
    assert "Policy 1" in Page(client.get(VERSIONS)).text
    assert policy_at(now()).number == 1


def test_a_row_is_added_and_another_is_not_kept(client: Client, ada: User) -> None:
    draft = begun(client)
    added = {
        "level": "3",
        "use": "rise",
        "measure": "oncalls",
        "source": "AccelHub",
        "comparison": ">=",
        "threshold": "1",
    }
    values = sent(draft, **{f"criterion-added-{name}": value for name, value in added.items()})
    del values[f"criterion-{place('L3.rise.runs')}-keep"]
    assert client.post(f"/policy/drafts/{draft.public_id}/", values).status_code == 302
    draft.refresh_from_db()
    before, after = ({row.key for row in policy.criteria} for policy in (SHIPPED, read(draft.values)))
    assert (before - after, after - before) == ({"L3.rise.runs"}, {"L3.rise.oncalls"})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({TENURE: "many"}, "saw 'many', send decimal text"),
        ({f"criterion-{place('L3.stay.pass_rate')}-threshold": "0.95"}, "who rises would fall"),
        ({"limits-dwell_days": "99"}, "limits-dwell_days"),
        ({"handling-missing-hours": "500"}, "handling.missing.hours"),
        ({"revision": "7"}, "look again"),
    ],
)
def test_what_cannot_hold_is_refused_with_its_row_and_nothing_is_written(
    client: Client, ada: User, changes: dict[str, Any], says: str
) -> None:
    draft = begun(client)
    answer = client.post(f"/policy/drafts/{draft.public_id}/", sent(draft, **changes))
    assert answer.status_code == 200
    assert says in Page(answer).text
    assert PolicyDraft.objects.get().values == written(SHIPPED)


def test_a_decision_needs_a_reason_and_a_draft_is_given_up(client: Client, ada: User) -> None:
    draft = begun(client)
    address = f"/policy/drafts/{draft.public_id}/"
    client.post(address, sent(draft, **{TENURE: "31"}))
    assert client.post(address, {"act": "decide", "reason": " ", "revision": "2"}).status_code == 200
    stale = client.post(address, {"act": "decide", "reason": "because", "revision": "1"})
    assert "look again" in Page(stale).text
    client.post(address, {"act": "drop", "revision": "2"})
    assert (PolicyDraft.objects.get().state, PolicyVersion.objects.count()) == ("dropped", 0)
    assert client.post(address, {"act": "dance"}).status_code == 404
    assert "Give the draft up" not in Page(client.get(address)).text


def test_anyone_reads_and_only_maintainers_write(client: Client, ada: User) -> None:
    draft = begun(client)
    address = f"/policy/drafts/{draft.public_id}/"
    for who in (None, user()):
        client.logout()
        if who:
            client.force_login(who)
        assert [client.get(path).status_code for path in (VERSIONS, address, "/policy/versions/0/")] == [200] * 3
        answers = [client.post(VERSIONS, {"title": "x"}), client.post(address, sent(draft))]
        assert [answer.status_code for answer in answers] == [403, 403]
    assert PolicyDraft.objects.get().revision == 1


def test_the_api_gives_the_rows_of_a_version(client: Client) -> None:
    start = now() - datetime.timedelta(days=1)
    policy_in_force(start, limits={"dwell_days": 5})
    body = client.get("/api/v1/policy/").json()
    assert (body["number"], body["from"], body["limits"]["dwell_days"]) == (1, start.isoformat(), 5)
    shipped = client.get("/api/v1/policy/?version=0").json()
    assert shipped == {"number": 0, "from": None, "reason": "", **written(SHIPPED)}
    statuses = [client.get(f"/api/v1/policy/?version={asked}").status_code for asked in ("1", "2", "x", "²")]
    assert statuses == [200, 404, 400, 400]


def test_the_rules_page_prints_the_policy_in_force(client: Client) -> None:
    policy_in_force(now(), limits={"dwell_days": 5})
    page = Page(client.get("/policy/"))
    assert len(page.tables["criteria"]) == len(CRITERIA)
    assert len(page.tables["limits"]) == len(LIMITS)
    assert [row[-1] for row in page.tables["limits"] if "dwell_days" in row[1]] == ["5"]
    assert "Policy 1 is in force" in page.text


def test_effects_name_who_would_lose_and_who_would_gain(zephyr: Repository) -> None:
    lark = listed({"zephyr/torch": 2, "lark/torch": 3}, now=midday(1))["lark/torch"]
    easier = read(edited(SHIPPED, L3_rise_tenure_days="0"))
    harder = read(edited(SHIPPED, L3_rise_tenure_days="80"))
    assert effects_of(SHIPPED, in_force=SHIPPED, now=now()) == []
    found = effects_of(harder, in_force=SHIPPED, now=now())
    assert (summary(found), logged(found)) == ("1 would miss L3", {"would miss L3": "zephyr/torch"})
    back = effects_of(SHIPPED, in_force=harder, now=now())
    assert (summary(back), summary([])) == ("1 would gain L3", "nothing would change today")
    assert effects_of(easier, in_force=SHIPPED, now=now()) == []
    assert lark.level == 3
