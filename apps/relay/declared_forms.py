"""Forms of declared outcomes."""

import datetime
from typing import Any

from django import forms

from apps.relay.enums import Declared

REASON_MAX, NAME_MAX = 2_000, 300
EXACTLY = "Exactly as its callbacks spell it."


class DeclareForm(forms.Form):
    """What a job is meant to be, from a day until a day (UTC, both included)."""

    workflow = forms.CharField(max_length=NAME_MAX, strip=False, help_text=EXACTLY)
    job_name = forms.CharField(max_length=NAME_MAX, strip=False, required=False, label="Job name", help_text=EXACTLY)
    outcome = forms.ChoiceField(label="It is", choices=Declared.choices)
    starts_at = forms.DateField(label="From", widget=forms.DateInput({"type": "date"}), help_text="UTC")
    ends_at = forms.DateField(label="Until", widget=forms.DateInput({"type": "date"}), help_text="UTC, included")
    reason = forms.CharField(
        max_length=REASON_MAX, widget=forms.Textarea(attrs={"rows": 3}), help_text="Stands in the public log."
    )

    def values(self) -> dict[str, Any]:
        """What declare_outcome takes."""
        given = dict(self.cleaned_data)
        return given | {
            "outcome": Declared(given["outcome"]),
            "starts_at": _midnight(given["starts_at"]),
            "ends_at": _midnight(given["ends_at"] + datetime.timedelta(days=1)),
        }

    def clean_ends_at(self) -> datetime.date:
        day: datetime.date = self.cleaned_data["ends_at"]
        if day == datetime.date.max:
            raise forms.ValidationError("Send an earlier day.")
        return day


class WithdrawForm(forms.Form):
    """Why a declaration is taken back."""

    reason = forms.CharField(max_length=REASON_MAX)


def _midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time(tzinfo=datetime.UTC))
