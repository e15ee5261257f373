"""`/staff/health/` and probes: what tests the hub itself is seen by its staff, and stands in no public number."""

from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings

from apps.accounts.policy import Role
from apps.audit import publishing
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.checks.models import Check
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.platforms.models import Repository
from apps.relay.models import Omission
from apps.results.services import recount
from tests.factories.checkpoints import seed
from tests.factories.events import event
from tests.factories.jobs import days_ago, dispatch, job
from tests.factories.listing import listed, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
PROBE = "hub/self-test"


@pytest.fixture
def probe() -> Repository:
    made = listed({PROBE: 2, "acme/torch": 2})[PROBE]
    call_command("platform", "probe", PROBE)
    return made


def health(client: Client) -> Page:
    client.force_login(user(Role.OPERATOR))
    answer = client.get("/staff/health/")
    assert answer.status_code == 200
    return Page(answer)


def test_marking_a_probe_is_a_decision_on_record(probe: Repository, capsys: Any) -> None:
    capsys.readouterr()
    for words in (["--off"], ["--off"], [], []):
        call_command("platform", "probe", PROBE, *words)
    assert capsys.readouterr().out.splitlines() == [
        f"{PROBE} is now no probe",
        f"{PROBE} was already no probe",
        f"{PROBE} is now a probe",
        f"{PROBE} was already a probe",
    ]
    events = [body_of(event) for event in Event.objects.filter(action__startswith="repository.probe").order_by("seq")]
    assert [(event["action"], event["before"], event["after"], event["is_decision"]) for event in events] == [
        ("repository.probe_marked", {"is_probe": False}, {"is_probe": True}, True),
        ("repository.probe_unmarked", {"is_probe": True}, {"is_probe": False}, True),
        ("repository.probe_marked", {"is_probe": False}, {"is_probe": True}, True),
    ]


def test_a_probe_stands_in_no_public_number_or_list(client: Client, probe: Repository) -> None:
    for repository in Repository.objects.all():
        sent = dispatch(repository, delivery_id=f"d-{repository.pk}", pr_number=7, head_sha="ab" * 20)
        job(repository, "success", dispatch=sent, at=now())
        relayed = job(repository, "success", job_name="relayed", pr_number=7, head_sha="ab" * 20)
        nightly = job(repository, "success", job_name="nightly", event_type="nightly", head_sha="ab" * 20)
        assert (relayed.dispatch, nightly.dispatch) == (None, None)
        Omission.objects.create(delivery=sent.delivery, repository=repository, rule="sample", sentence="not drawn")
        Check.objects.create(
            repository=repository,
            head_sha="ab" * 20,
            name=f"crcr/{repository}/CI/build",
            pr_number=7,
            status="in_progress",
            title="Running",
            created_at=now(),
            next_attempt_at=now(),
            changed_at=now(),
        )
    recount(days=2, now=now())
    for address in ("/", "/platforms/", "/platforms/?q=self-test", "/pr/7/", f"/commit/{'ab' * 20}/"):
        page = Page(client.get(address))
        assert "/platforms/hub-self-test/" not in page.links
        if address.startswith(("/pr/", "/commit/")):
            assert ("acme/torch" in page.text, PROBE in page.text) == (True, False)
    assert "/platforms/acme-torch/" in Page(client.get("/pr/7/")).links
    assert "1 pull request jobs today" in Page(client.get("/")).text
    own = Page(client.get("/platforms/hub-self-test/"))
    assert "A probe: it tests the hub itself" in own.text
    assert {row[1] for row in own.tables["figures"]} == {"no data"}


def test_staff_see_the_probes_and_what_waits(client: Client, probe: Repository) -> None:
    first, second = dispatch(probe, at=days_ago(3)), dispatch(probe, at=days_ago(2))
    job(probe, "failure", dispatch=first)
    job(probe, "success", dispatch=second, look_up_at=days_ago(2))
    Wakeup.objects.all().delete()
    page = health(client)
    assert page.tables["probes"] == [(PROBE, "● success ■ failure", "never")]
    assert page.tables["waiting"] == [
        ("Wake-ups", "0", "none"),
        ("Deliveries to fan out", "0", "none"),
        ("Dispatches to send", "0", "none"),
        ("Conclusions to look up at GitHub", "1", "2 d ago"),
    ]


def test_without_probes_the_page_says_how_to_have_one(client: Client) -> None:
    page = health(client)
    assert "manage.py platform probe owner/name" in page.text
    assert "probes" not in page.tables


@pytest.mark.parametrize("role", [Role.MAINTAINER, Role.ADMIN, Role.OPERATOR])
def test_staff_may_see_it(client: Client, role: Role) -> None:
    client.force_login(user(role))
    assert client.get("/staff/health/").status_code == 200


def test_others_may_not(client: Client) -> None:
    client.force_login(user())
    assert client.get("/staff/health/").status_code == 403


def test_staff_see_whether_the_log_is_signed(client: Client, settings: Settings) -> None:
    settings.CHECKPOINT_KEY = settings.CHECKPOINT_GIT = ""
    facts = health(client).facts["log"]
    assert facts["Checkpoints"] == "▲ none are made ACCELHUB_CHECKPOINT_KEY is not set"
    assert facts["Outside repository"] == "none is configured"
    settings.CHECKPOINT_KEY, settings.CHECKPOINT_GIT = seed(), "/srv/log.git"
    facts = health(client).facts["log"]
    assert facts["Checkpoints"] == "none yet"
    assert facts["Outside repository"] == "nothing was pushed yet /srv/log.git"
    first = publishing.make(now=days_ago(2))  # the users' roles stand in the log
    facts = health(client).facts["log"]
    assert facts["Checkpoints"] == f"▲ late #1, to event {first.seq}, 2 d ago"
    assert facts["Outside repository"] == "◆ behind nothing was pushed yet /srv/log.git"
    event()
    second = publishing.make(now=now())
    assert health(client).facts["log"]["Checkpoints"].startswith(f"#2, to event {second.seq}, ")
