"""The form of the rules of flaky tests: a field for each rule of the table."""

import datetime
from dataclasses import asdict
from typing import Any

from django import forms

from apps.quarantine.policy import MOST, Rules
from apps.quarantine.rule_table import WORDS
from apps.quarantine.rules import REASON_MAX

_MINUTE = "%Y-%m-%dT%H:%M"
_PREFIX = "rule"


def _field_of(name: str, value: Any) -> forms.Field:
    if isinstance(value, bool):
        return forms.BooleanField(label=name, required=False)
    if isinstance(value, int):
        return forms.IntegerField(label=name, min_value=0, max_value=MOST)
    return forms.FloatField(
        label=name, min_value=0, max_value=MOST, widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"})
    )


class RulesForm(forms.Form):
    """A whole rule set, from when it is to hold, and why. `seen`: the seal of what was last previewed."""

    seen = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)
    from_at = forms.DateTimeField(
        label="From (UTC)",
        required=False,
        input_formats=[_MINUTE],
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format=_MINUTE),
        help_text="Empty: at once.",
        error_messages={"invalid": "Write a time as 2026-11-30T14:30, UTC."},
    )
    reason = forms.CharField(
        max_length=REASON_MAX,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Becomes part of the public log, for good.",
    )

    def __init__(self, data: Any = None, *, start: Rules) -> None:
        super().__init__(data)
        for name, value in asdict(start).items():
            self.fields[f"{_PREFIX}_{name}"] = _field_of(name, value)
            self.initial[f"{_PREFIX}_{name}"] = value

    @property
    def rule_fields(self) -> dict[str, forms.BoundField]:
        """The field of each rule, in the order of the table."""
        return {name: self[f"{_PREFIX}_{name}"] for name in WORDS}

    def values(self) -> dict[str, Any]:
        """The rule set, once the form is valid."""
        return {name: self.cleaned_data[f"{_PREFIX}_{name}"] for name in WORDS}

    def from_moment(self, now: datetime.datetime) -> datetime.datetime:
        """From when it is to hold."""
        return self.cleaned_data["from_at"] or now

    def add_problem(self, field: str | None, detail: str) -> None:
        """Say a refusal at the field that it is about."""
        at = f"{_PREFIX}_{field}" if field in WORDS else field
        self.add_error(at if at in self.fields else None, detail)
