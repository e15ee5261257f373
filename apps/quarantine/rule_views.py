"""The page on which maintainers put another set of rules in force, having seen what it changes."""

import datetime
import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from django.contrib import messages
from django.forms import BoundField
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from apps.accounts.services import actor_of
from apps.core.access import requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Permission
from apps.quarantine import rule_preview, rules
from apps.quarantine.policy import SHIPPED, UPSTREAM, Rules
from apps.quarantine.rule_forms import RulesForm
from apps.quarantine.rule_table import WORDS, table

PRESENT = "in_force"
TESTS_SHOWN = 50


@dataclass(frozen=True)
class Line:
    """One rule of the form."""

    name: str
    part: str
    says: str
    unit: str
    present: str
    upstream: str
    field: BoundField


@requires(Permission.RULES_CHANGE)
@require_http_methods(["GET", "POST"])
def change(request: HttpRequest) -> HttpResponse:
    """`/policy/flaky/?set=`: another set of rules of flaky tests. POST `act`: `preview` shows what it would flag
    against today's evidence; `put` puts in force what was previewed, and previews again where something differs."""
    moment = now()
    held = rules.in_force(moment)
    offered = {PRESENT: held, **SHIPPED}
    chosen = request.GET.get("set", PRESENT)
    if chosen not in offered:
        raise Http404
    if request.method == "GET":
        return _page(request, RulesForm(start=offered[chosen]), held, {"chosen": chosen})
    act = request.POST.get("act", "")
    if act not in ("preview", "put"):
        raise Http404
    form = RulesForm(request.POST, start=held)
    form.fields["reason"].required = act == "put"
    is_valid = form.is_valid()
    form.fields["reason"].required = True
    found = _read(form, moment) if is_valid else None
    if found is None:
        return _page(request, form, held, {})
    after, from_at = found
    before = rules.in_force(from_at)
    seal = _seal(after, before, form.cleaned_data["from_at"])
    if act == "put" and form.cleaned_data["seen"] == seal and _put(request, form, from_at, moment):
        return redirect(reverse("public:policy") + "#flaky-versions")
    form.data = form.data.dict() | {"seen": seal}  # type: ignore[attr-defined]
    shown = {
        "is_stale": act == "put" and form.cleaned_data["seen"] != seal,
        "changed": [row for row in table(before, after) if row.is_different],
        "changes": rule_preview.changes(after, now=moment),
        "from_at": form.cleaned_data["from_at"],
        "is_previewed": True,
    }
    return _page(request, form, held, shown)


def _read(form: RulesForm, moment: datetime.datetime) -> tuple[Rules, datetime.datetime] | None:
    """The set and from when it is to hold; None where the form says what is wrong with it."""
    from_at = form.from_moment(moment)
    if from_at < moment:
        form.add_problem("from_at", f"{from_at:%Y-%m-%d %H:%M} has passed, name a later moment.")
        return None
    try:
        return rules.read_rules(form.values()), from_at
    except Problem as problem:
        form.add_problem(problem.field, problem.detail)
        return None


def _put(request: HttpRequest, form: RulesForm, from_at: datetime.datetime, moment: datetime.datetime) -> bool:
    """Whether it was put in force; if not, the form says why."""
    user: Any = request.user
    reason = form.cleaned_data["reason"]
    try:
        version = rules.put_rules_in_force(
            values=form.values(), from_at=from_at, reason=reason, actor=actor_of(user), now=moment
        )
    except Problem as problem:
        form.add_problem(problem.field, problem.detail)
        return False
    messages.success(request, f"The rules of flaky tests hold from {version.from_at:%Y-%m-%d %H:%M} UTC.")
    return True


def _seal(after: Rules, before: Rules, from_at: datetime.datetime | None) -> str:
    """What was looked at, in short: both sets, and from when. Put in force is only what was looked at."""
    looked_at = [asdict(after), asdict(before), from_at.isoformat() if from_at else ""]
    return hashlib.sha256(json.dumps(looked_at, sort_keys=True).encode()).hexdigest()


def _page(request: HttpRequest, form: RulesForm, held: Rules, more: dict[str, Any]) -> HttpResponse:
    fields = form.rule_fields
    lines = [
        Line(row.name, row.part, row.says, WORDS[row.name].unit, row.values[0], row.values[1], fields[row.name])
        for row in table(held, UPSTREAM)
    ]
    sets = [(PRESENT, "What is in force"), *((key, f"What ships as {key}") for key in SHIPPED)]
    context = {"form": form, "lines": lines, "sets": sets, "shown": TESTS_SHOWN} | more
    return render(request, "quarantine/rules_change.html", context)
