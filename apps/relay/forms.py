"""Forms of the protocol's rows."""

from django import forms

from apps.core.filters import FilterForm, search_field, sort_field
from apps.relay.enums import DispatchState
from apps.relay.policy import LIMIT_MAX_SECONDS, LIMIT_MIN_SECONDS
from apps.relay.selectors import DispatchFilters, RejectionFilters

# What a callback can be refused for, as far as refusals are counted.
REASONS = (
    "token_missing",
    "token_invalid",
    "token_expired",
    "identity_unknown",
    "identity_replaced",
    "claims_contradict",
    "never_dispatched",
    "dispatch_token_wrong",
    "completion_conflict",
    "report_conflict",
    "report_removed",
    "quota_used",
    "token_reused",
    "rate_limited",
)


class TimeLimitForm(forms.Form):
    """How long jobs may be silent."""

    job_name = forms.CharField(
        max_length=300, required=False, label="Job name", help_text="As its callbacks spell it; empty for all others."
    )
    minutes = forms.IntegerField(min_value=LIMIT_MIN_SECONDS // 60, max_value=LIMIT_MAX_SECONDS // 60)


class RejectionForm(FilterForm):
    """Which refused callbacks the list shows."""

    code = forms.ChoiceField(label="Reason", required=False, choices=[("", "Any"), *((code, code) for code in REASONS)])
    repository = search_field("Repository")
    sort = sort_field("last_seen", "count")

    def filters(self) -> RejectionFilters:
        return RejectionFilters(**self.given())


class DispatchForm(FilterForm):
    """Which dispatches the list shows."""

    state = forms.ChoiceField(required=False, choices=[("", "Any that is not sent"), *DispatchState.choices])
    delivery = search_field("Delivery id")
    repository = search_field("Repository")

    def filters(self) -> DispatchFilters:
        return DispatchFilters(**self.given())
