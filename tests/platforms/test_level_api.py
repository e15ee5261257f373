"""`POST /api/v1/repositories/{owner}/{name}/level/`."""

from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from apps.accounts.policy import Role
from apps.accounts.services import create_api_token
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.api import SIGN_IN
from apps.core.clock import now
from apps.platforms.models import Repository
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.pages import problem, problem_body

pytestmark = pytest.mark.django_db
URL = reverse("api:level", args=["acme", "torch"])
RAISE_REFUSED = "cannot be reached by a direct change: raising goes up to L2. Open a promotion: it freezes the evidence"


@pytest.fixture
def maintainer(client: Client) -> Client:
    ada = user(Role.MAINTAINER, username="ada")
    token = create_api_token(user=ada, note="tests", actor=TESTS, now=now())
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {token}"
    return client


def at(level: int, **options: Any) -> Repository:
    return listed({"acme/torch": (level, options)})["acme/torch"]


def decide(client: Client, url: str = URL, **values: Any) -> Any:
    given = {"level": "L2", "reason": "60 days green"} | values
    body = {name: value for name, value in given.items() if value is not None}
    return client.post(url, body, content_type="application/json")


def decisions() -> list[str]:
    return [body_of(event)["summary"] for event in Event.objects.filter(is_decision=True).order_by("seq")]


def test_the_answer_is_the_decision_as_the_log_holds_it(maintainer: Client) -> None:
    repository = at(1)
    answer = decide(maintainer, evidence="https://example.org/report", expected_level="L1")
    event = Event.objects.first()
    assert event is not None
    assert (answer.status_code, answer.json()) == (
        200,
        body_of(event)
        | {
            "previous_hash": event.previous_hash,
            "hash": event.hash,
            "url": f"{settings.BASE_URL}/decisions/{event.seq}/",
        },
    )
    assert answer.json()["summary"] == "acme/torch raised from L1 to L2"
    assert answer.json()["evidence"] == {"text": "https://example.org/report"}
    repository.refresh_from_db()
    assert (repository.level, repository.level_intervals.get(ended_at=None).event_seq) == (2, event.seq)


def test_the_name_is_read_in_any_case_of_letters(maintainer: Client) -> None:
    at(1)
    assert decide(maintainer, url="/api/v1/repositories/ACME/Torch/level/").status_code == 200


@pytest.mark.parametrize(
    ("level", "to", "device", "summary"),
    [
        (4, "L2", None, "acme/torch lowered from L4 to L2"),
        (4, "L0", None, "acme/torch lowered from L4 to L0"),
        (3, "L1", None, "acme/torch lowered from L3 to L1"),
        (4, "L3", "xpu", "acme/torch lowered from L4 to L3"),
    ],
)
def test_lowering_from_l3_and_l4_is_direct(
    maintainer: Client, level: int, to: str, device: str | None, summary: str
) -> None:
    at(level)
    assert decide(maintainer, level=to, device=device).status_code == 200
    assert decisions()[1:] == [summary]


def test_a_device_that_is_known_need_not_be_sent_again(maintainer: Client) -> None:
    at(3, device="npu")
    at(4)
    assert decide(maintainer, level="L3").status_code == 200
    assert list(Repository.objects.values_list("level", "device")) == [(3, "npu")]


@pytest.mark.parametrize(
    ("values", "detail", "field"),
    [
        ({"reason": None}, "reason: is missing, send it.", "reason"),
        ({"reason": ""}, "reason: is empty, send text.", "reason"),
        ({"reason": " \n"}, "reason: is empty, send text.", "reason"),
        ({"reason": "x" * 2_001}, "reason: is longer than 2000 characters, send less.", "reason"),
        ({"reason": ["a"]}, "reason: is no text, send a string.", "reason"),
        ({"reason": "a\0b"}, "reason: holds a NUL character, send text without.", "reason"),
        ({"level": "L5"}, "level: 'L5' is no level, send one of L0 … L4.", "level"),
        ({"level": 2}, "level: '2' is no level, send one of L0 … L4.", "level"),
        ({"level": None}, "level: is missing, send it.", "level"),
        ({"level": None, "reason": None}, "level: is missing, send it. reason: is missing, send it.", "level"),
        ({"expected_level": "2"}, "expected_level: '2' is no level, send one of L0 … L4.", "expected_level"),
        (
            {"device": "two words"},
            "device: 'two words' fits no label, send up to 38 printable characters.",
            "device",
        ),
        (
            {"device": "x" * 39},
            f"device: '{'x' * 39}' fits no label, send up to 38 printable characters.",
            "device",
        ),
    ],
)
def test_a_field_that_does_not_fit_is_named(
    maintainer: Client, values: dict[str, Any], detail: str, field: str
) -> None:
    at(1)
    assert problem(decide(maintainer, **values)) == problem_body("malformed", detail, field)
    assert decisions() == ["acme/torch listed at L1"]


@pytest.mark.parametrize(
    "body", ["not JSON", "", "[]", '"text"', "[" * 100_000, '{"level": "L2", "reason": "\\ud800"}']
)
def test_a_body_that_is_no_json_object_is_refused(maintainer: Client, body: str) -> None:
    at(1)
    answer = maintainer.post(URL, body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")
    assert decisions() == ["acme/torch listed at L1"]


def test_another_content_type_is_refused(maintainer: Client) -> None:
    at(1)
    answer = maintainer.post(URL, {"level": "L2", "reason": "x"})
    assert (answer.status_code, answer.json()["code"]) == (415, "media_type")


@pytest.mark.parametrize(
    ("level", "to", "detail"),
    [
        (2, "L3", f"L3 {RAISE_REFUSED} that maintainers approve."),
        (2, "L4", f"L4 {RAISE_REFUSED} that maintainers approve."),
        (3, "L4", f"L4 {RAISE_REFUSED} that maintainers approve."),
        (2, "L2", "The repository is at L2 already."),
        (4, "L3", "L3 needs a device, the word in the label ciflow/crcr/<device>: send one."),
    ],
)
def test_a_change_that_is_not_direct_is_a_conflict(maintainer: Client, level: int, to: str, detail: str) -> None:
    at(level)
    assert problem(decide(maintainer, level=to)) == problem_body("level_transition", detail, "level")
    assert decisions() == [f"acme/torch listed at L{level}"]


def test_a_decision_on_a_level_that_has_changed_is_a_conflict(maintainer: Client) -> None:
    at(2)
    answer = decide(maintainer, level="L0", expected_level="L1")
    detail = "acme/torch is at L2, you decided on L1."
    assert problem(answer) == problem_body("level_stale", detail, "expected_level")
    assert decisions() == ["acme/torch listed at L2"]


@pytest.mark.parametrize("path", ["acme/other", "acme/torch%00", "%00/torch", "other/torch"])
def test_an_unknown_repository_is_not_found(maintainer: Client, path: str) -> None:
    at(1)
    answer = decide(maintainer, url=f"/api/v1/repositories/{path}/level/")
    assert problem(answer) == problem_body("not_found", "There is nothing at this address, or not for you.")


def test_a_visitor_is_told_to_sign_in(client: Client) -> None:
    at(1)
    answer = decide(client)
    assert problem(answer) == problem_body("not_signed_in", SIGN_IN)
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="AccelHub"'


def test_a_vendor_and_an_operator_may_not(client: Client) -> None:
    repository = at(1)
    for person in (member_of(repository.platform), user(Role.OPERATOR)):
        client.force_login(person)
        answer = decide(client)
        assert problem(answer) == problem_body(
            "not_permitted",
            "This needs the permission level:change: ask an admin for a role that has it, see /policy/.",
        )
    assert decisions() == ["acme/torch listed at L1"]


def test_who_may_not_learns_nothing_of_what_is_there(client: Client) -> None:
    at(1)
    client.force_login(user(Role.OPERATOR))
    answers = [decide(client), decide(client, url="/api/v1/repositories/acme/other/level/"), decide(client, level="L9")]
    assert len({str(problem(answer)) for answer in answers}) == 1


def test_a_session_needs_the_forms_token(client: Client) -> None:
    at(1)
    ada = user(Role.MAINTAINER)
    client.force_login(ada)
    assert decide(client).status_code == 200
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ada)
    answer = decide(strict, level="L1")
    assert (answer.status_code, answer.json()["code"]) == (403, "csrf")
    assert decisions()[1:] == ["acme/torch raised from L1 to L2"]
