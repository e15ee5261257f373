"""Quarantines, for programs."""

import uuid
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api import choice, text
from apps.core.clock import now
from apps.core.cursors import listed, read_filters
from apps.core.errors import Problem
from apps.core.permissions import Open
from apps.core.sheets import SheetView
from apps.platforms.models import Platform
from apps.platforms.selectors import platform_or_404
from apps.quarantine import selectors, verbs
from apps.quarantine.enums import ReasonClass, Verb
from apps.quarantine.forms import QuarantineFilterForm, RegressionFilterForm
from apps.quarantine.models import Member, Quarantine
from apps.quarantine.naming import resolved
from apps.quarantine.regressions import regressions
from apps.quarantine.services import OWNER_MAX, REASON_MAX, TESTS_MAX
from apps.results.exclusions import PATTERN_MAX

_INT64 = 2**63 - 1
NAME_MAX = 1_000


class QuarantineOut(serializers.Serializer[Any]):
    """A quarantine. `platform` is null while nobody knows which: then `said` is what was written instead. `release_*`
    say how far its release is proven, as the hub reckoned it at `release_reckoned_at`: null where not in force."""

    id = serializers.UUIDField(source="public_id")
    platform = serializers.SlugField(source="platform.slug", default=None)
    said = serializers.CharField()
    variant = serializers.CharField()
    pattern = serializers.CharField()
    tests = serializers.IntegerField()
    state = serializers.CharField()
    proposed_by = serializers.CharField(source="source")
    reason_class = serializers.CharField()
    reason = serializers.CharField()
    owner = serializers.CharField()
    issue_url = serializers.CharField()
    proposed_at = serializers.DateTimeField()
    effective_from = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    renewals = serializers.IntegerField()
    fix_sha = serializers.CharField()
    release_passes = serializers.IntegerField(source="release_progress.passes", default=None)
    release_passes_needed = serializers.IntegerField(source="release_progress.passes_needed", default=None)
    release_days = serializers.FloatField(source="release_progress.days", default=None)
    release_days_needed = serializers.FloatField(source="release_progress.days_needed", default=None)
    release_missing = serializers.CharField(source="release_progress.missing", default=None)
    release_reckoned_at = serializers.DateTimeField(source="release_progress.reckoned_at", default=None)
    last_run_at = serializers.DateTimeField(source="release_progress.last_run_at", default=None)
    ended_at = serializers.DateTimeField()
    end_reason = serializers.CharField()
    revision = serializers.IntegerField()


class QuarantineList(SheetView):
    """`GET /api/v1/quarantines/?platform=&state=&waiting=&owner=&cursor=&limit=&format=`: those that the caller may
    see, the latest changed first. The filters are the page's.

    200 `{"next", "previous", "results": [...]}`, each as QuarantineOut says. 400 `malformed` names the filter.
    """

    access = Open.PUBLIC
    columns = tuple(QuarantineOut().fields)

    def get(self, request: Request) -> Response:
        form = QuarantineFilterForm(request.query_params)
        read_filters(form)
        found = selectors.found(request.user, form.given(), now=now())
        return listed(request, found.order_by("-changed_at", "-pk"), QuarantineOut)


class QuarantineView(APIView):
    """`GET /api/v1/quarantines/{id}/`: one, with `members` ({test, file, class_name, name}) and `verbs`, what the
    caller may do. 200, 404."""

    access = Open.PUBLIC

    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        return Response(_told(selectors.quarantine_or_404(public_id, request.user), request.user))


def _told(quarantine: Quarantine, user: Any) -> dict[str, Any]:
    members = Member.objects.filter(quarantine=quarantine).select_related("test")
    return {
        **QuarantineOut(quarantine).data,
        "members": [
            {"test": member.test_id, **{name: getattr(member.test, name) for name in ("file", "class_name", "name")}}
            for member in members
        ],
        "verbs": verbs.offered(quarantine, user),
    }


class ProposeIn(serializers.Serializer[Any]):
    """What to propose: `tests` (numbers of the catalogue), `names` (of the platform's last report), or a `pattern`."""

    variant = text(100, required=False, default="default")
    tests = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_INT64),
        max_length=TESTS_MAX,
        required=False,
        default=list,
    )
    names = serializers.ListField(child=text(NAME_MAX), max_length=TESTS_MAX, required=False, default=list)
    pattern = text(PATTERN_MAX, required=False, default="", allow_blank=True)
    reason_class = choice(ReasonClass.values, "kind")
    reason = text(REASON_MAX)
    owner = text(OWNER_MAX)
    issue_url = text(300, required=False, default="", allow_blank=True)


class ProposeView(APIView):
    """`POST /api/v1/platforms/{slug}/quarantines/`: propose one, for the platform's members and maintainers.

    Body `{tests, names | pattern, variant?, reason_class, reason, owner, issue_url?}`. 200 with the quarantine. 400
    `malformed`; 401 `not_signed_in`; 403 `not_permitted`; 404; 409 `quarantine_open`.
    """

    access = Open.SIGNED_IN

    def post(self, request: Request, slug: str) -> Response:
        platform, user = platform_or_404(slug), request.user
        if not selectors.may_change(user, platform):
            raise Problem("not_permitted", "Only members of the platform and maintainers may propose a quarantine.")
        form = ProposeIn(data=request.data)
        form.is_valid(raise_exception=True)
        said = dict(form.validated_data)
        found = resolved(said.pop("names"), platform, said["variant"])
        if found.refused:
            raise Problem("malformed", f"names: {found.refused[0]}", "names")
        said["tests"] = [*said["tests"], *found.tests]
        made = verbs.propose(platform=platform, said=said, user=user, now=now())
        return Response(_told(selectors.quarantine_or_404(made.public_id, user), user))


class VerbIn(serializers.Serializer[Any]):
    """What a verb is told: the revision that was looked at, and what the verb asks for."""

    revision = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    reason = text(REASON_MAX, required=False)
    expires_at = serializers.DateTimeField(required=False)
    fix_sha = text(40, required=False, allow_blank=True)
    unproven = serializers.BooleanField(required=False)
    platform = serializers.SlugRelatedField(
        slug_field="slug",
        queryset=Platform.objects.all(),
        required=False,
        error_messages={"does_not_exist": "is no platform, send the slug of one."},
    )

    def asked(self, verb: Verb) -> dict[str, Any]:
        """What it says for this verb. Raises Problem `malformed` where something is missing."""
        said = dict(self.validated_data)
        for name in ("reason", "platform"):
            if name in verbs.OFFERS[verb].fields and name not in said:
                raise Problem("malformed", f"{name}: is missing, send it.", name)
        return said


class VerbView(APIView):
    """`POST /api/v1/quarantines/{id}/{verb}/`: do what the quarantine's `verbs` offer.

    Body `{revision, reason?, expires_at?, fix_sha?, platform?, unproven?}`, as the verb asks. 200 with the quarantine.
    400 `malformed`; 401 `not_signed_in`; 403 `not_permitted`; 404; 409 `quarantine_stale`, `quarantine_state`,
    `quarantine_over`, `quarantine_open`, `quarantine_cap`, `quarantine_budget`, `quarantine_renewed`,
    `quarantine_unproven`.
    """

    access = Open.SIGNED_IN

    def post(self, request: Request, public_id: uuid.UUID, verb: str) -> Response:
        user = request.user
        found = selectors.quarantine_or_404(public_id, user)
        if verb not in verbs.OFFERS:
            raise Problem("not_found", f"verb: there is no {verb[:40]!r}, send one of {', '.join(verbs.OFFERS)}.")
        if not selectors.may_change(user, found.platform):
            raise Problem("not_permitted", "Only members of the platform and maintainers may change a quarantine.")
        form = VerbIn(data=request.data)
        form.is_valid(raise_exception=True)
        said = form.asked(Verb(verb))
        revision = said.pop("revision")
        verbs.perform(Verb(verb), quarantine=found, revision=revision, said=said, user=user, now=now())
        return Response(_told(selectors.quarantine_or_404(public_id, user), user))


class RegressionOut(serializers.Serializer[Any]):
    """A test that was red in every run since `since_at`: `runs` of them, on `commits` commits. `first_report` and
    `last_report` are ids of reports; `quarantine` is the id of the one that ended by it, null where none did."""

    platform = serializers.SlugField(source="platform.slug")
    variant = serializers.CharField()
    test = serializers.IntegerField(source="test_id")
    file = serializers.CharField(source="test.file")
    class_name = serializers.CharField(source="test.class_name")
    name = serializers.CharField(source="test.name")
    since_at = serializers.DateTimeField()
    first_sha = serializers.CharField(source="since.head_sha")
    first_report = serializers.UUIDField(source="since.public_id")
    last_at = serializers.DateTimeField()
    last_sha = serializers.CharField()
    last_report = serializers.UUIDField(source="last.public_id")
    runs = serializers.IntegerField()
    commits = serializers.IntegerField()
    quarantine = serializers.UUIDField(source="ended")


class RegressionList(SheetView):
    """`GET /api/v1/regressions/?platform=&cursor=&limit=&format=`: tests that fail always, newest first, as far as the
    caller may see their reports. The filter is the page's.

    200 `{"next", "previous", "results": [...]}`, each as RegressionOut says. 400 `malformed` names the filter.
    """

    access = Open.PUBLIC
    columns = tuple(RegressionOut().fields)

    def get(self, request: Request) -> Response:
        form = RegressionFilterForm(request.query_params)
        read_filters(form)
        return listed(request, regressions(request.user, form.given()), RegressionOut)
