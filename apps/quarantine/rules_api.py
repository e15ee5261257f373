"""The rules of flaky tests, for programs."""

import datetime
from dataclasses import asdict
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.services import actor_of
from apps.core.api import text
from apps.core.clock import now
from apps.core.cursors import numbered
from apps.core.permissions import Open, Permission
from apps.quarantine import rule_preview, rules
from apps.quarantine.policy import UPSTREAM
from apps.quarantine.rule_preview import Change, Told
from apps.quarantine.rules import REASON_MAX
from apps.results.compare_api import test_out


class VersionOut(serializers.Serializer[Any]):
    """A set that was put in force. `shipped`: the name of the set that ships which it is, else ''."""

    values = serializers.DictField()
    shipped = serializers.CharField()
    from_at = serializers.DateTimeField()
    reason = serializers.CharField()
    by = serializers.CharField()
    created_at = serializers.DateTimeField()


class RulesView(APIView):
    """`GET /api/v1/flaky-rules/?cursor=&limit=`: the rules of flaky tests, and every set that was put in force, the
    latest first.

    200 `{in_force, upstream, next, previous, results [{values, shipped, from_at, reason, by, created_at}]}`; 400
    `malformed`.
    """

    access = Open.PUBLIC

    def get(self, request: Request) -> Response:
        versions = rules.versions()
        about = {"in_force": asdict(rules.in_force(now())), "upstream": asdict(UPSTREAM)}
        rows = numbered(
            request, len(versions), lambda start, end: list(VersionOut(versions[start:end], many=True).data)
        )
        return Response(about | rows)


class RulesIn(serializers.Serializer[Any]):
    """The rules that change, by name; the others stay as they are at that moment. `from_at`: left out, at once."""

    values = serializers.DictField(error_messages={"not_a_dict": "is no object, send one with values by rule."})
    from_at = serializers.DateTimeField(required=False)

    def whole(self, moment: datetime.datetime) -> tuple[dict[str, Any], datetime.datetime]:
        """The whole set, and from when."""
        from_at = self.validated_data.get("from_at", moment)
        return asdict(rules.in_force(from_at)) | self.validated_data["values"], from_at


class ChangeIn(RulesIn):
    """The same, and why."""

    reason = text(REASON_MAX)


class PreviewView(APIView):
    """`POST /api/v1/flaky-rules/preview/`: what a changed set would flag against today's evidence. Changes nothing.

    Body `{values, from_at?}`. 200 `{changed {rule: {before, after}}, results [{platform, variant, flagged, unflagged,
    both}]}`: tests that would be flagged anew and no more, each with `is_standing`, and how many both sets flag. 400
    `malformed`; 401 `not_signed_in`; 403 `not_permitted`.
    """

    access = Permission.RULES_CHANGE

    def post(self, request: Request) -> Response:
        form = RulesIn(data=request.data)
        form.is_valid(raise_exception=True)
        moment = now()
        values, from_at = form.whole(moment)
        before, after = rules.in_force(from_at), rules.read_rules(values)
        changed = {
            name: {"before": getattr(before, name), "after": getattr(after, name)}
            for name in rules.differing(before, after)
        }
        changes = rule_preview.changes(after, now=moment)
        return Response({"changed": changed, "results": [_change_out(change) for change in changes]})


def _change_out(change: Change) -> dict[str, Any]:
    return {
        "platform": change.place.platform.slug,
        "variant": change.place.variant,
        "flagged": [_told_out(told) for told in change.flagged],
        "unflagged": [_told_out(told) for told in change.unflagged],
        "both": change.both,
    }


def _told_out(told: Told) -> dict[str, Any]:
    return test_out(told.test) | {"is_standing": told.is_standing}


class ChangeView(APIView):
    """`POST /api/v1/flaky-rules/change/`: let a changed set hold from a moment on.

    Body `{values, from_at?, reason}`. 200 with the version. 400 `malformed`; 401 `not_signed_in`; 403 `not_permitted`.
    """

    access = Permission.RULES_CHANGE

    def post(self, request: Request) -> Response:
        form = ChangeIn(data=request.data)
        form.is_valid(raise_exception=True)
        moment = now()
        values, from_at = form.whole(moment)
        made = rules.put_rules_in_force(
            values=values,
            from_at=from_at,
            reason=form.validated_data["reason"],
            actor=actor_of(request.user),
            now=moment,
        )
        return Response(VersionOut(made).data)
