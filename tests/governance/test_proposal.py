"""`/proposals/<id>/` and its acts: who sees what, who may do what, what it leads to."""

import re
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Organisation, User
from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.governance.models import Notice, Proposal
from apps.platforms.models import LevelInterval, Membership, Platform, Repository
from apps.platforms.policy import consequences
from tests.factories.listing import listed, member_of, user
from tests.factories.pages import Page
from tests.factories.proposals import (
    CARD,
    accepted,
    draft,
    form,
    fresh,
    maintainer,
    proposal,
    resubmitted,
    returned,
    withdrawn,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def zoe(db: None) -> User:
    return user(username="zoe")


@pytest.fixture
def ada(db: None) -> User:
    return maintainer("ada")


@pytest.fixture
def made(zoe: User) -> Proposal:
    return proposal(by=zoe)


def at(made: Proposal, act: str = "") -> str:
    return f"/proposals/{made.public_id}/{act}{'/' if act else ''}"


def say(client: Client, made: Proposal, act: str, words: str = "because", **values: Any) -> Any:
    field = "reason" if act == "accept" else "words"
    given = {f"{act}-{field}": words, f"{act}-revision": str(made.revision)}
    return client.post(at(made, act), given | values)


def history(made: Proposal) -> list[tuple[Any, ...]]:
    fields = ("verb", "state", "revision", "actor_label", "words", "event_seq")
    return list(made.transitions.order_by("pk").values_list(*fields))


def told() -> list[tuple[Any, ...]]:
    """E-mails that wait: about which act, to which user (None: the contact)."""
    return list(Notice.objects.values_list("transition__verb", "user", "state"))


def last() -> dict[str, Any]:
    event = Event.objects.first()
    assert event is not None
    return {name: value for name, value in body_of(event).items() if name not in ("at", "seq", "format")}


class TestWhoSees:
    def test_a_stranger_and_a_visitor_find_nothing(self, client: Client, made: Proposal) -> None:
        other = listed({"other/torch": 1})["other/torch"]
        for person in (None, user(), member_of(other.platform), user(Role.OPERATOR)):
            client.logout()
            if person:
                client.force_login(person)
            answer = client.get(at(made))
            assert answer.status_code == 404
            html = answer.content.decode()
            assert [word for word in ("zephyr", "Zephyr", "zoe", CARD.title) if word in html] == []

    @pytest.mark.parametrize("act", ["edit", "withdraw"])
    def test_a_stranger_finds_no_act_either(self, client: Client, made: Proposal, act: str) -> None:
        client.force_login(user())
        assert [client.get(at(made, act)).status_code, say(client, made, act).status_code] == [404, 404]
        assert fresh(made).state == "waiting"

    def test_the_proposer_and_who_decides_see_all_of_it(self, client: Client, made: Proposal, zoe: User) -> None:
        for person in (zoe, maintainer(), user(Role.ADMIN)):
            client.force_login(person)
            page = Page(client.get(at(made)))
            assert page.heading == "Zephyr NPU for L1"
            assert "◔ waiting for 3 d 1 h" in page.text
            assert "next: the maintainers" in page.text
            assert page.facts["said"] == {
                "Platform": "Zephyr NPU",
                "Repository": "zephyr/torch",
                "Oncalls": "zoe, yann",
                "Takes part in": "pull_request",
                "Device": "none named",
                "Proposed by": "zoe, 3 d ago",
                "Contact": "ci@zephyr.example seen by the proposer and the maintainers only",
            }
            item = made.evidence.get()
            proof = f"digest {item.digest[:12]} · salt {item.salt}"
            assert page.items["evidence"] == [f"{CARD.title} {CARD.text} {CARD.url} {proof}"]
            assert "can prove by the digest" in page.text
            assert page.items["history"] == ["◔submitted by zoe, 3 d ago"]

    def test_members_see_it_once_it_is_accepted_but_not_the_contact(self, client: Client, made: Proposal) -> None:
        repository = listed({"zephyr/torch": 1, "other/torch": 1})["zephyr/torch"]
        listed({"other/torch": 1})
        client.force_login(member_of(repository.platform))
        assert client.get(at(made)).status_code == 404
        accepted(made)
        page = Page(client.get(at(made)))
        assert page.heading == "Zephyr NPU for L1"
        assert "Contact" not in page.facts["said"]
        assert "ci@zephyr.example" not in page.html
        assert made.evidence.get().salt not in page.html
        assert "salt" not in page.text
        client.force_login(member_of(Platform.objects.get(slug="other-torch")))
        assert client.get(at(made)).status_code == 404

    def test_a_withdrawn_one_stays_with_its_proposer_and_the_maintainers(
        self, client: Client, made: Proposal, zoe: User
    ) -> None:
        withdrawn(made)
        seen = []
        for person in (zoe, maintainer(), user()):
            client.force_login(person)
            seen.append(client.get(at(made)).status_code)
        assert seen == [200, 200, 404]

    def test_links_are_handed_on_without_a_trace_and_words_stay_text(
        self, client: Client, zoe: User, ada: User
    ) -> None:
        hostile = "<img src=x onerror=alert(1)>"
        item = {"title": hostile, "text": hostile, "url": "https://zephyr.example/?a=1&b='"}
        item["url"] = "https://zephyr.example/?a=1&b=%27"
        made = proposal(by=zoe, platform_name=hostile, evidence=(type(CARD)(**item),))
        returned(made, words=hostile)
        client.force_login(zoe)
        for url in (at(made), at(made, "edit"), "/console/"):
            html = client.get(url).content.decode()
            assert "&lt;img src=x onerror=alert(1)&gt;" in html
            assert hostile not in html
        html = client.get(at(made)).content.decode()
        assert 'href="https://zephyr.example/?a=1&amp;b=%27" rel="nofollow noreferrer noopener"' in html


class TestAccepting:
    def test_the_page_shows_what_it_would_change(self, client: Client, made: Proposal, ada: User) -> None:
        client.force_login(ada)
        page = Page(client.get(at(made)))
        assert page.tables["effect"] == [(row.title, row.before, row.after) for row in consequences(0, 1)] + [
            ("Platform", "none", "Zephyr NPU, new"),
            ("Members", "none", "zoe joins: sees private callbacks and refusals"),
            ("Told", "nobody", "the contact, by e-mail; everyone, in the log"),
        ]
        listed({"Zephyr/torch": 1})
        listed({"other/torch": 1})
        page = Page(client.get(at(made)))
        assert page.tables["effect"][4:6] == [
            ("Platform", "torch", "torch, under its own name"),
            ("Members", "as on its page", "zoe joins: sees private callbacks and refusals"),
        ]

    def test_it_lists_the_repository_and_lets_the_proposer_speak_for_it(
        self, client: Client, made: Proposal, zoe: User, ada: User
    ) -> None:
        client.force_login(ada)
        answer = say(client, made, "accept", "  the card is there  ")
        assert (answer.status_code, answer.headers["Location"]) == (302, at(made))
        repository = Repository.objects.get()
        platform = repository.platform
        assert (repository.full_name, repository.level, repository.device, repository.oncalls, repository.events) == (
            "zephyr/torch",
            1,
            "",
            ["zoe", "yann"],
            ["pull_request"],
        )
        assert (platform.name, platform.slug) == ("Zephyr NPU", "zephyr-torch")
        assert list(Membership.objects.values_list("platform", "user")) == [(platform.pk, zoe.pk)]
        decided = fresh(made)
        assert (decided.state, decided.revision, decided.platform, decided.repository) == (
            "accepted",
            1,
            platform,
            repository,
        )
        decision, joined = Event.objects.order_by("-seq")[1], Event.objects.order_by("-seq")[0]
        assert list(LevelInterval.objects.values_list("level", "started_at", "ended_at", "event_seq")) == [
            (1, decision.at, None, decision.seq)
        ]
        body = body_of(decision)
        assert {name: body[name] for name in body if name not in ("at", "seq", "format")} == {
            "action": "repository.listed",
            "actor": {"kind": "user", "id": str(ada.public_id), "label": "ada"},
            "subject": {"kind": "repository", "id": str(repository.public_id), "label": "zephyr/torch"},
            "summary": "zephyr/torch listed at L1",
            "before": {"level": "L0", "device": "", "oncalls": [], "events": []},
            "after": {"level": "L1", "device": "", "oncalls": ["zoe", "yann"], "events": ["pull_request"]},
            "reason": "the card is there",
            "evidence": {
                "proposal": str(made.public_id),
                "revision": 1,
                "evidence_sha256": made.evidence.get().digest,
            },
            "is_decision": True,
        }
        assert (joined.action, joined.is_decision) == ("platform.member_added", False)
        assert history(made) == [
            ("submit", "waiting", 1, "zoe", "", None),
            ("accept", "accepted", 1, "ada", "the card is there", decision.seq),
        ]
        assert told() == [("accept", None, "pending")]
        page = Page(client.get(at(made)))
        assert page.items[""][0] == f"● Decision #{decision.seq}: zephyr/torch is listed at L1."
        assert f"/decisions/{decision.seq}/" in page.links

    def test_a_repository_known_at_l0_comes_back_under_its_platform(self, client: Client, zoe: User, ada: User) -> None:
        known = listed({"Zephyr/Torch": (3, {"device": "z"})})["Zephyr/Torch"]
        listed({"other/torch": 1})
        made = proposal(by=zoe)
        client.force_login(ada)
        assert say(client, made, "accept").status_code == 302
        repository = Repository.objects.get(pk=known.pk)
        assert (repository.full_name, repository.level, repository.device, repository.platform_id) == (
            "Zephyr/Torch",
            1,
            "z",
            known.platform_id,
        )
        assert repository.platform.name == "Torch"
        assert list(repository.level_intervals.order_by("pk").values_list("level", flat=True)) == [3, 0, 1]
        body = body_of(Event.objects.get(action="repository.level_changed", is_decision=True, actor_label="ada"))
        assert body["summary"] == "Zephyr/Torch raised from L0 to L1"

    def test_one_that_was_listed_meanwhile_is_refused_with_the_reason(
        self, client: Client, made: Proposal, ada: User
    ) -> None:
        listed({"zephyr/torch": 2})
        before = Event.objects.count()
        client.force_login(ada)
        answer = say(client, made, "accept", "mine")
        assert answer.status_code == 409
        page = Page(answer)
        assert "zephyr/torch is listed already, at L2: change its level instead." in page.text
        assert ">\nmine</textarea>" in page.html
        assert (fresh(made).state, Event.objects.count(), Membership.objects.count()) == ("waiting", before, 0)

    def test_the_log_holds_no_address(self, client: Client, zoe: User, ada: User) -> None:
        made = proposal(by=zoe)
        client.force_login(ada)
        answer = say(client, made, "return", "ask CI@Zephyr.example")
        assert "words: leave the contact's e-mail address out, this stays in the log." in Page(answer).text
        made = resubmitted(returned(made))
        say(client, made, "accept", "ci@zephyr.example said so")
        assert fresh(made).state == "waiting"
        accepted(made)
        assert [event.seq for event in Event.objects.all() if "zephyr.example" in event.body] == []
        for url in ("/decisions/", f"/decisions/{Event.objects.filter(is_decision=True)[0].seq}/", "/platforms/"):
            assert "ci@zephyr.example" not in client.get(url).content.decode()


class TestReturning:
    def test_the_vendor_is_next_and_hears_what_is_missing(
        self, client: Client, made: Proposal, zoe: User, ada: User
    ) -> None:
        client.force_login(ada)
        assert say(client, made, "return", "Which architecture?").status_code == 302
        assert last() == {
            "action": "proposal.returned",
            "actor": {"kind": "user", "id": str(ada.public_id), "label": "ada"},
            "subject": {"kind": "proposal", "id": str(made.public_id), "label": "zephyr/torch"},
            "summary": "Proposal of zephyr/torch for L1 returned",
            "before": {"state": "waiting"},
            "after": {"state": "returned"},
            "reason": "Which architecture?",
            "evidence": {},
            "is_decision": False,
        }
        assert history(made)[1:] == [("return", "returned", 1, "ada", "Which architecture?", None)]
        assert told() == [("return", None, "pending")]
        assert Repository.objects.count() == 0
        client.force_login(zoe)
        page = Page(client.get(at(made)))
        assert "▲ returned for" in page.text
        assert "next: the vendor" in page.text
        assert re.sub(r"\d+ s", "0 s", page.items["history"][0]) == "▲returned by ada, 0 s ago Which architecture?"
        assert at(made, "edit") in page.links

    @pytest.mark.parametrize("act", ["accept", "return"])
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ("", "This field is required."),
            (" \n ", "This field is required."),
            ("x" * 2_001, "Ensure this value has at most 2000 characters (it has 2001)."),
            ("a\u202eb", "take out the character U+202E: it cannot be seen."),
        ],
    )
    def test_without_proper_words_nothing_is_decided(
        self, client: Client, made: Proposal, ada: User, act: str, words: str, said: str
    ) -> None:
        client.force_login(ada)
        answer = say(client, made, act, words)
        assert (answer.status_code, said in Page(answer).text) == (200, True)
        assert (fresh(made).state, len(history(made))) == ("waiting", 1)


class TestComingBack:
    def test_the_form_begins_with_what_was_said(self, client: Client, made: Proposal, zoe: User) -> None:
        made = returned(made)
        client.force_login(zoe)
        page = Page(client.get(at(made, "edit")))
        assert page.heading == "Complete the proposal of zephyr/torch"
        assert "Which architecture?" in page.text
        for name, value in form().items():
            if name.startswith("evidence-0-t") or name == "events":
                continue
            value = {"evidence-TOTAL_FORMS": "4", "evidence-INITIAL_FORMS": "1"}.get(name, value)
            assert f'name="{name}"{f" value={chr(34)}{value}{chr(34)}" if value else ""}' in page.html, name

    def test_completed_it_waits_again(self, client: Client, made: Proposal, zoe: User, ada: User) -> None:
        User.objects.filter(pk=ada.pk).update(email="ada@upstream.example")
        made = returned(made)
        client.force_login(zoe)
        values = {
            "platform_name": "Zephyr Z2",
            "contact": "new@zephyr.example",
            "revision": "1",
            "words": "zv2",
            "evidence-TOTAL_FORMS": "4",
            "evidence-INITIAL_FORMS": "1",
            "evidence-0-title": "",
            "evidence-0-text": "",
            "evidence-0-url": "",
            "evidence-3-title": "Log",
            "evidence-3-text": "zv2, 64-bit",
        }
        answer = client.post(at(made, "edit"), form(**values))
        assert (answer.status_code, answer.headers["Location"]) == (302, at(made))
        after = fresh(made)
        assert (after.state, after.revision, after.platform_name, after.contact) == (
            "waiting",
            2,
            "Zephyr Z2",
            "new@zephyr.example",
        )
        assert after.submitted_at == made.submitted_at
        assert after.changed_at > made.changed_at
        # What an earlier submission brought stays as it was.
        assert list(made.evidence.values_list("revision", "position", "title")) == [(1, 0, "The card"), (2, 0, "Log")]
        assert history(made)[2:] == [("resubmit", "waiting", 2, "zoe", "zv2", None)]
        assert list(Notice.objects.filter(transition__verb="resubmit").values_list("user", flat=True)) == [ada.pk]
        body = last()
        assert (body["action"], body["before"]["platform"], body["after"]["platform"], body["reason"]) == (
            "proposal.resubmitted",
            "Zephyr NPU",
            "Zephyr Z2",
            "zv2",
        )
        page = Page(client.get(at(made)))
        item = made.evidence.get(revision=2)
        assert page.items["evidence"] == [f"Log zv2, 64-bit digest {item.digest[:12]} · salt {item.salt}"]

    def test_only_a_returned_one_can_be_edited(self, client: Client, made: Proposal, zoe: User) -> None:
        client.force_login(zoe)
        for answer in (client.get(at(made, "edit")), client.post(at(made, "edit"), form(revision="1"))):
            assert (answer.status_code, answer.headers["Location"]) == (302, at(made))
        page = Page(client.get(at(made)))
        assert page.items[""][0] == "▲ The proposal is waiting: only a returned one can be edited."
        assert fresh(made).revision == 1

    def test_it_may_not_become_a_repository_that_is_taken(self, client: Client, made: Proposal, zoe: User) -> None:
        proposal("other/torch")
        listed({"listed/torch": 1})
        made = returned(made)
        client.force_login(zoe)
        for name, words in (("Other/Torch", "is open already"), ("listed/torch", "is listed already, at L1")):
            answer = client.post(at(made, "edit"), form(full_name=name, revision="1"))
            assert (answer.status_code, words in Page(answer).text) == (200, True)
        assert (fresh(made).state, fresh(made).full_name) == ("returned", "zephyr/torch")

    def test_withdrawn_it_is_over(self, client: Client, made: Proposal, zoe: User) -> None:
        client.force_login(zoe)
        assert say(client, made, "withdraw", "").status_code == 302
        assert fresh(made).state == "withdrawn"
        assert (last()["action"], last()["after"]) == ("proposal.withdrawn", {"state": "withdrawn"})
        assert Notice.objects.count() == 0
        answer = say(client, made, "withdraw", "")
        assert answer.status_code == 409
        assert "The proposal is withdrawn now, submission 1: look again, then decide." in Page(answer).text


class TestWhoMay:
    @pytest.mark.parametrize("act", ["accept", "return"])
    def test_nobody_decides_on_their_own_proposal(self, client: Client, ada: User, act: str) -> None:
        made = proposal(by=ada)
        client.force_login(ada)
        page = Page(client.get(at(made)))
        assert "Nobody decides on their own proposal" in page.text
        assert f'action="{at(made, act)}"' not in page.html
        answer = say(client, made, act)
        assert answer.status_code == 403
        assert "Nobody decides on their own proposal: another maintainer has to." in Page(answer).text
        assert (fresh(made).state, len(history(made)), Repository.objects.count()) == ("waiting", 1, 0)

    @pytest.mark.parametrize("act", ["accept", "return"])
    def test_nobody_decides_on_a_proposal_of_their_organisation(
        self, client: Client, made: Proposal, zoe: User, ada: User, act: str
    ) -> None:
        theirs, other = (Organisation.objects.create(slug=s, name=s, created_at=now()) for s in ("aster", "birch"))
        User.objects.filter(pk__in=[zoe.pk, ada.pk]).update(organisation=theirs)
        client.force_login(ada)
        page = Page(client.get(at(made)))
        assert "Nobody decides on a proposal of their own organisation" in page.text
        assert f'action="{at(made, act)}"' not in page.html
        answer = say(client, made, act)
        assert answer.status_code == 403
        assert "Nobody decides on a proposal of their own organisation: another maintainer has to." in Page(answer).text
        assert (fresh(made).state, len(history(made)), Repository.objects.count()) == ("waiting", 1, 0)
        User.objects.filter(pk=ada.pk).update(organisation=other)
        assert f'action="{at(made, act)}"' in Page(client.get(at(made))).html
        assert say(client, made, act).status_code == 302

    @pytest.mark.parametrize("act", ["accept", "return"])
    def test_the_vendor_decides_on_nothing(self, client: Client, made: Proposal, zoe: User, act: str) -> None:
        client.force_login(zoe)
        assert say(client, made, act).status_code == 403
        assert fresh(made).state == "waiting"

    def test_a_maintainer_withdraws_for_nobody(self, client: Client, made: Proposal, ada: User) -> None:
        client.force_login(ada)
        answer = say(client, made, "withdraw")
        assert answer.status_code == 403
        assert "Only zoe, who made the proposal, can do this." in Page(answer).text
        assert client.get(at(made, "edit")).status_code == 404
        assert fresh(made).state == "waiting"

    @pytest.mark.parametrize("act", ["accept", "return"])
    def test_a_decision_is_about_the_submission_that_was_read(
        self, client: Client, made: Proposal, ada: User, act: str
    ) -> None:
        resubmitted(returned(made))
        client.force_login(ada)
        answer = say(client, made, act, "about the first")
        assert answer.status_code == 409
        page = Page(answer)
        assert "The proposal is waiting now, submission 2: look again, then decide." in page.text
        assert f'name="{act}-revision" value="2"' in page.html
        assert ">\nabout the first</textarea>" in page.html
        assert fresh(made).state == "waiting"
        assert say(client, fresh(made), act, "about the second").status_code == 302

    def test_who_had_to_sign_in_on_the_way_comes_back_to_the_page(
        self, client: Client, made: Proposal, ada: User
    ) -> None:
        assert client.post(at(made, "accept")).headers["Location"] == f"/accounts/login/?next={at(made, 'accept')}"
        client.force_login(ada)
        for act in ("accept", "return", "withdraw"):
            assert client.get(at(made, act)).headers["Location"] == at(made)

    def test_another_site_decides_nothing(self, made: Proposal, ada: User) -> None:
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(ada)
        assert say(strict, made, "accept").status_code == 403
        assert fresh(made).state == "waiting"


def test_the_page_asks_the_database_as_often_for_one_item_as_for_three(
    client: Client, ada: User, django_assert_num_queries: Any
) -> None:
    one, three = proposal("a/one"), proposal("a/three", evidence=(CARD, CARD, CARD))
    resubmitted(returned(three), evidence=draft(evidence=(CARD, CARD, CARD)).evidence)
    client.force_login(ada)
    for made, steps in ((one, 1), (three, 3)):
        with django_assert_num_queries(8):
            assert len(Page(client.get(at(made))).items["history"]) == steps
