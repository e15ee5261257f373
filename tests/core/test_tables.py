"""`/admin/`: Django's admin for operators. Everything can be read there, but what is not theirs; nothing changed."""

import datetime
import html
import re
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.contrib.admin.utils import flatten_fieldsets
from django.test import Client, RequestFactory

from apps.accounts.policy import Role
from apps.accounts.services import create_api_token
from apps.audit.models import Event
from apps.core import alarms
from apps.core.admin import site
from apps.core.clock import now
from apps.core.models import Alarm, Wakeup
from apps.governance.models import Evidence, Notice
from apps.platforms.members import create_invitation
from apps.platforms.models import (
    AllowlistAlarm,
    AllowlistEdit,
    Demotion,
    MaintenanceWindow,
    Pipeline,
    Platform,
    Repository,
    Transfer,
)
from apps.relay.models import (
    Commit,
    CommitLookup,
    DeclaredOutcome,
    Delivery,
    Difference,
    Forward,
    HubOutage,
    MergeBase,
    MissedDelivery,
    Omission,
    TimeLimit,
)
from apps.results import catalogue
from apps.results.aliases import alias_test
from apps.results.services import recount
from tests.architecture.test_routes import TABLES
from tests.factories.checks import check, rerun
from tests.factories.jobs import callback, dispatch, job, rejection
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.proposals import CARD, proposal, returned
from tests.factories.reports import in_tree, removed, report
from tests.factories.tables import the_rest
from tests.factories.tests import catalogued

pytestmark = pytest.mark.django_db
URL = "/admin/"


@pytest.fixture
def operator(client: Client) -> Client:
    client.force_login(user(Role.OPERATOR, username="root"))
    return client


@pytest.fixture
def rows(db: None) -> Any:
    """A row in every table. Returns the repository."""
    repository = listed({"acme/torch": 2})["acme/torch"]
    member = member_of(repository.platform, username="ada")
    create_api_token(user=member, note="nightly", actor=TESTS, now=now())
    create_invitation(platform=repository.platform, note="Bo", inviter=member, actor=TESTS, now=now())
    sent = dispatch(repository)
    callback(job(repository, "success", dispatch=sent))
    rejection(repository)
    at = now()
    the_rest(repository, sent.delivery)
    _of_every_kind(repository, sent.delivery, at)
    AllowlistAlarm.objects.create(kind="empty", detail="it has no content", raised_at=at, cleared_at=at)
    AllowlistEdit.objects.create(
        repository=repository, event_seq=1, level_before=1, level=2, state="merged", decided_at=at, changed_at=at
    )
    Demotion.objects.create(
        repository=repository, pull_number=7, title="Down", level_before=2, state="closed", opened_at=at, ended_at=at
    )
    TimeLimit.objects.create(repository=repository, job_name="build", seconds=3_600, declared_at=now())
    DeclaredOutcome.objects.create(
        repository=repository,
        workflow="CI",
        outcome="failure",
        reason="So.",
        starts_at=at,
        ends_at=now(),
        declared_at=now(),
        declared_by="ada",
    )
    CommitLookup.objects.create(sha="ab" * 20, is_known=True, looked_up_at=now())
    returned(proposal(by=member), words="said in confidence")
    Notice.objects.update(error="{'ci@zephyr.example': (550, b'no such user')}")
    recount(days=60, now=now())
    alias_test(old=catalogued("test_a"), new=catalogued("test_b"), reason="renamed", actor=TESTS, now=now())
    catalogue.reason_ids(["requires CUDA"])
    catalogue.fill_search(steps=1)
    removed(repository)
    report(repository, passed=1)
    in_tree(Platform.objects.create(slug="cuda", name="CUDA", kind="in_tree", created_at=at))
    Wakeup.objects.get_or_create(topic="repository_unpinned", key="1", defaults={"created_at": now()})
    return repository


def _of_every_kind(repository: Repository, delivery: Delivery, at: datetime.datetime) -> None:
    check(repository)
    rerun(repository)
    alarms.forget()
    alarms.sound(Alarm.Kind.LIMIT_OPEN, "tables", detail="Redis does not answer", now=at)
    one = {"repository": repository}
    start, later = at + datetime.timedelta(days=2), at + datetime.timedelta(days=2, hours=2)
    MaintenanceWindow.objects.create(**one, starts_at=start, ends_at=later, note="racks", announced_at=at)
    Pipeline.objects.create(**one, organization_id=UUID(int=1), pipeline_id=UUID(int=2), created_at=at)
    Transfer.objects.create(**one, old_owner_id=1, new_owner_id=2, new_name="new/torch", opened_at=at)
    Omission.objects.create(**one, delivery=delivery, rule="ref", sentence="fits none of its refs")
    Difference.objects.create(**one, kind="not_answered", delivery_id="d", ours="a", theirs="b", found_at=at)
    times = {"received_at": at, "changed_at": at, "due_at": at}
    Forward.objects.create(
        repository_name="acme/torch", delivery_id="d", order_key="1", answer="applied", state="given_up", **times
    )
    Forward.objects.update(body=b'{"said": "by an L1 platform alone"}')
    outage = HubOutage.objects.create(started_at=at, ended_at=at)
    MissedDelivery.objects.create(delivery_id="m", outage=outage, github_id=1, event="push", delivered_at=at, due_at=at)
    Commit.objects.create(sha="a1" * 20, position=0, placed_at=at)
    MergeBase.objects.create(pr_number=7, head_sha="a2" * 20, due_at=at)


def table(name: str) -> Any:
    return apps.get_model(name.replace("/", "."))


def test_operators_and_admins_get_in_and_nobody_else_not_even_djangos_superuser(client: Client) -> None:
    acme = listed({"acme/torch": 1})["acme/torch"]
    people = {
        "user": user(),
        "member": member_of(acme.platform),
        "maintainer": user(Role.MAINTAINER),
        "superuser": user(is_superuser=True, is_staff=True),
        "operator": user(Role.OPERATOR),
        "admin": user(Role.ADMIN),
    }
    seen = {}
    for name, person in people.items():
        client.force_login(person)
        seen[name] = (client.get(URL).status_code, client.get(f"{URL}audit/event/").status_code)
    let_in, refused = (200, 200), (403, 403)
    assert seen == {
        "user": refused,
        "member": refused,
        "maintainer": refused,
        "superuser": refused,
        "operator": let_in,
        "admin": let_in,
    }


def test_a_visitor_signs_in_at_the_hub(client: Client) -> None:
    assert client.get(f"{URL}audit/event/").headers["Location"] == "/accounts/login/?next=/admin/audit/event/"
    assert client.get(f"{URL}login/").status_code == 404


def test_these_are_the_tables() -> None:
    shown = {f"{model._meta.app_label}/{model._meta.model_name}" for model in site._registry}
    assert shown == set(TABLES)


# Tables that are not here, and why.
NOT_SHOWN = {
    "accounts/usersession": "whoever reads a session's key has the session",
    "governance/evidence": "its proposer's and the maintainers' alone, and its salt keeps the log from being guessed",
    "results/coverage": "stands on the pages of its report",
    "results/finding": "stands on the pages of its report",
    "results/reportfile": "stands on the pages of its report",
    "results/uploadpart": "its name is the vendor's own",
    "results/setaside": "each stands on the page of its appeal",
    "gate/keptreplay": "what a page tells of one for an hour, on that page",
    "results/publictest": "one number a row: which tests anyone may search for",
    "audit/head": "the last link of the chain: the newest event",
    "audit/checkpoint": "each is a file that anyone fetches, on the checkpoints' page",
    "audit/checkpointpush": "one row, said on the health page; its address may name a private host",
    "audit/lastverification": "one row, said above the decisions",
}


def test_every_table_of_ours_is_shown_or_says_why_not() -> None:
    ours = {
        f"{model._meta.app_label}/{model._meta.model_name}"
        for model in apps.get_models()
        if model.__module__.startswith("apps.")
    }
    assert ours == set(TABLES) | set(NOT_SHOWN)


# Columns that open something, or that are somebody's alone.
SECRETS = {
    "accounts/user": {"password"},
    "accounts/apitoken": {"digest"},
    "platforms/invitation": {"digest"},
    "governance/proposal": {"contact"},
    "governance/transition": {"words"},
    "governance/notice": {"error"},
    "relay/forward": {"body"},
}
# Columns that are called so and open nothing: of what a test, a reason or an upload says, words to search for,
# platforms of upstream's list, public words; an appeal is public as a whole.
OPEN = {
    "appeals/appeal": {"words"},
    "results/test": {"digest"},
    "results/reason": {"digest"},
    "results/upload": {"digest"},
    "results/searchedtest": {"words"},
    "quarantine/upstreamdisabled": {"words"},
    "levels/objection": {"words"},
}
# What such a column is called, wherever one is added.
SECRET_NAMES = {"password", "digest", "salt", "session_key", "contact", "words", "token", "secret"}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_declared_read_only_and_asks_for_no_secret(client: Client, name: str) -> None:
    model = table(name)
    columns = {field.name for field in model._meta.get_fields()}
    secrets, suspect = SECRETS.get(name, set()), SECRET_NAMES - OPEN.get(name, set())
    assert secrets <= columns
    assert columns & suspect <= secrets, "a new secret: take it out of the table and name it in SECRETS"
    shown, request = site._registry[model], RequestFactory().get("/")
    request.user = user(Role.ADMIN)
    verbs = (shown.has_add_permission, shown.has_change_permission, shown.has_delete_permission)
    may = [has(request) for has in verbs]
    assert (may, shown.get_actions(request), shown.has_view_permission(request)) == ([False] * 3, {}, True)
    asked = {
        part
        for names in (shown.list_display, shown.list_filter, shown.search_fields, shown.ordering or ())
        for name_ in names
        for part in str(name_).lstrip("-").split("__")
    }
    fields = set(flatten_fieldsets(shown.get_fieldsets(request)))
    assert ((asked | fields) & secrets, asked & suspect) == (set(), set())


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("name", TABLES)
def test_a_table_and_its_rows_are_there_to_read_and_for_nothing_else(operator: Client, rows: Any, name: str) -> None:
    if name == "accounts/organisation":
        table(name).objects.create(name="Acme", slug="acme", created_at=now())
    row = table(name).objects.first()
    listing, page = f"{URL}{name}/", f"{URL}{name}/{row.pk}/change/"
    assert [operator.get(url).status_code for url in (URL, f"{URL}{name.split('/')[0]}/", listing, page)] == [200] * 4
    before = list(table(name).objects.values()), Event.objects.count()
    for url in (page, listing):
        answer = operator.post(url, {"_save": "1", "action": "delete_selected", "_selected_action": row.pk})
        assert answer.status_code in (200, 302, 403)
    for verb in ("add/", f"{row.pk}/delete/", f"{row.pk}/history/"):
        assert operator.get(f"{URL}{name}/{verb}").status_code == 404
        assert operator.post(f"{URL}{name}/{verb}", {"post": "yes"}).status_code == 404
    assert (list(table(name).objects.values()), Event.objects.count()) == before
    html = operator.get(page).content.decode()
    assert [mark for mark in ('name="_save"', "deletelink", "historylink", 'class="addlink"') if mark in html] == []


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("name", ["core/wakeup", "platforms/repository", "relay/job"])
def test_every_filter_that_a_table_offers_works(operator: Client, rows: Any, name: str) -> None:
    page = operator.get(f"{URL}{name}/").content.decode()
    offered = {html.unescape(query) for query in re.findall(r'href="(\?[^"]+)"', page)}
    assert offered
    assert {query: operator.get(f"{URL}{name}/{query}").status_code for query in offered} == dict.fromkeys(offered, 200)


@pytest.mark.parametrize("name", TABLES)
def test_searching_and_filtering_a_table_works(operator: Client, name: str) -> None:
    assert operator.get(f"{URL}{name}/", {"q": "a'b%"}).status_code == 200
    assert operator.get(f"{URL}{name}/", {"o": "1"}).status_code == 200


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("name", TABLES)
def test_no_page_of_it_needs_more_than_the_policy_allows(operator: Client, name: str) -> None:
    row = table(name).objects.first() or table(name)(pk=1)
    for url in (URL, f"{URL}{name}/", f"{URL}{name}/{row.pk}/change/"):
        html = operator.get(url).content.decode()
        assert [mark for mark in (" onclick=", " style=", "<style", "<script>", "javascript:") if mark in html] == []


def test_what_opens_something_is_not_shown(operator: Client, rows: Any) -> None:
    ada = member_of(rows.platform, username="eve")
    digests = [str(table(name).objects.get().digest) for name in ("accounts/apitoken", "platforms/invitation")] + [
        ada.password
    ]
    pages = [f"{URL}{name}/{table(name).objects.first().pk}/change/" for name in TABLES if table(name).objects.exists()]
    text = "".join(operator.get(url).content.decode() for url in [*pages, f"{URL}accounts/user/{ada.pk}/change/"])
    assert "eve" in text
    assert [digest for digest in digests if digest in text] == []
    told = ("ci@zephyr.example", "said in confidence", "by an L1 platform alone")
    hidden = (*told, CARD.title, CARD.text, Evidence.objects.get().salt)
    assert [word for word in hidden if word in text] == []
    assert "{&#x27;(an address)&#x27;: (550, b&#x27;no such user&#x27;)}" in text


def test_private_callbacks_stay_the_members_own(operator: Client) -> None:
    repository = listed({"acme/torch": 1})["acme/torch"]
    private = callback(repository, workflow="secret-workflow")
    public = callback(job(repository, "success"), workflow="public-workflow")
    assert operator.get(f"{URL}relay/callback/{public.pk}/change/").status_code == 200
    html = operator.get(f"{URL}relay/callback/").content.decode()
    assert (f"/{public.pk}/change/" in html, f"/{private.pk}/change/" in html) == (True, False)
    assert operator.get(f"{URL}relay/callback/{private.pk}/change/").status_code == 302  # back to the list: not found


def test_reports_from_below_l2_stay_the_members_own(operator: Client) -> None:
    repository = listed({"acme/torch": 1})["acme/torch"]
    private, public = report(repository, level=1), report(repository, level=2)
    for name, there in (("report", [public, private]), ("upload", [public.uploads.get(), private.uploads.get()])):
        html = operator.get(f"{URL}results/{name}/").content.decode()
        assert [f"/{row.pk}/change/" in html for row in there] == [True, False]
        assert operator.get(f"{URL}results/{name}/{there[1].pk}/change/").status_code == 302


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("accounts/user", "password__startswith=pbkdf2"),
        ("accounts/user", "sessions__session_key__startswith=a"),
        ("accounts/user", "date_joined__year=0"),
        ("accounts/apitoken", "digest__startswith=a"),
        ("platforms/invitation", "digest__startswith=a"),
        ("platforms/repository", "callbacks__id=1"),
        ("governance/proposal", "contact__startswith=a"),
        ("governance/notice", "error__contains=a"),
        ("relay/forward", "body__startswith=a"),
        ("platforms/pipeline", "required_claims__has_key=a"),
        ("checks/check", "job__callbacks__claims__has_key=a"),
        ("relay/delivery", "body__icontains=a"),
        ("relay/dispatch", "state__exact=%00"),
    ],
)
def test_a_list_answers_no_guesses_about_what_it_does_not_show(operator: Client, name: str, query: str) -> None:
    assert operator.get(f"{URL}{name}/?{query}").status_code == 400
