"""Forms of falling."""

import datetime

from django import forms

from apps.core.filters import FilterForm
from apps.levels.falling_enums import DowngradeState, FallState
from apps.levels.models_falling import ANSWER_MAX, REASON_MAX, FallNotice
from apps.platforms.allowlist import DEVICE
from apps.platforms.models import Repository
from apps.platforms.policy import LEVELS, STABLE


def _reason() -> forms.CharField:
    return forms.CharField(
        max_length=REASON_MAX,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Public: it stands in the log, for good.",
    )


def _device() -> forms.CharField:
    return forms.CharField(
        required=False, help_text="For L3, where none is known: the word in the label ciflow/crcr/<device>."
    )


class ReasonForm(forms.Form):
    """Why a maintainer decides so."""

    reason = _reason()


class AnswerForm(forms.Form):
    """What the platform says to a notice."""

    text = forms.CharField(
        label="Answer",
        max_length=ANSWER_MAX,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="Public. The deadline runs on.",
    )


class DemoteForm(forms.Form):
    """Why a repository is lowered, and what was seen when that was decided."""

    reason = _reason()
    device = _device()
    expected_level = forms.IntegerField(widget=forms.HiddenInput)
    seen_night = forms.DateField(widget=forms.HiddenInput)

    @classmethod
    def beside(cls, notice: FallNotice, night: datetime.date | None) -> "DemoteForm":
        """A fresh form, beside what the page shows."""
        seen = {"expected_level": notice.repository.level, "seen_night": night}
        return cls(initial=seen, auto_id="demote-%s")


class DowngradeForm(forms.Form):
    """To which level a repository goes for a while, why, and from which one it was seen to go."""

    level = forms.TypedChoiceField(coerce=int)
    reason = _reason()
    device = _device()
    expected_level = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, repository: Repository, data: object = None) -> None:
        super().__init__(data, initial={"expected_level": repository.level})  # type: ignore[arg-type]
        below = reversed(LEVELS[: repository.level])
        self.fields["level"].choices = [  # type: ignore[attr-defined]
            (level.number, f"{level.code} {level.name}") for level in below
        ]
        if repository.device or repository.level <= STABLE:
            del self.fields["device"]

    def clean_device(self) -> str:
        value = str(self.cleaned_data["device"])
        if value and not DEVICE.fullmatch(value):
            raise forms.ValidationError("One word of at most 38 printable ASCII characters.")
        return value


class NoticeFilterForm(FilterForm):
    """Which notices are listed."""

    state = forms.ChoiceField(required=False, choices=[("", "Any state"), *FallState.choices])
    platform = forms.SlugField(required=False, max_length=80)


class DowngradeFilterForm(FilterForm):
    """Which temporary downgrades are listed."""

    state = forms.ChoiceField(required=False, choices=[("", "Any state"), *DowngradeState.choices])
    platform = forms.SlugField(required=False, max_length=80)
