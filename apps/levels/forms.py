"""Forms of promotions."""

from typing import Any

from django import forms

from apps.core.filters import FilterForm, search_field
from apps.levels.enums import PromotionState
from apps.levels.freezing import Item
from apps.levels.promoting import REASON_MAX, TEXT_MAX, TITLE_MAX, URL_MAX
from apps.levels.promotion_policy import PROMOTED_TO
from apps.platforms.policy import LEVELS
from apps.policies.policy import MEASURES


def _long(label: str, help_text: str = "Public: it stands in the log.", *, required: bool = True) -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=REASON_MAX,
        required=required,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=help_text,
    )


class PromotionFilterForm(FilterForm):
    """Which promotions a list shows."""

    state = forms.ChoiceField(
        required=False, choices=[("", "Any"), *((one.value, one.value) for one in PromotionState)]
    )
    target = forms.TypedChoiceField(
        label="To",
        required=False,
        coerce=int,
        empty_value="",
        choices=[("", "Any"), *((level, LEVELS[level].code) for level in PROMOTED_TO)],
    )
    repository = search_field("Repository")


class OpenForm(forms.Form):
    """Why a repository is to rise, and what is shown by evidence: a title, and a text or an address, for each."""

    reason = _long("Why")

    def __init__(self, measures: list[str], *args: Any, device: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.measures = measures
        if not device:
            self.fields["device"] = forms.CharField(max_length=38, help_text="The word in the label ciflow/crcr/….")
        for measure in measures:
            of = MEASURES[measure].title
            self.fields[f"{measure}_title"] = forms.CharField(label=f"{of}: title", max_length=TITLE_MAX)
            self.fields[f"{measure}_text"] = forms.CharField(
                label=f"{of}: what it shows",
                max_length=TEXT_MAX,
                required=False,
                widget=forms.Textarea(attrs={"rows": 3}),
            )
            self.fields[f"{measure}_url"] = forms.CharField(
                label=f"{of}: address", max_length=URL_MAX, required=False, help_text="The hub opens no link."
            )

    @property
    def items(self) -> tuple[Item, ...]:
        """What was sent, for each measure."""
        said = self.cleaned_data
        return tuple(
            Item(measure, *(said[f"{measure}_{part}"] for part in ("title", "text", "url")))
            for measure in self.measures
        )


class VerbForm(forms.Form):
    """What a verb is told. `revision`: the one that was looked at."""

    revision = forms.IntegerField(min_value=1, max_value=2**31 - 1, widget=forms.HiddenInput)

    def __init__(self, fields: tuple[str, ...], criteria: list[str], *args: Any, notes: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "criterion" in fields:
            self.fields["criterion"] = forms.ChoiceField(choices=[(key, key) for key in criteria])
        if "words" in fields:
            self.fields["words"] = _long("What speaks against it")
        if "reason" in fields:
            self.fields["reason"] = _long("Reason")
        if "note" in fields and notes:
            self.fields["note"] = _long("About what the evidence notes", "What changed, and why it is all right.")
