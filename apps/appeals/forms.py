"""Forms of appeals."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django import forms

from apps.appeals import policy
from apps.appeals.enums import Outcome, State
from apps.appeals.models import AppealedRow
from apps.core.filters import FilterForm
from apps.relay.models import Job


class AppealFilterForm(FilterForm):
    """Which appeals the list shows."""

    platform = forms.SlugField(required=False, max_length=80, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    state = forms.ChoiceField(required=False, choices=[("", "Any"), *State.choices])
    overdue = forms.ChoiceField(required=False, choices=[("", "Any"), ("yes", "Overdue")])


def _words(label: str, most: int, help_text: str) -> forms.CharField:
    return forms.CharField(label=label, max_length=most, widget=forms.Textarea(attrs={"rows": 4}), help_text=help_text)


class JobBoxes(forms.MultipleChoiceField):
    """Jobs by checkboxes: their public ids."""

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=forms.CheckboxSelectMultiple, required=False, **options)

    def offer(self, jobs: Sequence[Job]) -> None:
        """Let these jobs be chosen."""
        self.choices = [
            (
                str(job.public_id),
                f"{job.short_name}, run {job.run_id}: {job.bucket}, {job.first_seen_at:%Y-%m-%d %H:%M}",
            )
            for job in jobs
        ]


class OpenForm(forms.Form):
    """What a vendor claims, why, and with which rows: boxes of the newest, others by their ids."""

    claim = forms.ChoiceField()
    words = _words("What was wrong", policy.WORDS_MAX, "Public: it stands in the log.")
    links = forms.CharField(
        label="Evidence",
        required=False,
        max_length=policy.LINKS_MAX * (policy.LINK_MAX + 2),
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=f"Addresses, one a line, at most {policy.LINKS_MAX}.",
    )
    rows = JobBoxes(label="Rows that should not count")
    others = forms.CharField(
        label="Other rows",
        required=False,
        max_length=policy.ROWS_MAX * 40,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=f"Ids of jobs, apart by white space; at most {policy.ROWS_MAX} rows in all.",
    )

    def __init__(self, *args: Any, jobs: Sequence[Job], is_decision: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["claim"].choices = [  # type: ignore[attr-defined]
            (claim.value, claim.label) for claim in policy.claims(is_decision=is_decision)
        ]
        boxes = self.fields["rows"]
        assert isinstance(boxes, JobBoxes)
        boxes.offer(jobs)
        if not jobs:
            del self.fields["rows"]

    def clean_links(self) -> list[str]:
        return str(self.cleaned_data["links"]).split()

    def clean_others(self) -> list[UUID]:
        try:
            return [UUID(word) for word in str(self.cleaned_data["others"]).split()]
        except ValueError:
            raise forms.ValidationError("One of them is no id: copy them from the addresses of job pages.") from None

    def chosen(self) -> list[UUID]:
        """All rows that are named."""
        return [*map(UUID, self.cleaned_data.get("rows", [])), *self.cleaned_data["others"]]


class VerbForm(forms.Form):
    """The revision that was looked at, and why."""

    revision = forms.IntegerField(min_value=1, max_value=2**31 - 2, widget=forms.HiddenInput)
    reason = _words("Reason", policy.REASON_MAX, "Becomes part of the log, for good.")


class PauseForm(VerbForm):
    """How long the deadline stands still."""

    days = forms.IntegerField(label="Working days", min_value=1, max_value=30)


class DecideForm(VerbForm):
    """What is decided, and which rows an amendment accepts."""

    outcome = forms.ChoiceField(choices=Outcome.choices, widget=forms.RadioSelect)
    accepted = JobBoxes(label="Rows that an amendment accepts")

    def __init__(self, *args: Any, rows: Sequence[AppealedRow], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        boxes = self.fields["accepted"]
        assert isinstance(boxes, JobBoxes)
        boxes.offer([row.job for row in rows])
        if not rows:
            del self.fields["accepted"]
            self.fields["outcome"].choices = [  # type: ignore[attr-defined]
                (one.value, one.label) for one in Outcome if one is not Outcome.AMEND
            ]
