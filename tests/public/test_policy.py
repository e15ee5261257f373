"""`/policy/`: every rule, printed from the table that the hub itself reads."""

import pytest
from django.test import Client

from apps.accounts.policy import ROLES
from apps.checks.policy import NEUTRAL_ENDS, RULES
from apps.core.backoff import BACKOFF_SECONDS
from apps.core.errors import CODES
from apps.core.templatetags.hub import duration
from apps.platforms.policy import LEVELS, WINDOW_RULES
from apps.policies.policy import SHIPPED
from apps.relay import buildkite
from apps.relay.checknames import CONCLUSIONS
from apps.relay.fields import FIELDS
from apps.relay.identity import CLAIMS
from apps.relay.limits import CALLBACKS_PER_MINUTE
from apps.relay.modes import MODES
from apps.relay.policy import BUCKETS, CHECK_RULES, MATRIX, PARTICIPATION, WEBHOOK_RULES
from apps.results.figure_table import METRICS
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(client: Client) -> Page:
    answer = client.get("/policy/")
    assert answer.status_code == 200
    return Page(answer)


def test_every_table_of_rules_is_there(page: Page) -> None:
    assert set(page.tables) == {
        *(
            "levels",
            "guards",
            "roles",
            "criteria",
            "handling",
            "limits",
            "first-level",
            "proposals",
            "modes",
            "webhook",
            "participation",
            "maintenance",
            "flaky",
            "gate",
            "gate-checks",
            "quarantine-life",
            "backoff",
            "matrix",
            "buckets",
            "checks",
            "conclusions",
            "coverage",
            "quotas",
            "upload-limits",
            "neutral-ends",
            "metrics",
            "fields",
            "claims",
            "pipeline-claims",
            "codes",
        )
    }


def test_participation(page: Page) -> None:
    assert page.tables["participation"] == [
        (rule.label, row.text, row.chosen_by) for rule, row in PARTICIPATION.items()
    ]
    assert page.tables["maintenance"] == [(rule.what, rule.limit, rule.why) for rule in WINDOW_RULES]


def test_sending_again(page: Page) -> None:
    assert page.tables["backoff"] == [(str(n), duration(seconds)) for n, seconds in enumerate(BACKOFF_SECONDS, 1)]


def test_levels(page: Page) -> None:
    assert page.tables["levels"] == [
        (f"{level.code} {level.name}", level.events, level.results, level.check, level.blocks) for level in LEVELS
    ]


def test_guards(page: Page) -> None:
    good = "with a good file"
    assert page.tables["guards"] == [
        ("a web page", "The file is a web page.", good),
        ("empty", "The file is empty, or lists nobody while the hub lists somebody.", good),
        ("not an allowlist", "The file is not UTF-8, or has a problem that `allowlist lint` names.", good),
        (
            "much is gone",
            "More than 20 % of the entries are gone at once, and more than 2; or more than 1 of those at L3 and L4.",
            "with a good file, or when a maintainer accepts this one",
        ),
        ("refused by GitHub", "GitHub refuses the file: it is gone, too large, or not for the App.", good),
        ("GitHub is silent", "GitHub has not shown the file for 30 minutes.", good),
    ]


def test_roles(page: Page) -> None:
    printed = [
        (name, held_by, set(everywhere.split()), set(own.split()))
        for name, held_by, everywhere, own in page.tables["roles"]
    ]
    assert printed == [
        (
            role.label,
            row.held_by,
            set(map(str, row.permissions)) or {"read", "what", "is", "public"},
            set(map(str, row.own_platforms)) or {"nothing", "more"},
        )
        for role, row in ROLES.items()
    ]


def test_figures(page: Page) -> None:
    assert page.tables["metrics"] == [
        (f"{metric.title} {metric.key}", metric.definition, metric.of) for metric in METRICS
    ]


def test_modes(page: Page) -> None:
    def said(is_so: bool) -> str:
        return "yes" if is_so else "no"

    assert page.tables["modes"] == [
        (
            mode.name,
            *map(said, (mode.takes_webhooks, mode.dispatches, mode.takes_callbacks, mode.takes_results)),
            said(mode.publishes_checks),
            mode.meaning,
        )
        for mode in MODES.values()
    ]
    assert "this hub runs in the mode active" in page.text


def test_upstream_events(page: Page) -> None:
    assert page.tables["webhook"] == [
        (rule.event, rule.action or "any", rule.effect) for rule in (*WEBHOOK_RULES, *CHECK_RULES)
    ]


def test_states_of_a_job(page: Page) -> None:
    assert page.tables["matrix"] == [
        (
            stored,
            incoming,
            row.answer.label,
            (row.status.label if row.status else "as before") + "".join(f" flag: {flag.label}" for flag in row.add),
            row.why,
        )
        for (stored, incoming), row in MATRIX.items()
    ]


def test_buckets(page: Page) -> None:
    printed = [(conclusion, text.partition(" ")[2]) for conclusion, text in page.tables["buckets"]]
    assert printed == [(conclusion, bucket.label) for conclusion, bucket in BUCKETS.items()]


def test_check_runs(page: Page) -> None:
    assert page.tables["checks"] == [(rule.when, rule.then) for rule in RULES]


def test_conclusions_of_check_runs(page: Page) -> None:
    printed = [(text.partition(" ")[2], conclusion) for text, conclusion in page.tables["conclusions"]]
    assert printed == [(bucket.label, conclusion.value) for bucket, conclusion in CONCLUSIONS.items()]


def test_what_the_hub_ends_as_neutral(page: Page) -> None:
    assert page.tables["neutral-ends"] == [(row.when, row.pattern) for row in NEUTRAL_ENDS.values()]


def test_fields_of_a_callback(page: Page) -> None:
    assert page.tables["fields"] == [
        (field.path, field.kind, f"{field.cap:,}", "required" if field.is_required else "optional") for field in FIELDS
    ]
    assert f"at most {CALLBACKS_PER_MINUTE} callbacks a minute and repository" in page.text


def test_claims_of_a_token(page: Page) -> None:
    assert page.tables["claims"] == [(claim.name, claim.use, claim.check) for claim in CLAIMS]
    assert page.tables["pipeline-claims"] == [(row.name, row.use, row.check) for row in buildkite.CLAIMS]


def test_refusals(page: Page) -> None:
    assert page.tables["codes"] == [
        (code, str(row.status), row.title, row.next_step.replace("`", "")) for code, row in CODES.items()
    ]


def test_it_prints_what_is_flagged_about_coverage(page: Page) -> None:
    from apps.results.coverage import RULES as COVERAGE_RULES

    assert page.tables["coverage"] == [
        (rule.flag.value, rule.says, f"{rule.limit} percentage points") for rule in COVERAGE_RULES
    ]


def test_it_prints_how_much_may_be_uploaded_and_how_much_of_it_is_read(page: Page) -> None:
    from apps.results.formats.limits import Limits, rows
    from apps.results.quotas import QUOTAS

    assert page.tables["quotas"] == [
        (quota.what.replace("`", ""), quota.limit, quota.answer.replace("`", "")) for quota in QUOTAS
    ]
    assert page.tables["upload-limits"] == [
        (row.name, f"{row.value:,} {row.unit}", row.says.replace("`", "")) for row in rows(Limits())
    ]
    assert "the bytes are kept for 90 days after they came" in page.text


def test_what_the_gate_does_with_each_outcome_is_printed_as_it_is_in_force(client: Client) -> None:
    in_force = {row[0]: row[2] for row in Page(client.get("/policy/")).tables["handling"]}
    assert in_force == {name: row.asks for name, row in SHIPPED.handling.items()}
