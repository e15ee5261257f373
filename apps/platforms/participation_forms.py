"""Forms of what a repository is sent."""

from typing import Any

from django import forms

from apps.platforms.participation import IN_FLIGHT_MAX, NOTE_MAX, Choice
from apps.platforms.policy import WEBHOOK_EVENTS, WINDOW_NOTICE_HOURS

_MINUTE = "%Y-%m-%dT%H:%M"


class _Lines(forms.CharField):
    """One word a line; empty lines are none."""

    widget = forms.Textarea(attrs={"rows": 3})

    def clean(self, value: Any) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line.strip() for line in super().clean(value).splitlines() if line.strip()))


class ParticipationForm(forms.Form):
    """Which of the events that its listing grants a repository is sent. The revision it was seen at rides along."""

    expected_revision = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    events = forms.MultipleChoiceField(
        choices=[(event, event) for event in WEBHOOK_EVENTS], widget=forms.CheckboxSelectMultiple
    )
    refs = _Lines(
        required=False,
        help_text="Globs, one a line: main, release/*, refs/tags/v*. What is pushed, or what a pull request is to be "
        "merged into. Empty: any.",
    )
    labels = _Lines(
        required=False, help_text="One a line. A pull request needs one of them; pushes have none. Empty: any."
    )
    sample_percent = forms.IntegerField(
        min_value=1, max_value=100, label="Sample, per cent", help_text="Which ones is drawn by the hub, not by you."
    )
    max_in_flight = forms.IntegerField(
        min_value=1,
        max_value=IN_FLIGHT_MAX,
        required=False,
        label="At most in flight",
        help_text="Sent and not answered to the end. The others wait, the oldest goes first. Empty: any number.",
    )

    def __init__(self, data: Any = None, *, choice: Choice, revision: int) -> None:
        initial = {
            "expected_revision": revision,
            "events": list(choice.events),
            "refs": "\n".join(choice.refs),
            "labels": "\n".join(choice.labels),
            "sample_percent": choice.sample_percent,
            "max_in_flight": choice.max_in_flight,
        }
        super().__init__(data, initial=initial)

    @property
    def choice(self) -> Choice:
        """What was chosen, once the form is valid."""
        values = self.cleaned_data
        events = tuple(event for event in WEBHOOK_EVENTS if event in values["events"])
        return Choice(events, values["refs"], values["labels"], values["sample_percent"], values["max_in_flight"])


def _moment_field(label: str, help_text: str = "") -> forms.DateTimeField:
    return forms.DateTimeField(
        label=label,
        help_text=help_text,
        input_formats=[_MINUTE],
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format=_MINUTE),
        error_messages={"invalid": "Write a time as 2026-11-30T14:30, UTC."},
    )


class WindowForm(forms.Form):
    """When a repository will be sent nothing, and why."""

    starts_at = _moment_field("From (UTC)", f"At least {WINDOW_NOTICE_HOURS} hours ahead.")
    ends_at = _moment_field("Until (UTC)")
    note = forms.CharField(max_length=NOTE_MAX, label="Why", help_text="Everyone can read it.")
