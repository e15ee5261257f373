"""`/pipelines/`: operators say which Buildkite pipeline speaks for which repository."""

import uuid
from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import Client, override_settings

from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.platforms.models import Pipeline, Repository
from tests.factories.listing import listed, member_of, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = "/pipelines/"
ORGANIZATION, PIPELINE = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
FORM = {
    "act": "add",
    "repository": "acme/torch",
    "organization_id": ORGANIZATION,
    "pipeline_id": PIPELINE,
    "build_branch": "main\r\n release ",
}


@pytest.fixture
def operator(client: Client) -> Client:
    listed({"acme/torch": 2, "other/torch": 2})
    client.force_login(user(Role.OPERATOR, username="ada"))
    return client


def last_event() -> dict[str, Any]:
    body = body_of(Event.objects.order_by("-seq")[0])
    keys = ("action", "summary", "before", "after", "is_decision")
    return {key: body[key] for key in keys} | {"by": body["actor"]["label"], "about": body["subject"]["kind"]}


SPELLED = {
    "repository": "acme/torch",
    "organization_id": ORGANIZATION,
    "pipeline_id": PIPELINE,
    "required_claims": {"build_branch": ["main", "release"]},
}


def test_a_mapping_is_made_and_taken_away_on_the_public_log(operator: Client) -> None:
    assert operator.post(URL, FORM).headers["Location"] == URL
    made = Pipeline.objects.get()
    assert (made.repository.full_name, made.required_claims) == ("acme/torch", {"build_branch": ["main", "release"]})
    assert last_event() == {
        "action": "pipeline.mapped",
        "summary": f"Buildkite pipeline {PIPELINE} speaks for acme/torch",
        "before": {},
        "after": SPELLED,
        "is_decision": True,
        "by": "ada",
        "about": "pipeline",
    }
    row = ("acme/torch", f"{PIPELINE} of {ORGANIZATION}", "build_branch main or release")
    assert [cells[:3] for cells in Page(operator.get(URL)).tables["mapped"]] == [row]
    operator.post(URL, {"act": "remove", "pipeline": str(made.public_id)})
    assert Pipeline.objects.count() == 0
    assert last_event() == {
        "action": "pipeline.unmapped",
        "summary": f"Buildkite pipeline {PIPELINE} no longer speaks for acme/torch",
        "before": SPELLED,
        "after": {},
        "is_decision": True,
        "by": "ada",
        "about": "pipeline",
    }
    assert operator.post(URL, {"act": "remove", "pipeline": str(made.public_id)}).status_code == 404


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"pipeline_id": "torch"}, "Enter a valid UUID."),
        ({"organization_id": ""}, "This field is required."),
        ({"repository": "nobody/x"}, "That choice is not one of the available choices."),
        ({"build_branch": "x" * 201}, "build_branch: needs 1 to 20 values of 1 to 200 printable characters."),
        ({"step_key": "\n".join("abcdefghijklmnopqrstu")}, "step_key: needs 1 to 20 values"),
    ],
)
def test_what_cannot_be_mapped_is_said_on_the_form(operator: Client, values: dict[str, str], words: str) -> None:
    before = Event.objects.count()
    answer = operator.post(URL, FORM | values)
    assert (answer.status_code, words in Page(answer).text) == (200, True)
    assert (Pipeline.objects.count(), Event.objects.count()) == (0, before)


def test_a_pipeline_that_speaks_already_is_said_on_the_form(operator: Client) -> None:
    operator.post(URL, FORM)
    answer = operator.post(URL, FORM | {"repository": "other/torch"})
    assert f"{PIPELINE} speaks for acme/torch already, take that mapping away first." in Page(answer).text
    assert Pipeline.objects.get().repository.full_name == "acme/torch"


def test_only_operators_may(client: Client, operator: Client) -> None:
    acme = Repository.objects.get(full_name="acme/torch")
    for person in (user(), member_of(acme.platform), user(Role.MAINTAINER)):
        client.force_login(person)
        assert [client.get(URL).status_code, client.post(URL, FORM).status_code] == [403, 403]
    assert Pipeline.objects.count() == 0


BUILDKITE = {"issuer": "https://agent.buildkite.com", "jwks_url": "https://agent.buildkite.com/j", "kind": "buildkite"}


def test_a_trusted_buildkite_without_a_mapping_is_a_warning(operator: Client) -> None:
    def warnings(**kwargs: Any) -> list[tuple[str, str, bool]]:
        found = run_checks(tags=["database"], **kwargs)
        return [(str(m.id), m.msg, m.is_serious()) for m in found if str(m.id).startswith("accelhub")]

    said = "https://agent.buildkite.com is trusted, and no pipeline is mapped."
    with override_settings(OIDC_ISSUERS=[BUILDKITE]):
        assert warnings(databases=["default"]) == [("accelhub.W009", said, False)]
        assert warnings() == []  # a start without its database is not held up
        assert "Buildkite is trusted, and no pipeline is mapped" in Page(operator.get(URL)).text
        operator.post(URL, FORM)
        assert warnings(databases=["default"]) == []
        assert "is trusted" not in Page(operator.get(URL)).text
    with override_settings(OIDC_ISSUERS=[BUILDKITE | {"kind": "github"}]):
        Pipeline.objects.all().delete()
        assert warnings(databases=["default"]) == []
        assert "No issuer of Buildkite's is trusted" in Page(operator.get(URL)).text


@pytest.mark.parametrize("rows", [1, 3])
def test_the_page_asks_the_database_as_often_for_one_row_as_for_three(
    operator: Client, rows: int, django_assert_num_queries: Any
) -> None:
    for number in range(rows):
        operator.post(URL, FORM | {"pipeline_id": str(uuid.UUID(int=10 + number))})
    with django_assert_num_queries(5):
        assert len(Page(operator.get(URL)).tables["mapped"]) == rows
