"""Forms of the gate."""

import datetime

from django import forms

from apps.core.filters import FilterForm
from apps.gate.overriding import REASON_MAX
from apps.platforms.models import Repository
from apps.platforms.policy import MATURE


def _reason() -> forms.CharField:
    return forms.CharField(
        max_length=REASON_MAX,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Becomes part of the log, for good.",
    )


class OverrideForm(forms.Form):
    """What a maintainer overrides, why, and for how long."""

    pr = forms.IntegerField(label="Pull request", min_value=1, max_value=2**63 - 1)
    sha = forms.RegexField(
        r"^[0-9a-f]{40}$",
        label="Only at commit",
        required=False,
        strip=True,
        help_text="A head of the pull request, whole. Empty: at every head.",
    )
    repository = forms.ModelChoiceField(
        Repository.objects.none(),
        to_field_name="full_name",
        required=False,
        empty_label="All parts",
    )
    hours = forms.IntegerField(label="For so many hours", min_value=1, max_value=8_760, initial=24)
    reason = _reason()

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        blocking = Repository.objects.filter(level__gte=MATURE, is_probe=False)
        self.fields["repository"].queryset = blocking  # type: ignore[attr-defined]

    def until(self, now: datetime.datetime) -> datetime.datetime:
        """When it is to end."""
        return now + datetime.timedelta(hours=self.cleaned_data["hours"])


class ReasonForm(forms.Form):
    reason = _reason()


class OverrideFilterForm(FilterForm):
    """Which overrides the ledger shows."""

    pr = forms.IntegerField(label="Pull request", required=False, min_value=1, max_value=2**63 - 1)
    repository = forms.CharField(required=False, max_length=140, widget=forms.TextInput(attrs={"autocomplete": "off"}))
