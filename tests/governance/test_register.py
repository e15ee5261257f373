"""`/register/`: a vendor proposes a platform and its repository for L1."""

from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.models import Wakeup
from apps.governance.models import Evidence, Notice, Proposal, Transition
from apps.governance.policy import EVIDENCE_MAX, PROPOSED_LEVEL, SUBMISSIONS_PER_DAY, Item, criteria_of
from apps.governance.services import evidence_digest
from apps.platforms.models import Platform, Repository
from tests.factories.listing import listed, user
from tests.factories.pages import Page
from tests.factories.proposals import CARD, form, maintainer, proposal, returned, withdrawn

pytestmark = pytest.mark.django_db
URL = "/register/"


@pytest.fixture
def zoe(client: Client) -> User:
    made = user(username="zoe", email="zoe@zephyr.example")
    client.force_login(made)
    return made


def written() -> dict[str, int]:
    """How many rows there are of everything that a submission writes."""
    models = (Proposal, Evidence, Transition, Notice, Wakeup, Event, Platform, Repository)
    return {model.__name__: model.objects.count() for model in models}


def columns(row: Any, *left_out: str) -> dict[str, Any]:
    return {
        field.attname: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if field.attname not in ("id", *left_out)
    }


def test_the_page_says_what_the_level_asks_for(client: Client, zoe: User) -> None:
    page = Page(client.get(URL))
    assert page.heading == "Register a platform"
    assert page.tables == {"asked": [(row.text, row.how) for row in criteria_of(PROPOSED_LEVEL)]}
    assert len(page.tables["asked"]) == 3
    assert 'name="contact" value="zoe@zephyr.example"' in page.html


def test_a_visitor_is_sent_to_sign_in(client: Client) -> None:
    before = written()
    for answer in (client.get(URL), client.post(URL, form())):
        assert (answer.status_code, answer.headers["Location"]) == (302, f"/accounts/login/?next={URL}")
    assert written() == before


def test_a_proposal_waits_for_the_maintainers(client: Client, zoe: User) -> None:
    ada = maintainer("ada")
    User.objects.filter(pk=ada.pk).update(email="ada@upstream.example")
    maintainer("without-address")
    answer = client.post(
        URL,
        form(
            device="zephyr",
            events=["pull_request", "nightly"],
            **{"evidence-2-title": " Photo ", "evidence-2-url": "http://zephyr.example/photo"},
        ),
    )
    made = Proposal.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/proposals/{made.public_id}/")
    assert columns(made, "public_id", "submitted_at", "changed_at") == {
        "state": "waiting",
        "revision": 1,
        "proposer_id": zoe.pk,
        "platform_name": "Zephyr NPU",
        "full_name": "zephyr/torch",
        "device": "zephyr",
        "oncalls": ["zoe", "yann"],
        "events": ["nightly", "pull_request"],
        "contact": "ci@zephyr.example",
        "platform_id": None,
        "repository_id": None,
    }
    assert made.submitted_at == made.changed_at
    items = list(made.evidence.all())
    said = [CARD, Item("Photo", "", "http://zephyr.example/photo")]
    assert [(row.revision, row.position, row.title, row.text, row.url) for row in items] == [
        (1, position, item.title, item.text, item.url) for position, item in enumerate(said)
    ]
    assert [row.digest for row in items] == [
        evidence_digest(item, salt=row.salt) for item, row in zip(said, items, strict=True)
    ]
    assert len({row.salt for row in items}) == 2
    (step,) = made.transitions.all()
    assert columns(step, "at") == {
        "proposal_id": made.pk,
        "verb": "submit",
        "state": "waiting",
        "revision": 1,
        "actor_label": "zoe",
        "words": "",
        "event_seq": None,
    }
    (notice,) = step.notices.all()
    assert columns(notice, "public_id", "changed_at", "next_attempt_at") == {
        "transition_id": step.pk,
        "user_id": ada.pk,
        "state": "pending",
        "attempts": 0,
        "sent_at": None,
        "alarm_id": None,
        "event_seq": None,
        "error": "",
    }
    assert list(Wakeup.objects.values_list("topic", "key")) == [("notice_pending", str(notice.pk))]
    event = Event.objects.first()
    assert event is not None
    body = body_of(event)
    assert {name: body[name] for name in body if name not in ("at", "seq", "format")} == {
        "action": "proposal.submitted",
        "actor": {"kind": "user", "id": str(zoe.public_id), "label": "zoe"},
        "subject": {"kind": "proposal", "id": str(made.public_id), "label": "zephyr/torch"},
        "summary": "zephyr/torch proposed for L1",
        "before": {},
        "after": {
            "state": "waiting",
            "platform": "Zephyr NPU",
            "repository": "zephyr/torch",
            "device": "zephyr",
            "oncalls": ["zoe", "yann"],
            "events": ["nightly", "pull_request"],
        },
        "reason": "",
        "evidence": {"evidence_sha256": f"{items[0].digest} {items[1].digest}"},
        "is_decision": False,
    }
    # Nothing is listed, and nothing is public, before somebody decides.
    assert (Platform.objects.count(), Repository.objects.count()) == (0, 0)


def test_a_repository_known_at_l0_can_be_proposed_a_listed_one_cannot(client: Client, zoe: User) -> None:
    listed({"zephyr/torch": 1, "listed/torch": 2})
    listed({"listed/torch": 2})
    assert client.post(URL, form(full_name="Zephyr/Torch")).status_code == 302
    before = written()
    answer = client.post(URL, form(full_name="Listed/Torch"))
    assert answer.status_code == 200
    words = "full_name: listed/torch is listed already, at L2. To speak for it, ask its members or a maintainer."
    assert words in Page(answer).text
    assert written() == before


def test_one_open_proposal_per_repository(client: Client, zoe: User) -> None:
    first = proposal("Zephyr/Torch")
    before = written()
    refused = "full_name: a proposal for zephyr/torch is open already."
    assert refused in Page(client.post(URL, form())).text
    assert written() == before
    first = returned(first)
    assert refused in Page(client.post(URL, form())).text
    withdrawn(first)
    assert client.post(URL, form()).status_code == 302
    assert list(Proposal.objects.order_by("pk").values_list("full_name", "state")) == [
        ("Zephyr/Torch", "withdrawn"),
        ("zephyr/torch", "waiting"),
    ]


def test_nobody_floods_the_maintainers(client: Client, zoe: User) -> None:
    for number in range(SUBMISSIONS_PER_DAY):
        assert client.post(URL, form(full_name=f"zephyr/torch-{number}")).status_code == 302
    before = written()
    answer = client.post(URL, form())
    assert f"{SUBMISSIONS_PER_DAY} proposals in 24 hours are the most: submit this one tomorrow." in Page(answer).text
    assert written() == before
    client.force_login(user())
    assert client.post(URL, form()).status_code == 302


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"platform_name": ""}, "This field is required."),
        ({"platform_name": "x" * 101}, "Ensure this value has at most 100 characters (it has 101)."),
        ({"platform_name": "a\0b"}, "Null characters are not allowed."),
        ({"platform_name": "Zephyr\nBcc: all@example.org"}, "take out the character U+000A: it cannot be seen."),
        ({"platform_name": "Zephyr \u202euPN"}, "take out the character U+202E: it cannot be seen."),
        ({"platform_name": "write CI@zephyr.example"}, "platform_name: leave the contact's e-mail address out"),
        ({"full_name": "https://github.com/zephyr/torch"}, "write owner/name as it stands on GitHub, not an address."),
        ({"full_name": "zephyr"}, "write owner/name as it stands on GitHub, not an address."),
        ({"full_name": "zephyr/.."}, "write owner/name as it stands on GitHub, not an address."),
        ({"full_name": "zephyr/torch\n"}, None),
        ({"oncalls": ""}, "This field is required."),
        ({"oncalls": " , "}, "name 1 to 10 GitHub logins, a comma between two."),
        ({"oncalls": "@zoe"}, "'@zoe' is not a GitHub login: write it without @."),
        ({"oncalls": "zoe, Zoe"}, "name each login once."),
        ({"oncalls": ",".join(f"a{number}" for number in range(11))}, "name 1 to 10 GitHub logins"),
        ({"events": []}, "This field is required."),
        ({"events": ["push"]}, "Select a valid choice. push is not one of the available choices."),
        ({"device": "two words"}, "one word of at most 38 ASCII characters"),
        ({"contact": "zoe"}, "Enter a valid email address."),
        ({"contact": ""}, "This field is required."),
        ({"evidence-0-title": "", "evidence-0-text": "", "evidence-0-url": ""}, "give 1 to 10 items"),
        ({"evidence-0-title": " "}, "This field is required."),
        ({"evidence-0-title": "a\tb"}, "take out the character U+0009: it cannot be seen."),
        ({"evidence-0-text": "", "evidence-0-url": ""}, "write a text, or give a link."),
        ({"evidence-0-text": "x" * 4_001}, "Ensure this value has at most 4000 characters (it has 4001)."),
        ({"evidence-0-text": "a\x1b[31mb"}, "take out the character U+001B: it cannot be seen."),
        ({"evidence-0-url": "javascript:alert(1)"}, "begin with https:// or http://."),
        ({"evidence-0-url": "data:text/html,x"}, "begin with https:// or http://."),
        ({"evidence-0-url": "ftp://zephyr.example/"}, "begin with https:// or http://."),
        ({"evidence-0-url": "//zephyr.example/"}, "begin with https:// or http://."),
        ({"evidence-0-url": "https://github.com@evil.example/"}, "a host name without user@"),
        ({"evidence-0-url": "https://zephyr.example\\@evil.example/"}, "a host name without user@"),
        ({"evidence-0-url": "https://z\u0435phyr.example/"}, "a host name without user@"),
        ({"evidence-0-url": 'https://zephyr.example/"onmouseover=x'}, "a host name without user@"),
        ({"evidence-0-url": "https://zephyr.example/" + "x" * 500}, "Ensure this value has at most 500 characters"),
        ({"evidence-TOTAL_FORMS": "x"}, "The form arrived incomplete: reload the page and send it again."),
        ({"evidence-TOTAL_FORMS": "1000"}, f"Give at most {EVIDENCE_MAX} items of evidence."),
        ({"evidence-1-title": "Second"}, "write a text, or give a link."),
    ],
)
def test_what_cannot_be_proposed_is_said_on_the_form(
    client: Client, zoe: User, values: dict[str, Any], words: str | None
) -> None:
    before = written()
    answer = client.post(URL, form(**values))
    if words is None:  # white space around a value is nobody's mistake
        assert answer.status_code == 302
        return
    assert (answer.status_code, words in Page(answer).text) == (200, True), Page(answer).text
    assert written() == before


def test_what_was_written_stays_on_the_form_as_text(client: Client, zoe: User) -> None:
    hostile = "<script>alert(1)</script>"
    html = client.post(URL, form(platform_name=hostile, full_name=hostile)).content.decode()
    assert "&lt;script&gt;alert(1)" in html
    assert hostile not in html


def test_another_site_cannot_propose(client: Client, zoe: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(zoe)
    before = written()
    assert strict.post(URL, form()).status_code == 403
    assert written() == before
