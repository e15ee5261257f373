"""Pages and API of appeals: who sees and may do what, hostile texts, counts of queries."""

from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.appeals.enums import Outcome
from apps.appeals.models import Appeal
from apps.core.clock import now
from tests.appeals.field import DAY, NOW, Field
from tests.factories.jobs import job
from tests.factories.listing import user
from tests.factories.pages import Page, problem

HOSTILE = "<script>alert(1)</script> =1+1 \u202e"


@pytest.fixture
def then(settings: Any) -> Any:
    """The hub's clock stands at NOW."""
    from apps.core import clock

    settings.DEMO = True
    with clock.at(NOW):
        yield


def form(field: Field, **values: Any) -> dict[str, Any]:
    said = {
        "claim": "flake",
        "words": "It is a flake.",
        "links": "",
        "rows": [str(field.red[0].public_id)],
        "others": "",
    }
    return said | values


@pytest.mark.usefixtures("then")
def test_a_member_appeals_a_figure_from_the_platforms_page(field: Field, client: Client) -> None:
    page = "/appeals/new/?repository=zephyr/torch"
    assert page not in Page(client.get("/platforms/zephyr-torch/")).links
    client.force_login(field.zoe)
    assert page in Page(client.get("/platforms/zephyr-torch/")).links
    assert "Job pass rate: 80.0% over 20 rows in 30 days" in Page(client.get(page)).text
    others = " ".join(str(one.public_id) for one in field.red[1:3])
    answer = client.post(page, form(field, others=others, links="https://a.example/1\nhttps://b.example/2"))
    made = Appeal.objects.get()
    assert answer.headers["Location"] == f"/appeals/{made.public_id}/"
    assert (made.claim, made.links, made.rows.count()) == ("flake", ["https://a.example/1", "https://b.example/2"], 3)
    again = client.post(page, form(field, rows=[], others=str(field.red[0].public_id)))
    assert f"stands in the appeal /appeals/{made.public_id}/" in again.content.decode()


@pytest.mark.usefixtures("then")
@pytest.mark.parametrize(
    "values",
    [
        {"claim": "procedure"},
        {"words": ""},
        {"links": "javascript:alert(1)"},
        {"others": "x"},
        {"rows": ["x"]},
        {"rows": []},
    ],
)
def test_what_is_no_appeal_is_said_at_its_field(field: Field, client: Client, values: dict[str, Any]) -> None:
    client.force_login(field.zoe)
    answer = client.post("/appeals/new/?repository=zephyr/torch", form(field, **values))
    assert (answer.status_code, Appeal.objects.count()) == (200, 0)


@pytest.mark.usefixtures("then")
def test_a_job_and_a_decision_lead_to_their_appeal(field: Field, client: Client) -> None:
    lowered = field.lowers(user(Role.MAINTAINER))
    client.force_login(field.zoe)
    red = field.red[0]
    to_job = f"/appeals/new/?repository=zephyr/torch&job={red.public_id}"
    assert to_job in Page(client.get(f"/jobs/{red.public_id}/")).links
    decision = f"/decisions/{lowered.seq}/"
    to_decision = f"/appeals/new/?decision={lowered.seq}"
    assert to_decision in Page(client.get(decision)).links
    assert "the level that stood before is restored" in Page(client.get(to_decision)).text
    client.post(to_decision, form(field, claim="procedure", rows=[]))
    made = Appeal.objects.get()
    assert made.decision_seq == lowered.seq
    assert f"/appeals/{made.public_id}/" in Page(client.get(decision)).links


@pytest.mark.usefixtures("then")
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 404),
        ("repository=no/body", 404),
        ("repository=zephyr/torch&figure=luck", 404),
        ("decision=x", 404),
        ("decision=99999999999999999999999", 404),
        ("decision=1", 404),
        ("repository=zephyr/torch&job=x&days=x", 200),
    ],
)
def test_an_address_that_names_nothing_is_no_page(field: Field, client: Client, query: str, status: int) -> None:
    client.force_login(field.zoe)
    assert client.get(f"/appeals/new/?{query}").status_code == status


def test_a_stranger_has_no_form_and_no_verbs(field: Field, client: Client) -> None:
    made = field.contests()
    client.force_login(user())
    assert client.get("/appeals/new/?repository=zephyr/torch").status_code == 403
    where = f"/appeals/{made.public_id}/"
    assert [
        name for name in ("decide", "pause", "withdraw") if f'id="{name}"' in client.get(where).content.decode()
    ] == []
    for act in ("decide", "pause", "withdraw", "burn"):
        sent = {"act": act, "revision": 1, "reason": "x", "days": 1, "outcome": "uphold"}
        assert client.post(where, sent).status_code == 403
    assert Appeal.objects.get().revision == 1


@pytest.mark.usefixtures("then")
def test_a_maintainer_pauses_and_decides_on_its_page(field: Field, client: Client) -> None:
    made = field.contests()
    where = f"/appeals/{made.public_id}/"
    client.force_login(field.ada)
    client.post(where, {"act": "pause", "revision": 1, "days": 2, "reason": "logs"})
    assert "paused" in Page(client.get(where)).text
    sent = {
        "act": "decide",
        "revision": 1,
        "outcome": "amend",
        "reason": "two",
        "accepted": [str(field.red[0].public_id)],
    }
    stale = client.post(where, sent)
    assert (stale.status_code, "It is paused since" in Page(stale).text) == (200, True)
    assert client.post(where, sent | {"revision": 2}).status_code == 302
    page = Page(client.get(where))
    assert [row[3] for row in page.tables["rows"]] == [
        "accepted: set aside" if one == field.red[0] else "not accepted"
        for one in sorted(field.red, key=lambda x: x.pk)
    ]
    assert len(page.items["log"]) == 3


@pytest.mark.usefixtures("then")
def test_who_is_not_independent_reads_why(field: Field, client: Client) -> None:
    field.lowers(field.ada)
    from apps.audit.models import Event

    made = field.contests_decision(Event.objects.latest("seq"))
    client.force_login(field.ada)
    text = Page(client.get(f"/appeals/{made.public_id}/")).text
    assert "ada made the contested decision" in text


def test_hostile_words_are_text_and_links_vouch_for_nobody(field: Field, client: Client) -> None:
    made = field.contests(words=HOSTILE, links=["https://evil.example/?a=%3Cscript%3E&b=1"])
    html = client.get(f"/appeals/{made.public_id}/").content.decode()
    assert "<script>alert" not in html
    assert 'href="https://evil.example/?a=%3Cscript%3E&amp;b=1" rel="nofollow noreferrer noopener"' in html
    sheet = client.get("/api/v1/appeals/?format=csv").content.decode()
    assert "<script>alert(1)</script>" in sheet


@pytest.mark.usefixtures("then")
def test_the_list_is_filtered_by_what_people_read(field: Field, client: Client) -> None:
    late = field.contests(field.red[0], at=NOW - 30 * DAY, days=14)
    paused = field.pauses(field.contests(field.red[1]))
    done = field.decides(field.contests(field.red[2]), Outcome.UPHOLD)

    def shown(query: str) -> list[str]:
        return [row["id"] for row in client.get(f"/api/v1/appeals/?{query}").json()["results"]]

    ids = [str(one.public_id) for one in (late, paused, done)]
    assert shown("state=open") == [ids[0]]
    assert shown("state=paused") == [ids[1]]
    assert shown("state=upheld&platform=zephyr-torch") == [ids[2]]
    assert shown("overdue=yes") == [ids[0]]
    assert shown("platform=fen") == []
    assert problem(client.get("/api/v1/appeals/?state=burnt"))[2]["field"] == "state"
    (row,) = Page(client.get("/appeals/?overdue=yes")).tables["list"]
    assert row[-1] == "▲ overdue" or row[-1].endswith("overdue")


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(("path", "queries"), [("/appeals/", 3), ("/api/v1/appeals/", 1)])
def test_lists_ask_as_often_for_one_as_for_three(
    field: Field, client: Client, rows: int, path: str, queries: int, django_assert_num_queries: Any
) -> None:
    for one in field.red[:rows]:
        field.contests(one)
    with django_assert_num_queries(queries):
        client.get(path)


def test_the_api_opens_pauses_and_decides(field: Field, client: Client) -> None:
    red = job(field.zephyr, "failure", at=now() - DAY)
    sent = {
        "repository": "zephyr/torch",
        "figure": "pass_rate",
        "claim": "flake",
        "words": "x",
        "jobs": [str(red.public_id)],
    }
    client.force_login(field.zoe)
    post: Any = {"content_type": "application/json"}
    opened = client.post("/api/v1/appeals/open/", sent, **post).json()
    assert (opened["state"], opened["jobs"]) == ("open", [{"job": str(red.public_id), "accepted": None}])
    assert problem(client.post("/api/v1/appeals/open/", sent, **post))[2]["code"] == "already_appealed"
    where = f"/api/v1/appeals/{opened['id']}/"
    assert client.get(where).json() == opened
    decide = {"revision": 1, "reason": "x", "outcome": "overturn"}
    assert problem(client.post(f"{where}decide/", decide, **post))[2]["code"] == "not_permitted"
    client.force_login(field.ada)
    paused = client.post(f"{where}pause/", {"revision": 1, "reason": "x", "days": 2}, **post).json()
    assert (paused["state"], paused["revision"]) == ("paused", 2)
    assert problem(client.post(f"{where}decide/", decide, **post))[2]["code"] == "appeal_stale"
    decided = client.post(f"{where}decide/", decide | {"revision": 2}, **post).json()
    assert (decided["state"], decided["jobs"][0]["accepted"], decided["decided_by"]) == ("overturned", True, "ada")
    assert problem(client.post(f"{where}burn/", decide, **post))[0] == 404


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"decision": "x"},
        {"decision": 10**30},
        {"decision": 999},
        {"repository": "zephyr/torch", "figure": "luck", "claim": "flake", "words": "x"},
        {"repository": "zephyr/torch", "figure": "pass_rate", "claim": "x", "words": "x"},
        {"repository": "zephyr/torch", "figure": "pass_rate", "claim": "flake", "words": "\x00"},
        {"repository": "zephyr/torch", "figure": "pass_rate", "claim": "flake", "words": "x", "jobs": ["x"]},
        {"repository": "zephyr/torch", "figure": "pass_rate", "claim": "flake", "words": "x", "days": 10**30},
    ],
)
def test_bad_input_is_refused_by_name(field: Field, client: Client, sent: dict[str, Any]) -> None:
    client.force_login(field.zoe)
    status, kind, _ = problem(client.post("/api/v1/appeals/open/", sent, content_type="application/json"))
    assert (status, kind) == (400, "application/problem+json")
    assert not Appeal.objects.exists()


@pytest.mark.usefixtures("then")
def test_open_appeals_wait_on_the_console_of_who_decides(field: Field, client: Client) -> None:
    late = field.contests(field.red[0], at=NOW - 30 * DAY, words="x")
    field.contests(field.red[1])
    field.decides(field.contests(field.red[2]), Outcome.UPHOLD)
    client.force_login(field.ada)
    page = Page(client.get("/console/"))
    assert [row[1:] for row in page.tables["appeals"]] == [("torch", "■ overdue"), ("torch", "2026-12-05 00:00:00 UTC")]
    assert f"/appeals/{late.public_id}/" in page.links
    client.force_login(field.zoe)
    assert "appeals" not in Page(client.get("/console/")).tables
