"""Callbacks with Buildkite's tokens: a pipeline speaks for the repository that it is mapped to."""

import uuid
from typing import Any

import jwt
import pytest
from django.conf import settings
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from apps.audit.models import Event
from apps.core.clock import now
from apps.core.errors import Problem
from apps.platforms.models import Pipeline, Repository
from apps.platforms.pipelines import map_pipeline
from apps.platforms.policy import PIPELINE_CLAIMS
from apps.relay import buildkite
from apps.relay.claims import Refused, read_claims
from apps.relay.models import Callback, Job, Rejection
from apps.simulator.buildkite import oidc_claims, organization_id, pipeline_id
from apps.simulator.directory import Repository as StandInRepository
from tests.factories.listing import TESTS, listed
from tests.relay.downstream import Downstream, answer, refusal
from tests.relay.test_callback import APPLIED, DUPLICATE, IGNORED, Make, dispatch

pytestmark = pytest.mark.django_db
ONYX = "onyx-demo/torch-onyx"
ORGANIZATION, PIPELINE = organization_id(6010), pipeline_id(5010)


class Builder(Downstream):
    """A downstream whose jobs run on Buildkite. Its run is build 4711."""

    def token(self, **overrides: Any) -> str:
        claims = {"audience": settings.OIDC_AUDIENCE, "build_number": int(self.run_id)} | overrides
        return self.github.mint_buildkite_token(self.full_name, **claims)


def mapped(repository: Repository, required: dict[str, list[str]] | None = None, **ids: uuid.UUID) -> Pipeline:
    values = {"organization_id": ORGANIZATION, "pipeline_id": PIPELINE} | ids
    return map_pipeline(repository=repository, required_claims=required or {}, actor=TESTS, now=now(), **values)


@pytest.fixture
def onyx(downstream: Make, client: Client) -> Builder:
    """Listed at L2, with one delivery dispatched to it, and no pipeline mapped yet."""
    made = downstream(ONYX, repository_id=5010, owner_id=6010)
    listed({ONYX: 2})
    dispatch(client)
    return Builder(ONYX, made.github, client, "4711")


def repository() -> Repository:
    return Repository.objects.get(full_name=ONYX)


def test_a_mapped_pipeline_speaks_for_its_repository(onyx: Builder) -> None:
    mapped(repository(), {"build_branch": ["main"]})
    assert answer(onyx.start()) == APPLIED
    # Attempts are counted per job there, and the token does not say them.
    assert answer(onyx.end(run_attempt="1")) == APPLIED
    assert answer(onyx.start(run_attempt="2", check_run_id="4711-2")) == APPLIED
    assert answer(onyx.start(run_attempt="2", check_run_id="4711-2")) == DUPLICATE
    rows = Job.objects.order_by("pk").values_list("repository__full_name", "run_id", "run_attempt", "status")
    assert list(rows) == [(ONYX, "4711", 1, "completed"), (ONYX, "4711", 2, "in_progress")]
    kept = Callback.objects.order_by("pk")[0].claims
    assert {name: kept[name] for name in ("organization_id", "pipeline_id", "build_number", "build_branch")} == {
        "organization_id": str(ORGANIZATION),
        "pipeline_id": str(PIPELINE),
        "build_number": "4711",
        "build_branch": "main",
    }
    # GitHub's ids are not in the token: nothing is pinned by it.
    assert repository().github_id is None


def test_a_pipeline_that_is_not_mapped_is_refused_and_named_to_operators(onyx: Builder) -> None:
    response = onyx.start()
    assert refusal(response) == (403, "identity_unknown", "pipeline_id")
    assert response.json()["detail"] == (
        f"organization_id, pipeline_id: no repository is mapped to pipeline {PIPELINE} of organisation "
        f"{ORGANIZATION}. Ask the hub's operators to map it."
    )
    counted = Rejection.objects.values_list(
        "issuer", "repository_claim", "repository_id_claim", "owner_id_claim", "code", "reason", "repository"
    )
    rows: list[Any] = list(counted)
    assert rows == [
        (
            f"{onyx.github.url}/buildkite",
            ONYX,
            str(PIPELINE),
            str(ORGANIZATION),
            "identity_unknown",
            "pipeline not mapped",
            None,
        )
    ]
    assert Job.objects.count() == 0


@pytest.mark.parametrize("other", ["organization_id", "pipeline_id"])
def test_both_numbers_of_the_mapping_must_be_those_of_the_token(onyx: Builder, other: str) -> None:
    mapped(repository(), None, **{other: uuid.UUID(int=7)})
    assert refusal(onyx.start()) == (403, "identity_unknown", "pipeline_id")


@pytest.mark.parametrize(
    ("required", "claims", "expected"),
    [
        ({"build_branch": ["main"]}, {"build_branch": "main"}, APPLIED),
        ({"build_branch": ["main", "release"]}, {"build_branch": "release"}, APPLIED),
        ({"build_branch": ["main"]}, {"build_branch": "someone:main"}, "build_branch"),
        ({"build_branch": ["main"]}, {"build_branch": None}, "build_branch"),
        ({"build_branch": ["main"]}, {"build_branch": "main "}, "build_branch"),
        ({"build_branch": ["main"], "build_source": ["schedule"]}, {}, "build_source"),
        ({"step_key": ["test"], "build_tag": ["v1"]}, {"build_tag": "v1"}, APPLIED),
    ],
)
def test_what_a_mapping_requires_of_a_token(
    onyx: Builder, required: dict[str, list[str]], claims: dict[str, Any], expected: Any
) -> None:
    mapped(repository(), required)
    response = onyx.post(onyx.body(), token=onyx.token(**claims))
    if expected is APPLIED:
        assert answer(response) == APPLIED
        return
    assert refusal(response) == (403, "identity_unknown", expected)
    # Its platform sees it.
    assert list(Rejection.objects.values_list("reason", "repository__full_name")) == [(f"claim {expected}", ONYX)]


def test_a_refusal_says_what_the_mapping_asks_for_and_what_was_seen(onyx: Builder) -> None:
    mapped(repository(), {"build_branch": ["main", "release"]})
    assert onyx.post(onyx.body(), token=onyx.token(build_branch="x" * 200)).json()["detail"] == (
        f"build_branch: this pipeline speaks for its repository with main or release, the token says {'x' * 60!r}. "
        "Report from such a build, or ask the hub's operators to change the mapping."
    )


def test_another_build_than_the_tokens_is_refused(onyx: Builder) -> None:
    mapped(repository())
    assert refusal(onyx.start(run_id="4712")) == (403, "claims_contradict", "workflow.run_id")


@pytest.mark.parametrize(("level", "expected"), [(0, IGNORED), (1, IGNORED)])
def test_levels_hold_for_pipelines_too(onyx: Builder, level: int, expected: Any) -> None:
    mapped(repository())
    listed({ONYX: level, "other-demo/torch": 2} if level else {"other-demo/torch": 2})
    assert (answer(onyx.start()), Job.objects.count()) == (expected, 0)


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        ({"organization_id": None}, "organization_id"),
        ({"pipeline_id": None}, "pipeline_id"),
        ({"pipeline_id": "torch-onyx"}, "pipeline_id"),
        ({"pipeline_id": str(PIPELINE).upper()}, "pipeline_id"),
        ({"pipeline_id": 7}, "pipeline_id"),
        ({"build_number": "4711"}, "build_number"),
        ({"build_number": True}, "build_number"),
        ({"build_number": -1}, "build_number"),
        ({"build_number": 10**30}, "build_number"),
        ({"build_number": None}, "build_number"),
        ({"jti": None}, "jti"),
        ({"job_id": "x"}, "job_id"),
        ({"organization_slug": "a\u202eb"}, "organization_slug"),
        ({"build_branch": ["main"]}, "build_branch"),
        ({"build_branch": "x" * 1_001}, "build_branch"),
    ],
)
def test_a_claim_that_does_not_fit_is_refused_by_name(onyx: Builder, overrides: dict[str, Any], field: str) -> None:
    mapped(repository())
    assert refusal(onyx.post(onyx.body(), token=onyx.token(**overrides))) == (403, "identity_unknown", field)


def test_githubs_claims_in_a_token_of_buildkite_prove_nothing(onyx: Builder) -> None:
    """A kind's table is its issuer's own: what another issuer's tokens would prove is not read."""
    claims = jwt.decode(onyx.token(), options={"verify_signature": False})
    stolen = {"repository": ONYX, "repository_id": "5010", "repository_owner_id": "6010", "run_id": "4711"}
    token = onyx.github.sign(claims | stolen)
    assert refusal(onyx.post(onyx.body(), token=token)) == (403, "identity_unknown", "pipeline_id")


def test_buildkites_claims_in_a_token_of_github_prove_nothing(onyx: Builder) -> None:
    mapped(repository())
    claims: dict[str, Any] = {"organization_id": str(ORGANIZATION), "pipeline_id": str(PIPELINE), "build_number": 4711}
    token = onyx.github.mint_token(ONYX, audience=settings.OIDC_AUDIENCE, run_id="4711", repository_id=None, **claims)
    assert refusal(onyx.post(onyx.body(), token=token)) == (403, "identity_unknown", "repository_id")


def test_long_slugs_are_counted_cut(onyx: Builder) -> None:
    token = onyx.token(organization_slug="o" * 300, pipeline_slug="p" * 300)
    assert onyx.post(onyx.body(), token=token).status_code == 403
    assert Rejection.objects.get().repository_claim == f"{'o' * 69}/{'p' * 69}"


def test_the_table_says_one_thing_about_each_claim_that_buildkite_sends(onyx: Builder) -> None:
    names = [row.name for row in buildkite.CLAIMS]
    assert len(names) == len(set(names))
    assert set(jwt.decode(onyx.token(build_tag="v1"), options={"verify_signature": False})) == set(names)
    assert set(PIPELINE_CLAIMS) <= {row.name for row in buildkite.CLAIMS if row.is_kept}


CLAIMS = oidc_claims(
    StandInRepository(ONYX, 5010, 6010), issuer="https://agent.buildkite.com", audience="x", build_number=1, step="t"
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=2)
)


@given(st.sampled_from(sorted(CLAIMS)), JSON)
def test_whatever_a_claim_holds_it_is_read_or_refused_by_its_name(name: str, value: Any) -> None:
    refused, found = None, {}
    try:
        found = read_claims(buildkite.CLAIMS, "https://agent.buildkite.com", CLAIMS | {name: value})
    except Refused as problem:
        refused = (problem.code, problem.field)
    assert refused in (None, ("identity_unknown", name))
    assert all(isinstance(text, str) and text.isprintable() for text in found.values())


# --- the mapping ------------------------------------------------------------------------------------------------


def test_one_pipeline_speaks_for_one_repository(onyx: Builder) -> None:
    other = listed({ONYX: 2, "other-demo/torch": 2})["other-demo/torch"]
    mapped(repository())
    before = Event.objects.count()
    with pytest.raises(Problem) as caught:
        mapped(other)
    assert (caught.value.code, caught.value.field, caught.value.detail) == (
        "malformed",
        "pipeline_id",
        f"pipeline_id: {PIPELINE} speaks for {ONYX} already, take that mapping away first.",
    )
    assert (Pipeline.objects.get().repository, Event.objects.count()) == (repository(), before)


@pytest.mark.parametrize(
    "required", [{"sub": ["x"]}, {"build_branch": []}, {"build_branch": [""]}, {"build_tag": ["\0"]}]
)
def test_a_mapping_requires_known_claims_and_says_their_values(onyx: Builder, required: dict[str, list[str]]) -> None:
    with pytest.raises(Problem) as caught:
        mapped(repository(), required)
    assert (caught.value.code, caught.value.field) == ("malformed", next(iter(required)))
    assert Pipeline.objects.count() == 0
