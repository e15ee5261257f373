"""Proposals in the tables. What is their proposer's and the maintainers' alone is not here: contacts, evidence, what
was said on the way to a decision."""

import re
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.core.admin import ReadOnly, site
from apps.governance.models import NightlyEvaluation, Notice, Proposal, Transition, Waiver
from apps.platforms.policy import PUBLIC_FROM

_ADDRESS = re.compile(r"[^\s<>'\"]+@[^\s<>'\"]+")


@admin.register(Proposal, site=site)
class ProposalAdmin(ReadOnly):
    list_display = ("full_name", "platform_name", "state", "revision", "proposer", "changed_at")
    list_filter = ("state",)
    list_select_related = ("proposer",)
    search_fields = ("full_name", "platform_name")
    exclude = ("contact",)


@admin.register(Transition, site=site)
class TransitionAdmin(ReadOnly):
    list_display = ("proposal", "verb", "revision", "actor_label", "at", "event_seq")
    list_filter = ("verb",)
    list_select_related = ("proposal",)
    search_fields = ("proposal__full_name",)
    exclude = ("words",)


@admin.register(Notice, site=site)
class NoticeAdmin(ReadOnly):
    list_display = ("transition", "alarm", "event_seq", "user", "state", "attempts", "changed_at", "told")
    list_filter = ("state",)
    list_select_related = ("transition__proposal", "alarm", "user")
    search_fields = ("transition__proposal__full_name",)
    exclude = ("error",)
    readonly_fields = ("told",)

    @admin.display(description="error")
    def told(self, notice: Notice) -> str:
        """A mail server's words name the address that it refused."""
        return _ADDRESS.sub("(an address)", notice.error)


@admin.register(NightlyEvaluation, site=site)
class NightlyEvaluationAdmin(ReadOnly):
    list_display = ("repository", "day", "level", "use", "verdict", "sentence", "policy_number")
    list_filter = ("use", "verdict")
    list_select_related = ("repository",)
    search_fields = ("repository__full_name",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """What a repository shows on its way to L2 is its own."""
        return super().get_queryset(request).filter(level__gte=PUBLIC_FROM).exclude(level=PUBLIC_FROM, use="rise")


@admin.register(Waiver, site=site)
class WaiverAdmin(ReadOnly):
    list_display = ("repository", "criterion", "by", "from_at", "until_at", "withdrawn_at", "event_seq")
    list_select_related = ("repository",)
    search_fields = ("repository__full_name", "criterion")
