"""Every route declares what it asks of its caller, and holds to it."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from apps.core.api import SIGN_IN
from apps.core.errors import MACHINE_PREFIXES
from apps.core.permissions import Access, Open, Permission
from tests.factories.events import event
from tests.factories.jobs import callback, job
from tests.factories.listing import listed, user
from tests.factories.pages import problem, problem_body

# Changing a line here is a decision about who may do what.
TABLE_ROOMS = (
    "accounts",
    "appeals",
    "audit",
    "checks",
    "core",
    "gate",
    "governance",
    "levels",
    "platforms",
    "policies",
    "quarantine",
    "relay",
    "results",
)
ADMIN_APP = f"^(?P<app_label>{'|'.join(TABLE_ROOMS)})/$"
ROUTES: dict[str, Access] = {
    "": Open.PUBLIC,
    "platforms/": Open.PUBLIC,
    "platforms/<slug:slug>/": Open.PUBLIC,
    "jobs/<uuid:public_id>/": Open.PUBLIC,
    # For those who may not see it, a report does not exist.
    "reports/<uuid:public_id>/": Open.PUBLIC,
    "reports/<uuid:public_id>/raw/<str:sha256>/": Open.SIGNED_IN,
    "reports/<uuid:public_id>/remove/": Permission.REPORT_REMOVE,
    "reports/<uuid:public_id>/findings/": Open.PUBLIC,
    "reports/<uuid:public_id>/skips/": Open.PUBLIC,
    # Of a test that only private reports name, who may not see those learns nothing.
    "tests/": Open.PUBLIC,
    "tests/<int:number>/": Open.PUBLIC,
    "reports/<uuid:public_id>/missing/": Open.PUBLIC,
    "backlog/": Open.PUBLIC,
    "compare/": Open.PUBLIC,
    "pr/<int:number>/": Open.PUBLIC,
    "commit/<str:sha>/": Open.PUBLIC,
    "rejections/": Open.SIGNED_IN,
    "checks/": Permission.CHECK_RESEND,
    "checks/<uuid:public_id>/resend/": Permission.CHECK_RESEND,
    "staff/components/": Permission.COMPONENT_VIEW,
    "staff/health/": Permission.HEALTH_VIEW,
    "policy/": Open.PUBLIC,
    "policy/metrics/": Open.PUBLIC,
    "allowlist/": Permission.ALLOWLIST_VIEW,
    "allowlist.yml": Open.PUBLIC,
    "docs/first-callback/": Open.PUBLIC,
    "status/": Open.PUBLIC,
    "repositories/<str:owner>/<str:name>/level/": Permission.LEVEL_CHANGE,
    "repositories/<str:owner>/<str:name>/participation/": Open.SIGNED_IN,
    "dispatches/": Permission.DISPATCH_VIEW,
    "repositories/<str:owner>/<str:name>/limits/": Open.SIGNED_IN,
    "repositories/<str:owner>/<str:name>/declared/": Open.PUBLIC,
    "repositories/<str:owner>/<str:name>/evaluation/": Open.PUBLIC,
    "jobs/<uuid:public_id>/acknowledge/": Open.SIGNED_IN,
    "repositories/<str:owner>/<str:name>/replay/": Open.PUBLIC,
    "policy/versions/": Open.PUBLIC,
    "policy/versions/<int:number>/": Open.PUBLIC,
    "policy/drafts/<uuid:public_id>/": Open.PUBLIC,
    "platforms/<slug:slug>/name/": Permission.PLATFORM_RENAME,
    "platforms/<slug:slug>/calendar/": Open.SIGNED_IN,
    "register/": Open.SIGNED_IN,
    # For those who may not see it, visitors among them, a proposal does not exist.
    "proposals/<uuid:public_id>/": Open.PUBLIC,
    "proposals/<uuid:public_id>/edit/": Open.SIGNED_IN,
    "proposals/<uuid:public_id>/accept/": Permission.PROPOSAL_DECIDE,
    "proposals/<uuid:public_id>/return/": Permission.PROPOSAL_DECIDE,
    "proposals/<uuid:public_id>/withdraw/": Open.SIGNED_IN,
    "console/": Open.SIGNED_IN,
    "console/relay/": Permission.RELAY_VIEW,
    # For those who may enter one of the rooms that it lists.
    "console/operations/": Open.SIGNED_IN,
    "console/repositories/": Permission.PARTICIPATION_CHANGE,
    "decisions/": Open.PUBLIC,
    "decisions/<int:seq>/": Open.PUBLIC,
    "decisions/feed/": Open.PUBLIC,
    "decisions/export.jsonl": Open.PUBLIC,
    "decisions/checkpoints/": Open.PUBLIC,
    "decisions/checkpoints/<int:number>.json": Open.PUBLIC,
    "accounts/login/": Open.PUBLIC,
    "accounts/logout/": Open.PUBLIC,
    "accounts/github/": Open.PUBLIC,
    "accounts/github/callback/": Open.PUBLIC,
    "account/": Open.SIGNED_IN,
    "pipelines/": Permission.PIPELINE_CHANGE,
    "transfers/<uuid:public_id>/": Permission.TRANSFER_DECIDE,
    "policy/flaky/": Permission.RULES_CHANGE,
    "flakes/": Open.PUBLIC,
    "regressions/": Open.PUBLIC,
    "quarantines/": Open.PUBLIC,
    # What a word of it means, maintainers alone say.
    "quarantines/upstream/": Open.PUBLIC,
    "quarantines/<uuid:public_id>/": Open.PUBLIC,
    "platforms/<slug:slug>/quarantines/new/": Open.SIGNED_IN,
    "platforms/<slug:slug>/disabled-tests.json": Open.PUBLIC,
    "platforms/<slug:slug>/deselect.txt": Open.PUBLIC,
    "promotions/": Open.PUBLIC,
    "promotions/<uuid:public_id>/": Open.PUBLIC,
    "promotions/<uuid:public_id>/evidence/<int:number>.json": Open.PUBLIC,
    "repositories/<str:owner>/<str:name>/promote/": Open.SIGNED_IN,
    "overrides/": Open.PUBLIC,
    "overrides/new/": Permission.OVERRIDE_GRANT,
    "overrides/<uuid:public_id>/": Open.PUBLIC,
    "notices/": Open.PUBLIC,
    "notices/<uuid:public_id>/": Open.PUBLIC,
    "downgrades/": Open.PUBLIC,
    "downgrades/<uuid:public_id>/": Open.PUBLIC,
    "repositories/<str:owner>/<str:name>/downgrade/": Permission.LEVEL_CHANGE,
    "appeals/": Open.PUBLIC,
    # Within, whoever speaks for the platform.
    "appeals/new/": Open.SIGNED_IN,
    "appeals/<uuid:public_id>/": Open.PUBLIC,
    "fairness/": Open.PUBLIC,
    "breakers/": Open.PUBLIC,
    "breakers/<uuid:public_id>/": Open.PUBLIC,
    "people/": Permission.USER_CHANGE,
    "people/organisations/": Permission.USER_CHANGE,
    "people/<uuid:public_id>/": Permission.USER_CHANGE,
    "platforms/<slug:slug>/members/": Open.SIGNED_IN,
    "repositories/<str:owner>/<str:name>/claim/": Open.SIGNED_IN,
    "invitations/<str:code>/": Open.SIGNED_IN,
    "admin/": Permission.ADMIN_VIEW,
    "admin/jsi18n/": Permission.ADMIN_VIEW,
    f"admin/{ADMIN_APP}": Permission.ADMIN_VIEW,
    "github/^webhook/?$": Open.SIGNED,
    "github/^callback/?$": Open.SIGNED,
    "api/v1/repositories/": Open.PUBLIC,
    "api/v1/repositories/<str:owner>/<str:name>/": Open.PUBLIC,
    "api/v1/repositories/<str:owner>/<str:name>/metrics/": Open.PUBLIC,
    "api/v1/repositories/<str:owner>/<str:name>/declared/": Open.PUBLIC,
    "api/v1/repositories/<str:owner>/<str:name>/evaluation/": Open.PUBLIC,
    "api/v1/promotions/": Open.PUBLIC,
    "api/v1/promotions/<uuid:public_id>/": Open.PUBLIC,
    "api/v1/promotions/<uuid:public_id>/<str:verb>/": Open.SIGNED_IN,
    "api/v1/repositories/<str:owner>/<str:name>/promote/": Open.SIGNED_IN,
    "api/v1/policy/": Open.PUBLIC,
    "api/v1/repositories/<str:owner>/<str:name>/declare/": Permission.OUTCOME_DECLARE,
    "api/v1/repositories/<str:owner>/<str:name>/declared/<uuid:public_id>/withdraw/": Permission.OUTCOME_DECLARE,
    "api/v1/metrics/": Open.PUBLIC,
    "api/v1/appeals/": Open.PUBLIC,
    "api/v1/appeals/<uuid:public_id>/": Open.PUBLIC,
    # Within, whoever speaks for the platform; and maintainers of another organisation.
    "api/v1/appeals/open/": Open.SIGNED_IN,
    "api/v1/appeals/<uuid:public_id>/<str:verb>/": Open.SIGNED_IN,
    "api/v1/fairness/": Open.PUBLIC,
    "api/v1/jobs/": Open.PUBLIC,
    "api/v1/jobs/<uuid:public_id>/acknowledgements/": Open.PUBLIC,
    "api/v1/jobs/<uuid:public_id>/acknowledge/": Open.SIGNED_IN,
    "api/v1/decisions/": Open.PUBLIC,
    "api/v1/decisions/export.jsonl": Open.PUBLIC,
    "api/v1/decisions/checkpoints/": Open.PUBLIC,
    "api/v1/dispatches/": Permission.DISPATCH_VIEW,
    "api/v1/repositories/<str:owner>/<str:name>/level/": Permission.LEVEL_CHANGE,
    "api/v1/rejections/": Open.SIGNED_IN,
    "api/v1/^reports/?$": Open.SIGNED,
    "api/v1/reports/<uuid:public_id>/": Open.PUBLIC,
    "api/v1/reports/<uuid:public_id>/findings/": Open.PUBLIC,
    "api/v1/reports/<uuid:public_id>/skips/": Open.PUBLIC,
    "api/v1/reports/<uuid:public_id>/outcomes.parquet": Open.PUBLIC,
    "api/v1/reports/<uuid:public_id>/tests.parquet": Open.PUBLIC,
    "api/v1/reports/<uuid:public_id>/reasons.parquet": Open.PUBLIC,
    "api/v1/tests/": Open.PUBLIC,
    "api/v1/tests/<int:number>/": Open.PUBLIC,
    "api/v1/reports/<uuid:public_id>/coverage/": Open.PUBLIC,
    "api/v1/reports/<uuid:public_id>/missing/": Open.PUBLIC,
    "api/v1/backlog/": Open.PUBLIC,
    "api/v1/compare/": Open.PUBLIC,
    "api/v1/regressions/": Open.PUBLIC,
    "api/v1/gate/": Open.PUBLIC,
    "api/v1/notices/": Open.PUBLIC,
    "api/v1/notices/<uuid:public_id>/": Open.PUBLIC,
    "api/v1/notices/<uuid:public_id>/<str:verb>/": Open.SIGNED_IN,
    "api/v1/downgrades/": Open.PUBLIC,
    "api/v1/downgrades/<uuid:public_id>/": Open.PUBLIC,
    "api/v1/downgrades/<uuid:public_id>/<str:verb>/": Permission.LEVEL_CHANGE,
    "api/v1/repositories/<str:owner>/<str:name>/downgrade/": Permission.LEVEL_CHANGE,
    "api/v1/gate/replay/": Open.PUBLIC,
    "api/v1/overrides/": Permission.OVERRIDE_GRANT,
    "api/v1/overrides/<uuid:public_id>/withdraw/": Permission.OVERRIDE_GRANT,
    "api/v1/breakers/<uuid:public_id>/close/": Permission.BREAKER_CLOSE,
    "api/v1/quarantines/": Open.PUBLIC,
    "api/v1/upstream-disabled/": Open.PUBLIC,
    "api/v1/quarantines/<uuid:public_id>/": Open.PUBLIC,
    "api/v1/quarantines/<uuid:public_id>/<str:verb>/": Open.SIGNED_IN,
    "api/v1/platforms/<slug:slug>/calendar/": Open.SIGNED_IN,
    "api/v1/platforms/<slug:slug>/quarantines/": Open.SIGNED_IN,
    "api/v1/flaky-rules/": Open.PUBLIC,
    "api/v1/flaky-rules/preview/": Permission.RULES_CHANGE,
    "api/v1/flaky-rules/change/": Permission.RULES_CHANGE,
    "api/crcr/^results/?$": Open.SIGNED,
    "docs/errors/<slug:code>": Open.PUBLIC,
    "healthz": Open.PUBLIC,
    "readyz": Open.PUBLIC,
}


# Machine routes that are read; the others take a POST.
READ_BY_MACHINES = {
    "api/v1/dispatches/": "GET",
    "api/v1/rejections/": "GET",
    **{route: "GET" for route, access in ROUTES.items() if route.startswith("api/v1/") and access is Open.PUBLIC},
}

# What the tables at /admin/ show. Each has two addresses, and neither takes anything.
TABLES = (
    *("accounts/apitoken", "accounts/organisation", "accounts/rolegrant", "accounts/user", "audit/event"),
    *("checks/check", "checks/pullrequest", "checks/rerun", "core/alarm"),
    *("core/installation", "core/round", "core/wakeup"),
    *("governance/notice", "governance/proposal", "governance/transition"),
    *("results/dayfigures", "results/report", "results/upload", "results/intreesource", "results/removal"),
    *("quarantine/flakeevent", "quarantine/member", "quarantine/quarantine", "quarantine/reading"),
    *("governance/nightlyevaluation", "governance/waiver"),
    *("levels/approval", "levels/evidencebundle", "levels/objection", "levels/promotion"),
    *("levels/downgrade", "levels/fallnotice", "levels/noticeanswer", "levels/wayback"),
    *("gate/breakertrip", "gate/override", "gate/storedverdict"),
    *("policies/policydraft", "policies/policyversion"),
    *("quarantine/progress", "quarantine/ruleversion", "quarantine/streak", "results/exclusion"),
    *("quarantine/upstreamdisabled", "quarantine/upstreamlist", "quarantine/upstreamword"),
    *("results/alias", "results/reason", "results/searchedtest", "results/test"),
    *("platforms/allowlistalarm", "platforms/allowlistedit", "platforms/demotion"),
    *("platforms/invitation", "platforms/levelinterval", "platforms/membership"),
    *("platforms/platform", "platforms/repository", "relay/callback", "relay/delivery", "relay/dispatch"),
    *("relay/job", "relay/rejection", "relay/timelimit", "relay/commitlookup", "relay/omission"),
    *("relay/declaredoutcome", "relay/acknowledgement"),
    *("platforms/participation", "platforms/maintenancewindow", "platforms/upstreamfile", "platforms/pipeline"),
    *("platforms/namechange", "platforms/transfer", "relay/forward", "relay/intent", "relay/comparison"),
    *("relay/difference", "relay/checklook", "relay/seencheck", "relay/commit", "relay/mainpush"),
    *("appeals/appeal", "appeals/appealedrow"),
    *("relay/mergebase", "relay/huboutage", "relay/misseddelivery", "relay/deliverylog", "relay/unreadlog"),
)
ROUTES |= {
    f"admin/{table}/{rest}": Permission.ADMIN_VIEW for table in TABLES for rest in ("", "<path:object_id>/change/")
}


def routes() -> dict[str, Any]:
    """Every route of the hub, and the view behind it."""

    def walk(patterns: list[Any], prefix: str) -> Iterator[tuple[str, Any]]:
        for pattern in patterns:
            here = prefix + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, here)
            else:
                assert isinstance(pattern, URLPattern)
                yield here, pattern.callback

    found = list(walk(get_resolver().url_patterns, ""))
    assert len(found) == len(dict(found)), "one address, one view"
    return dict(found)


def declared(view: Any) -> Any:
    """What a view function, or the class of an API view, declares."""
    return getattr(view, "access", None) or getattr(getattr(view, "cls", None), "access", None)


def address(route: str) -> str:
    """An address on this route."""
    values = {
        ADMIN_APP: "audit/",
        "<path:object_id>": "1",
        "<str:code>": "no-such-code",
        "<slug:slug>": "acme-torch",
        "<str:owner>": "acme",
        "<str:name>": "torch",
        "<str:verb>": "decline",
        "<int:seq>": "1",
        "<int:number>": "7",
        "<str:sha>": "1234567",
        "<str:sha256>": "00",
        "<slug:code>": "csrf",
        "<uuid:public_id>": str(uuid.UUID(int=7)),
        "^": "",
        "/?$": "",
    }
    for part, value in values.items():
        route = route.replace(part, value)
    return f"/{route}"


def machine(route: str) -> bool:
    return address(route).startswith(MACHINE_PREFIXES)


def test_every_route_declares_its_access() -> None:
    assert {route: declared(view) for route, view in routes().items()} == ROUTES


def test_every_declaration_is_one_that_exists() -> None:
    assert {type(declared(view)) for view in routes().values()} <= {Open, Permission}


@pytest.fixture
def acme(db: None) -> None:
    """What the addresses above name."""
    made = listed({"acme/torch": 2})["acme/torch"]
    job(made, "success")
    callback(made)
    event()


GUARDED = sorted(route for route, access in ROUTES.items() if access not in (Open.PUBLIC, Open.SIGNED))


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("route", [route for route in GUARDED if not machine(route)])
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_visitor_is_sent_to_sign_in_from_every_guarded_page(client: Client, route: str, method: str) -> None:
    answer = getattr(client, method)(address(route))
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/accounts/login/?next={address(route)}")


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("route", [route for route in GUARDED if machine(route)])
@pytest.mark.parametrize("method", ["get", "post", "put", "delete"])
def test_a_visitor_is_refused_by_every_guarded_api_route(client: Client, route: str, method: str) -> None:
    answer = getattr(client, method)(address(route))
    assert problem(answer) == problem_body("not_signed_in", SIGN_IN)


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("route", [route for route in GUARDED if ROUTES[route] is not Open.SIGNED_IN])
def test_who_has_no_role_is_refused_by_every_route_that_asks_for_a_permission(client: Client, route: str) -> None:
    client.force_login(user())
    assert [client.get(address(route)).status_code, client.post(address(route)).status_code] == [403, 403]


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("route", sorted(route for route, access in ROUTES.items() if access is Open.PUBLIC))
def test_a_visitor_reads_every_public_page(client: Client, route: str) -> None:
    others = {
        "jobs/<uuid:public_id>/": 404,
        "api/v1/jobs/<uuid:public_id>/acknowledgements/": 404,
        "reports/<uuid:public_id>/": 404,
        "reports/<uuid:public_id>/findings/": 404,
        "reports/<uuid:public_id>/skips/": 404,
        "api/v1/reports/<uuid:public_id>/": 404,
        "api/v1/reports/<uuid:public_id>/findings/": 404,
        "api/v1/reports/<uuid:public_id>/skips/": 404,
        "api/v1/reports/<uuid:public_id>/outcomes.parquet": 404,
        "api/v1/reports/<uuid:public_id>/tests.parquet": 404,
        "api/v1/reports/<uuid:public_id>/reasons.parquet": 404,
        "tests/<int:number>/": 404,
        "decisions/checkpoints/<int:number>.json": 404,
        "api/v1/tests/": 400,
        "api/v1/tests/<int:number>/": 404,
        "api/v1/reports/<uuid:public_id>/coverage/": 404,
        "reports/<uuid:public_id>/missing/": 404,
        "api/v1/reports/<uuid:public_id>/missing/": 404,
        "api/v1/compare/": 400,
        "policy/versions/<int:number>/": 404,
        "policy/drafts/<uuid:public_id>/": 404,
        "api/v1/gate/": 400,
        "api/v1/gate/replay/": 400,
        "overrides/<uuid:public_id>/": 404,
        "promotions/<uuid:public_id>/": 404,
        "promotions/<uuid:public_id>/evidence/<int:number>.json": 404,
        "api/v1/promotions/<uuid:public_id>/": 404,
        "breakers/<uuid:public_id>/": 404,
        "notices/<uuid:public_id>/": 404,
        "api/v1/notices/<uuid:public_id>/": 404,
        "downgrades/<uuid:public_id>/": 404,
        "api/v1/downgrades/<uuid:public_id>/": 404,
        "appeals/<uuid:public_id>/": 404,
        "api/v1/appeals/<uuid:public_id>/": 404,
        "quarantines/<uuid:public_id>/": 404,
        "api/v1/quarantines/<uuid:public_id>/": 404,
        "pr/<int:number>/": 404,
        "commit/<str:sha>/": 404,
        "proposals/<uuid:public_id>/": 404,
        "accounts/logout/": 405,
        "accounts/github/": 405,
        "accounts/github/callback/": 404,
    }
    expected = others.get(route, 200)
    assert client.get(address(route)).status_code == expected


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("route", [route for route in ROUTES if machine(route)])
@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete"])
def test_every_machine_route_answers_another_method_with_problem_json(client: Client, route: str, method: str) -> None:
    from apps.accounts.policy import Role

    takes = READ_BY_MACHINES.get(route, "POST")
    if method.upper() == takes:
        return
    client.force_login(user(Role.ADMIN))
    status, kind, body = problem(getattr(client, method)(address(route)))
    assert (status, kind, body["code"]) == (405, "application/problem+json", "method")
    allowed = getattr(client, method)(address(route)).headers["Allow"]
    assert set(allowed.split(", ")) - {"OPTIONS", "HEAD"} == {takes}


@pytest.mark.django_db
@pytest.mark.parametrize("prefix", MACHINE_PREFIXES)
@pytest.mark.parametrize("method", ["get", "post", "delete"])
def test_below_every_machine_prefix_an_unknown_address_is_problem_json(
    client: Client, prefix: str, method: str
) -> None:
    answer = getattr(client, method)(f"{prefix}nothing/here")
    assert problem(answer) == problem_body("not_found", "There is nothing at this address, or not for you.")


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("route", sorted(route for route in ROUTES if not machine(route)))
def test_every_page_keeps_scripts_of_others_out(client: Client, route: str) -> None:
    answer = client.get(address(route))
    policy = dict(part.strip().partition(" ")[::2] for part in answer.headers["Content-Security-Policy"].split(";"))
    assert policy["script-src"] == "'self'"
    assert policy["default-src"] == "'none'"
    assert (answer.headers["X-Frame-Options"], answer.headers["X-Content-Type-Options"]) == ("DENY", "nosniff")
    html = b"".join(answer).decode()
    assert [mark for mark in (" onclick=", " style=", "<style", "<script>", "javascript:") if mark in html] == []
