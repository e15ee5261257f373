"""In-tree platforms report from the upstream repository, by the workflow and the ref that they are pinned to."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client

from apps.audit.models import Event
from apps.core.clock import now
from apps.platforms.models import Platform
from apps.platforms.services import create_platform
from apps.results.models import InTreeSource, Report
from tests.factories.listing import TESTS
from tests.relay.downstream import Downstream, refusal
from tests.results.reporter import received, upload

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("storage_folder")]
FILE = ".github/workflows/_linux-test.yml"
COMMIT = "ab" * 20


@pytest.fixture
def upstream(downstream: Callable[..., Downstream]) -> Downstream:
    made = downstream(settings.UPSTREAM_REPO)
    for slug in ("cuda", "cpu", "rocm"):
        create_platform(slug=slug, name=slug.upper(), kind=Platform.Kind.IN_TREE, actor=TESTS, now=now())
    return made


def pin(slug: str, workflow: str = FILE, **options: str) -> None:
    call_command("intree", "add", slug, workflow, **options)


def token(made: Downstream, *, file: str = FILE, ref: str = "refs/heads/main", **claims: Any) -> str:
    names = {"job_workflow_ref": f"{settings.UPSTREAM_REPO}/{file}@{ref}", "ref": ref, "sha": COMMIT}
    return made.token(**names | claims)


def test_a_pinned_workflow_reports_for_its_platform_and_proves_its_commit(upstream: Downstream) -> None:
    pin("rocm")
    name = received(upload(upstream, token=token(upstream), head_sha=COMMIT))
    report = Report.objects.get(public_id=name)
    assert (report.platform.slug, report.repository, report.head_sha, report.flags) == ("rocm", None, COMMIT, [])
    assert Client().get(f"/reports/{name}/").status_code == 200
    assert upload(upstream, token=token(upstream), head_sha=COMMIT).json() == {
        "id": name,
        "receipt": f"{settings.BASE_URL}/reports/{name}/",
        "status": "duplicate",
    }


def test_another_commit_than_the_tokens_is_a_claim(upstream: Downstream) -> None:
    pin("rocm")
    received(upload(upstream, token=token(upstream), head_sha="cd" * 20))
    assert Report.objects.get().flags == ["claimed_commit"]


def test_where_a_workflow_tests_several_platforms_the_upload_says_which(upstream: Downstream) -> None:
    pin("cuda")
    pin("cpu")
    unsaid = upload(upstream, token=token(upstream))
    assert refusal(unsaid) == (400, "malformed", "platform")
    assert "cpu, cuda" in unsaid.json()["detail"]
    assert refusal(upload(upstream, token=token(upstream), platform="rocm")) == (400, "malformed", "platform")
    received(upload(upstream, token=token(upstream), platform="cpu"))
    received(upload(upstream, token=token(upstream), platform="cuda"))
    assert sorted(report.platform.slug for report in Report.objects.all()) == ["cpu", "cuda"]


@pytest.mark.parametrize(
    "claims",
    [
        {"file": ".github/workflows/evil.yml"},
        {"ref": "refs/pull/7/merge"},
        {"ref": "refs/heads/main", "job_workflow_ref": None},
        {"job_workflow_ref": f"someone/else/{FILE}@refs/heads/main"},
    ],
    ids=["another file", "a pull request", "no reusable workflow", "another repository's file"],
)
def test_everything_else_of_upstream_is_refused(upstream: Downstream, claims: dict[str, Any]) -> None:
    pin("rocm")
    assert refusal(upload(upstream, token=token(upstream, **claims))) == (403, "identity_unknown", "job_workflow_ref")


def test_a_pull_request_that_calls_mains_workflow_is_refused(upstream: Downstream) -> None:
    pin("rocm")
    claims = {"job_workflow_ref": f"{settings.UPSTREAM_REPO}/{FILE}@refs/heads/main", "ref": "refs/pull/7/merge"}
    assert refusal(upload(upstream, token=upstream.token(**claims)))[:2] == (403, "identity_unknown")


def test_refs_are_globs(upstream: Downstream) -> None:
    pin("rocm", ref="refs/heads/release/*")
    received(upload(upstream, token=token(upstream, ref="refs/heads/release/2.10")))


def test_another_repository_of_upstreams_name_is_nobody(upstream: Downstream) -> None:
    pin("rocm")
    answer = upload(upstream, token=token(upstream, repository_id="424242"))
    assert (answer.status_code, answer.json()) == (200, {"status": "ignored"})


def test_a_workflow_that_was_taken_off_reports_no_more(upstream: Downstream) -> None:
    pin("rocm")
    pin("cpu")
    call_command("intree", "remove", "rocm", FILE)
    assert refusal(upload(upstream, token=token(upstream), platform="rocm")) == (400, "malformed", "platform")
    pin("rocm")
    assert list(
        Event.objects.filter(action__startswith="platform.source").order_by("seq").values_list("action", "subject_id")
    ) == [
        ("platform.source_added", "rocm"),
        ("platform.source_added", "cpu"),
        ("platform.source_removed", "rocm"),
        ("platform.source_added", "rocm"),
    ]
    assert InTreeSource.objects.count() == 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nobody", FILE), "There is no platform 'nobody'."),
        (("rocm", "evil.yml"), "workflow: saw 'evil.yml', send .github/workflows/<file>.yml."),
        (("rocm", FILE, "--ref=main"), "ref: saw 'main', send a whole one such as refs/heads/main."),
        (("cpu", FILE), "workflow: CPU has .github/workflows/_linux-test.yml already."),
    ],
)
def test_what_cannot_be_pinned_is_said(upstream: Downstream, arguments: tuple[str, ...], says: str) -> None:
    pin("cpu")
    with pytest.raises(CommandError, match=f"^{says.replace('.', '[.]')}$"):
        call_command("intree", "add", *arguments)


def test_an_out_of_tree_platform_takes_no_reports_of_upstream(upstream: Downstream) -> None:
    kind = Platform.Kind.OUT_OF_TREE
    create_platform(slug="kestrel", name="Kestrel", kind=kind, actor=TESTS, now=now())
    with pytest.raises(CommandError, match="Kestrel is out of tree"):
        pin("kestrel")
