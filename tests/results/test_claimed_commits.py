"""Commits that reports name themselves: claims, until upstream was asked."""

from collections.abc import Callable

import pytest
from django.conf import settings
from django.test import Client

from apps.core.clock import now
from apps.results.claimed_commits import look_up_commits
from apps.results.models import Report
from tests.factories.listing import listed
from tests.factories.pages import Page
from tests.relay.downstream import Downstream
from tests.relay.test_callback import KESTREL
from tests.results.reporter import received, upload

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("storage_folder")]
KNOWN, GONE = "ab" * 20, "cd" * 20


def test_a_claimed_commit_is_asked_about_once_and_the_report_says_what_upstream_said(
    downstream: Callable[..., Downstream],
) -> None:
    made = downstream(KESTREL)
    made.github.add_repository(settings.UPSTREAM_REPO)
    made.github.add_commit(settings.UPSTREAM_REPO, KNOWN)
    listed({KESTREL: 2})
    names = {sha: received(upload(made, report_key=sha, head_sha=sha)) for sha in (KNOWN, GONE)}
    assert list(Report.objects.values_list("flags", flat=True)) == [["claimed_commit"]] * 2
    assert (look_up_commits(now=now()), look_up_commits(now=now())) == (2, 0)
    flags = dict(Report.objects.values_list("head_sha", "flags"))
    assert flags == {KNOWN: [], GONE: ["unknown_commit"]}
    page = Page(Client().get(f"/reports/{names[GONE]}/"))
    assert page.facts["state"]["Flags"].endswith("upstream does not know the commit that it names")
    # A report that comes after the answer hears it at the next look.
    received(upload(made, report_key="later", head_sha=GONE))
    assert look_up_commits(now=now()) == 0
    assert Report.objects.get(report_key="later").flags == ["unknown_commit"]


def test_while_github_is_away_a_claim_stays_one(downstream: Callable[..., Downstream]) -> None:
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    received(upload(made, head_sha=KNOWN))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "GITHUB_API_URL", "http://127.0.0.1:9")
        from apps.core import github as core_github

        core_github.client.cache_clear()
        assert look_up_commits(now=now()) == 0
        core_github.client.cache_clear()
    assert Report.objects.get().flags == ["claimed_commit"]
