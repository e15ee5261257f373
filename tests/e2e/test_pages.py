"""Every page, as everyone who may see it: nothing serious by axe in either colour scheme, and it fits 360 px.

That the console stays empty, the Content-Security-Policy is kept and no other host is asked is watched over in every
test here (conftest.Watch).
"""

import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Page

from apps.core.admin import site as tables
from tests.architecture.test_routes import ADMIN_APP, machine, routes
from tests.e2e.conftest import Watch
from tests.e2e.field import Field, follow_upstream

VISITOR, VENDOR, MAINTAINER, OPERATOR, ADMIN = VIEWERS = ("visitor", "vendor", "maintainer", "operator", "admin")


class Look(NamedTuple):
    """A page to look at. `address` names what Field.addresses() has."""

    address: str
    viewers: tuple[str, ...] = (VISITOR, MAINTAINER)
    status: int = 200


# Route → pages on it. A page that has another face (a tab, an empty list, what is invalid) is there once for each.
PAGES: dict[str, tuple[Look, ...]] = {
    "": (Look("/"),),
    "platforms/": (Look("/platforms/"), Look("/platforms/?q=nobody+is+called+so", (VISITOR,))),
    "platforms/<slug:slug>/": (
        Look("/platforms/{platform}/"),
        Look("/platforms/{platform}/?view=all", (VISITOR,)),
        Look("/platforms/{private_platform}/", (VISITOR, VENDOR)),
        Look("/platforms/nothing-here/", (VISITOR,), status=404),
    ),
    "policy/flaky/": (
        Look("/policy/flaky/", (MAINTAINER,)),
        Look("/policy/flaky/", (VENDOR,), status=403),
    ),
    "flakes/": (Look("/flakes/"),),
    "regressions/": (Look("/regressions/"),),
    "quarantines/": (Look("/quarantines/"), Look("/quarantines/?state=expired", (VISITOR,))),
    "quarantines/upstream/": (
        Look("/quarantines/upstream/"),
        Look("/quarantines/upstream/?unknown=on&q=nobody+is+called+so", (VISITOR,)),
    ),
    "quarantines/<uuid:public_id>/": (
        Look("/quarantines/{quarantine}/"),
        Look("/quarantines/{proposed_quarantine}/", (VISITOR, MAINTAINER)),
        Look("/quarantines/{quarantine_to_release}/", (VISITOR, MAINTAINER)),
        Look("/quarantines/{expired_quarantine}/", (VISITOR, MAINTAINER)),
        Look("/quarantines/00000000-0000-0000-0000-000000000000/", (VISITOR,), status=404),
    ),
    "platforms/<slug:slug>/quarantines/new/": (
        Look("/platforms/{private_platform}/quarantines/new/", (VENDOR, MAINTAINER)),
        Look("/platforms/{platform}/quarantines/new/?report={read_report}", (MAINTAINER,)),
    ),
    "pr/<int:number>/": (Look("/pr/{pull_request}/", (VISITOR,)),),
    "commit/<str:sha>/": (Look("/commit/{sha}/", (VISITOR,)),),
    "jobs/<uuid:public_id>/": (Look("/jobs/{job}/"), Look("/jobs/{red_job}/", (VISITOR, VENDOR))),
    "jobs/<uuid:public_id>/acknowledge/": (
        Look("/jobs/{red_job}/acknowledge/", (VENDOR,)),
        Look("/jobs/{red_job}/acknowledge/", (MAINTAINER,), status=403),
    ),
    "reports/<uuid:public_id>/": (
        Look("/reports/{report}/"),
        Look("/reports/{waiting_report}/", (VISITOR,)),
        Look("/reports/{removed_report}/", (VISITOR,)),
        Look("/reports/{private_report}/", (VENDOR,)),
        Look("/reports/{private_report}/", (VISITOR,), status=404),
    ),
    "reports/<uuid:public_id>/remove/": (Look("/reports/{report}/remove/", (MAINTAINER, OPERATOR)),),
    "reports/<uuid:public_id>/findings/": (Look("/reports/{read_report}/findings/", (VISITOR,)),),
    "reports/<uuid:public_id>/missing/": (Look("/reports/{read_report}/missing/", (VISITOR,)),),
    "reports/<uuid:public_id>/skips/": (Look("/reports/{read_report}/skips/", (VISITOR,)),),
    "tests/": (Look("/tests/", (VISITOR,)), Look("/tests/?q=test_a", (VISITOR,)), Look("/tests/?q=x", (VISITOR,))),
    "tests/<int:number>/": (Look("/tests/{test}/", (VISITOR,)),),
    "backlog/": (Look("/backlog/", (VISITOR,)),),
    "compare/": (
        Look("/compare/", (VISITOR,)),
        Look("/compare/?base={report_before}&head={read_report}", (VISITOR,)),
        Look("/compare/?base=nonsense", (VISITOR,), status=400),
    ),
    "docs/first-callback/": (Look("/docs/first-callback/", (VISITOR,)),),
    "rejections/": (Look("/rejections/", (VENDOR, MAINTAINER, OPERATOR)),),
    "checks/": (Look("/checks/", (OPERATOR,)),),
    "staff/components/": (Look("/staff/components/", (OPERATOR,)),),
    "staff/health/": (Look("/staff/health/", (OPERATOR,)),),
    "policy/": (Look("/policy/", (VISITOR,)),),
    "policy/metrics/": (Look("/policy/metrics/", (VISITOR,)),),
    "status/": (Look("/status/", (VISITOR,)),),
    "repositories/<str:owner>/<str:name>/level/": (
        Look("/repositories/{repository}/level/", (MAINTAINER,)),
        Look("/repositories/{repository}/level/", (VENDOR,), status=403),
    ),
    "repositories/<str:owner>/<str:name>/participation/": (
        Look("/repositories/{repository}/participation/", (MAINTAINER,)),
        Look("/repositories/{repository}/participation/", (VENDOR,), status=403),
    ),
    "dispatches/": (
        Look("/dispatches/", (OPERATOR,)),
        Look("/dispatches/?delivery={delivery}", (OPERATOR,)),
        Look("/dispatches/?state=nonsense&repository=nobody", (OPERATOR,)),
    ),
    "repositories/<str:owner>/<str:name>/limits/": (Look("/repositories/{repository}/limits/", (VENDOR, MAINTAINER)),),
    "overrides/": (Look("/overrides/", (VISITOR, MAINTAINER)),),
    "overrides/new/": (Look("/overrides/new/?pr={pull_request}", (MAINTAINER,)),),
    "overrides/<uuid:public_id>/": (Look("/overrides/{override}/", (VISITOR, MAINTAINER)),),
    "promotions/": (Look("/promotions/"), Look("/promotions/?repository=nobody", (VISITOR,))),
    "promotions/<uuid:public_id>/": (Look("/promotions/{promotion}/", (VISITOR, MAINTAINER)),),
    "repositories/<str:owner>/<str:name>/promote/": (
        Look("/repositories/{repository}/promote/", (MAINTAINER,)),
        Look("/repositories/{repository}/promote/", (VENDOR,), status=403),
    ),
    "platforms/<slug:slug>/calendar/": (Look("/platforms/{private_platform}/calendar/", (VENDOR, MAINTAINER)),),
    "notices/": (Look("/notices/", (VISITOR,)),),
    "notices/<uuid:public_id>/": (Look("/notices/{notice}/"),),
    "downgrades/": (Look("/downgrades/", (VISITOR,)),),
    "downgrades/<uuid:public_id>/": (Look("/downgrades/{downgrade}/"),),
    "repositories/<str:owner>/<str:name>/downgrade/": (
        Look("/repositories/kestrel/torch/downgrade/", (MAINTAINER,)),
        Look("/repositories/{repository}/downgrade/", (VENDOR,), status=403),
    ),
    "appeals/": (Look("/appeals/", (VISITOR,)), Look("/appeals/?platform=nobody", (VISITOR,))),
    "appeals/new/": (
        Look("/appeals/new/?repository=zephyr/torch", (VENDOR,)),
        Look("/appeals/new/?repository=zephyr/torch", (MAINTAINER,), status=403),
    ),
    "appeals/<uuid:public_id>/": (
        Look("/appeals/{open_appeal}/", (VISITOR, MAINTAINER)),
        Look("/appeals/{decided_appeal}/", (VISITOR,)),
    ),
    "fairness/": (Look("/fairness/", (VISITOR,)),),
    "breakers/": (Look("/breakers/", (VISITOR,)),),
    "breakers/<uuid:public_id>/": (Look("/breakers/{trip}/", (VISITOR, MAINTAINER)),),
    "policy/versions/": (Look("/policy/versions/", (VISITOR, MAINTAINER)),),
    "policy/versions/<int:number>/": (Look("/policy/versions/1/", (VISITOR,)), Look("/policy/versions/0/", (VISITOR,))),
    "policy/drafts/<uuid:public_id>/": (Look("/policy/drafts/{draft}/", (VISITOR, MAINTAINER)),),
    "repositories/<str:owner>/<str:name>/evaluation/": (
        Look("/repositories/{repository}/evaluation/", (VISITOR, MAINTAINER)),
    ),
    "repositories/<str:owner>/<str:name>/replay/": (Look("/repositories/{repository}/replay/", (VISITOR,)),),
    "repositories/<str:owner>/<str:name>/declared/": (
        Look("/repositories/{repository}/declared/", (VISITOR, MAINTAINER)),
    ),
    "platforms/<slug:slug>/name/": (Look("/platforms/{platform}/name/", (MAINTAINER,)),),
    "allowlist/": (Look("/allowlist/", (MAINTAINER, OPERATOR)),),
    "platforms/<slug:slug>/members/": (
        Look("/platforms/{private_platform}/members/", (VENDOR,)),
        Look("/platforms/{platform}/members/", (VENDOR, MAINTAINER)),
    ),
    "invitations/<str:code>/": (Look("/invitations/{invitation}/", (VENDOR,)),),
    "register/": (Look("/register/", (VENDOR,)),),
    "proposals/<uuid:public_id>/": (
        Look("/proposals/{waiting}/", (MAINTAINER,)),
        Look("/proposals/{returned}/", (VENDOR, MAINTAINER)),
    ),
    "proposals/<uuid:public_id>/edit/": (Look("/proposals/{returned}/edit/", (VENDOR,)),),
    "console/": (Look("/console/", (VENDOR, MAINTAINER, OPERATOR)),),
    "console/relay/": (Look("/console/relay/", (OPERATOR,)),),
    "console/operations/": (
        Look("/console/operations/", (MAINTAINER, OPERATOR, ADMIN)),
        Look("/console/operations/", (VENDOR,), status=403),
    ),
    "console/repositories/": (Look("/console/repositories/", (MAINTAINER,)),),
    "decisions/": (Look("/decisions/"), Look("/decisions/?since=yesterday&about=nobody", (VISITOR,))),
    "decisions/<int:seq>/": (Look("/decisions/{decision}/", (VISITOR,)),),
    "decisions/checkpoints/": (Look("/decisions/checkpoints/", (VISITOR,)),),
    "accounts/login/": (Look("/accounts/login/", (VISITOR,)),),
    "account/": (Look("/account/", (VENDOR, MAINTAINER, ADMIN)),),
    "pipelines/": (Look("/pipelines/", (OPERATOR,)),),
    "transfers/<uuid:public_id>/": (Look("/transfers/{transfer}/", (MAINTAINER, OPERATOR)),),
    "people/": (Look("/people/", (ADMIN,)),),
    "people/organisations/": (Look("/people/organisations/", (ADMIN,)),),
    "people/<uuid:public_id>/": (Look("/people/{person}/", (ADMIN,)),),
    "docs/errors/<slug:code>": (Look("/docs/errors/csrf", (VISITOR,)),),
    "admin/": (Look("/admin/", (OPERATOR,)),),
    f"admin/{ADMIN_APP}": (Look("/admin/relay/", (OPERATOR,)),),
}


def table_routes() -> Iterator[tuple[str, type[Any]]]:
    """The two routes of each table that operators look into, with its model."""
    for model in tables._registry:
        name = f"admin/{model._meta.app_label}/{model._meta.model_name}/"
        yield name, model
        yield f"{name}<path:object_id>/change/", model


# Addresses that are no page of their own.
NO_PAGES = {
    "accounts/logout/": "a POST",
    "accounts/github/": "a POST",
    "accounts/github/callback/": "a redirect",
    "checks/<uuid:public_id>/resend/": "a POST",
    "proposals/<uuid:public_id>/accept/": "a POST; GET leads to the proposal",
    "proposals/<uuid:public_id>/return/": "a POST; GET leads to the proposal",
    "proposals/<uuid:public_id>/withdraw/": "a POST; GET leads to the proposal",
    "repositories/<str:owner>/<str:name>/claim/": "a POST",
    "reports/<uuid:public_id>/raw/<str:sha256>/": "a file to save",
    "admin/jsi18n/": "a script",
    "allowlist.yml": "YAML",
    "decisions/feed/": "a feed",
    "decisions/export.jsonl": "a file to save",
    "decisions/checkpoints/<int:number>.json": "a file to save",
    "promotions/<uuid:public_id>/evidence/<int:number>.json": "a file to save",
    "platforms/<slug:slug>/disabled-tests.json": "JSON",
    "platforms/<slug:slug>/deselect.txt": "options of a program",
    "healthz": "JSON",
    "readyz": "JSON",
}


def test_every_page_of_the_hub_is_looked_at() -> None:
    known = set(PAGES) | {route for route, _ in table_routes()} | set(NO_PAGES)
    assert {route for route in routes() if not machine(route)} == known


def looks(viewer: str, field: Field) -> list[Look]:
    """What this viewer looks at, with addresses."""
    names = field.addresses()
    wanted = [look for looks_ in PAGES.values() for look in looks_ if viewer in look.viewers]
    if viewer == OPERATOR:
        for route, model in table_routes():
            row = model._default_manager.order_by("pk").first()
            assert row is not None, f"nothing to look at in {model}: let tests/e2e/field.py make one"
            wanted.append(Look("/" + route.replace("<path:object_id>", str(row.pk))))
    return [look._replace(address=look.address.format_map(names)) for look in wanted]


AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text()
# What depends on colours; all else is the same in both schemes, and asked once.
OF_COLOUR = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}


def serious(page: Page, **options: Any) -> list[str]:
    """What axe finds that is serious or critical: rule and element."""
    # Without preload: to read stylesheets axe would write inline styles, which the hub's policy refuses.
    given = json.dumps({"resultTypes": ["violations"], "preload": False, **options})
    found = page.evaluate(f"axe.run(document, {given}).then((found) => found.violations)")
    return [
        f"{rule['id']}: {node['html'][:120]} {node['any'][0]['message'][:90] if node['any'] else ''}".strip()
        for rule in found
        if rule["impact"] in {"serious", "critical"}
        for node in rule["nodes"][:5]
    ]


def overflow(page: Page) -> list[str]:
    """What makes the page wider than the screen; empty where it fits."""
    return page.evaluate(
        """() => {
          const wide = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= wide) return [];
          return [...document.querySelectorAll("body *")]
            .filter((it) => it.getBoundingClientRect().right > wide + 1)
            .map((it) => `${it.tagName.toLowerCase()}.${it.className}`).slice(0, 6);
        }"""
    )


def header_lines(page: Page) -> list[str]:
    """The header's links that stand below the first one; empty where it is one line."""
    return page.evaluate(
        """() => {
          const links = [...document.querySelectorAll("header.bar .nav a, header.bar .account a")];
          const middle = (it) => { const box = it.getBoundingClientRect(); return (box.top + box.bottom) / 2; };
          return links.filter((it) => Math.abs(middle(it) - middle(links[0])) > 8).map((it) => it.textContent);
        }"""
    )


def faults(page: Page, look: Look, watch: Watch) -> dict[str, list[str]]:
    """What is wrong with a page, by what was looked for."""
    if look.status != 200:
        watch.refusals.add(watch.origin + look.address)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    answer = page.goto(look.address)
    assert answer is not None
    found = {"status": [f"{answer.status}"] if answer.status != look.status else []}
    found["header wraps at 1,280 px"] = header_lines(page)
    page.evaluate(AXE)
    found["light and wide"] = serious(page)
    page.emulate_media(color_scheme="dark")
    found["dark"] = serious(page, **OF_COLOUR)
    page.set_viewport_size({"width": 360, "height": 740})
    found["dark and 360 px"] = serious(page)
    page.emulate_media(color_scheme="light")
    found["light at 360 px"] = serious(page, **OF_COLOUR)
    found["wider than 360 px"] = overflow(page)
    return {what: wrong for what, wrong in found.items() if wrong}


UPSTREAM_PAGES = (
    *("/allowlist/", "/console/", "/platforms/{platform}/", "/platforms/"),
    "/repositories/{repository}/level/",
)


def test_nothing_is_wrong_where_upstreams_file_decides(
    new_page: Callable[..., Page], watch: Watch, field: Field, settings: Any
) -> None:
    settings.ALLOWLIST_AUTHORITY = "file"
    settings.ALLOWLIST_URL = "https://github.com/pytorch/pytorch/blob/main/.github/allowlist.yml"
    follow_upstream(field.acme)
    page = new_page(who=field.maintainer.username)
    pages = [Look(address.format_map(field.addresses())) for address in UPSTREAM_PAGES]
    found = {look.address: wrong for look in pages if (wrong := faults(page, look, watch))}
    assert found == {}
    page.goto("/allowlist/")
    assert page.get_by_role("button", name="Take the file as it is").is_visible()


@pytest.mark.parametrize("viewer", VIEWERS)
def test_nothing_is_wrong_with_any_page(new_page: Callable[..., Page], watch: Watch, field: Field, viewer: str) -> None:
    who = "" if viewer == VISITOR else getattr(field, viewer).username
    page = new_page(who=who)
    found = [
        f"{look.address} as {viewer}, {what}: {wrong}"
        for look in looks(viewer, field)
        for what, wrongs in faults(page, look, watch).items()
        for wrong in wrongs
    ]
    if found:
        pytest.fail("\n".join(found), pytrace=False)
