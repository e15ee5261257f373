"""Forms of decisions about levels."""

from typing import Any

from django import forms
from django.utils import timezone

from apps.governance.waiving import REASON_MAX


class WithdrawForm(forms.Form):
    """Why something ends early."""

    reason = forms.CharField(max_length=REASON_MAX)


class WaiverForm(forms.Form):
    """Which criterion does not count, why, and until when (UTC)."""

    criterion = forms.ChoiceField()
    reason = forms.CharField(
        max_length=REASON_MAX, widget=forms.Textarea(attrs={"rows": 3}), help_text="Public: it stands in the log."
    )
    until_at = forms.DateTimeField(
        label="Until (UTC)",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
        help_text="It ends by itself.",
    )

    def __init__(self, criteria: list[str], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["criterion"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(key, key) for key in criteria]

    def clean_until_at(self) -> Any:
        value = self.cleaned_data["until_at"]
        return timezone.make_aware(value) if timezone.is_naive(value) else value
