"""Forms of platforms."""

from typing import Any

from django import forms

from apps.platforms.models import Platform, Repository
from apps.platforms.policy import direct_targets
from apps.platforms.services import REASON_MAX


class LevelForm(forms.Form):
    """Choose a level that can be set directly, and say why."""

    level = forms.TypedChoiceField(coerce=int, label="New level")
    reason = forms.CharField(
        max_length=REASON_MAX,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="Becomes part of the public log, for good.",
    )
    evidence = forms.CharField(
        max_length=REASON_MAX,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Links or figures that the decision rests on. Public as well.",
    )
    device = forms.RegexField(
        r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,59}$",
        required=False,
        help_text="The word in the label ciflow/crcr/<device>; L3 needs one.",
    )
    expected_level = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, repository: Repository, **kwargs: Any) -> None:
        initial = {"device": repository.device, "expected_level": repository.level} | (
            kwargs.pop("initial", None) or {}
        )
        super().__init__(*args, initial=initial, **kwargs)
        targets = direct_targets(repository.level)
        self.fields["level"].choices = [(level.number, f"{level.code} {level.name}") for level in targets]  # type: ignore[attr-defined]
        if all(level.number != 3 for level in targets):
            del self.fields["device"]


class RenameForm(forms.Form):
    """What people call a platform, and its word in addresses."""

    name = forms.CharField(max_length=100)
    slug = forms.SlugField(max_length=80, help_text="Its address: /platforms/<slug>/. Old addresses stop working.")

    def __init__(self, data: Any = None, *, platform: Platform) -> None:
        super().__init__(data, initial={"name": platform.name, "slug": platform.slug})
