"""The allowlist: as others read it, and as those who look after it do."""

import hashlib
import uuid
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from apps.accounts.services import actor_of
from apps.core.access import public, requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Permission
from apps.platforms import authority, selectors
from apps.platforms.allowlist import AllowlistError, Entry, dump, parse
from apps.platforms.allowlist_diff import Difference, Kind, compare
from apps.platforms.enums import AlarmKind
from apps.platforms.forms import AcceptFileForm
from apps.platforms.models import AllowlistAlarm
from apps.platforms.sync import accept_file
from apps.platforms.sync_policy import GUARDS

# How long (seconds) a copy may be used unasked. Then a reader asks with its tag, and gets 304 while nothing changed.
FRESH_SECONDS = 60

TONES = {
    Kind.ADDED: "info",
    Kind.RAISED: "good",
    Kind.LOWERED: "warn",
    Kind.REMOVED: "bad",
    Kind.CHANGED: "quiet",
}


@public
@require_safe
def published(request: HttpRequest) -> HttpResponseBase:
    """`GET /allowlist.yml`: the allowlist in force, in upstream's format. 304 to a reader that has it."""
    text = dump(selectors.listing()).encode()
    etag = quote_etag(hashlib.sha256(text).hexdigest())
    answer = HttpResponse(text, content_type="application/yaml; charset=utf-8")
    answer.headers["ETag"] = etag
    answer.headers["Cache-Control"] = f"public, max-age={FRESH_SECONDS}"
    return get_conditional_response(request, etag=etag, response=answer) or answer


@dataclass(frozen=True)
class DriftRow:
    """One entry on which the hub and the file differ, as the page prints it."""

    kind: Kind
    full_name: str
    here: str
    there: str

    @property
    def tone(self) -> str:
        return TONES[self.kind]

    @classmethod
    def of(cls, one: Difference) -> "DriftRow":
        return cls(one.kind, one.full_name, _spelled(one.before), _spelled(one.after))


def _spelled(entry: Entry | None) -> str:
    if entry is None or not entry.level:
        return "not listed"
    parts = [f"L{entry.level} {entry.device}".strip(), ", ".join(entry.oncalls), ", ".join(sorted(entry.events))]
    return " · ".join(filter(None, parts))


@requires(Permission.ALLOWLIST_VIEW)
@never_cache
@require_http_methods(["GET", "POST"])
def allowlist(request: HttpRequest) -> HttpResponse:
    """`/allowlist/`: who owns the list, what upstream's file says otherwise, what waits for it.

    POST `alarm`, `reason`: take the file as it is, for those who may change levels.
    """
    user: Any = request.user
    form = AcceptFileForm(request.POST or None)
    status = 200
    if request.method == "POST":
        if not user.may(Permission.LEVEL_CHANGE):
            raise PermissionDenied(f"This needs the permission {Permission.LEVEL_CHANGE}.")
        if form.is_valid():
            try:
                _accept(form.cleaned_data["alarm"], form.cleaned_data["reason"], user)
            except Problem as problem:
                form.add_error(problem.field, problem.detail)
                status = problem.row.status
            else:
                messages.success(request, "The file is taken as it is with the next round.")
                return redirect("platforms:allowlist")
    return render(request, "platforms/allowlist.html", _context(user, form), status=status)


def _accept(public_id: uuid.UUID, reason: str, user: Any) -> None:
    alarm = AllowlistAlarm.objects.filter(public_id=public_id).first()
    if alarm is None:
        raise Problem("alarm_stale", "There is no such alarm: look again.")
    accept_file(alarm=alarm, reason=reason, actor=actor_of(user), now=now())


def _context(user: Any, form: forms.Form) -> dict[str, Any]:
    moment = now()
    if not authority.is_file():
        return {"is_file": False, "count": len(selectors.listing()), "nav": "operations", "now": moment}
    alarm, file = selectors.open_alarm(), selectors.upstream_file()
    guard = GUARDS[AlarmKind(alarm.kind)] if alarm else None
    is_accepted = alarm is not None and alarm.accepted_seq is not None
    may_accept = guard is not None and guard.can_be_accepted and user.may(Permission.LEVEL_CHANGE)
    if alarm is not None and not form.is_bound:
        form.initial["alarm"] = alarm.public_id
    return {
        "is_file": True,
        "where": authority.address(),
        "file": file,
        "alarm": alarm,
        "guard": guard,
        "is_accepted": is_accepted,
        "form": form if may_accept and not is_accepted else None,
        # What was refused, where the form is gone that would say so.
        "refused": form.non_field_errors() if form.is_bound else [],
        # What was refused is what one wants to compare; where it is none, there is only the good copy.
        "rows": _drift(alarm.text if alarm and alarm.text else file.text if file else ""),
        "edits": selectors.edits_to_show(now=moment),
        "demotions": selectors.open_demotions(),
        "guards": GUARDS,
        "nav": "operations",
        "now": moment,
    }


def _drift(text: str) -> list[DriftRow] | None:
    """What a file says otherwise than the hub; None where it cannot be compared."""
    try:
        entries = parse(text).renamed(selectors.former_names()).entries
    except AllowlistError:
        return None
    return [DriftRow.of(one) for one in compare(selectors.known_entries(), entries)]
