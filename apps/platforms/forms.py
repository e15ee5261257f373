"""Forms of platforms."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from apps.core.filters import FilterForm, search_field, sort_field
from apps.core.text import HIDDEN_IN_LINE, hidden_finding
from apps.platforms.allowlist import DEVICE
from apps.platforms.models import Platform, Repository
from apps.platforms.policy import LEVELS, STABLE, Level, direct_targets
from apps.platforms.selectors import PlatformFilters
from apps.platforms.services import REASON_MAX


class LevelForm(forms.Form):
    """Say why a repository gets the level that the page shows. Level and the one it was seen at ride along."""

    level = forms.TypedChoiceField(coerce=int, widget=forms.HiddenInput)
    expected_level = forms.IntegerField(min_value=0, max_value=4, widget=forms.HiddenInput)
    device = forms.RegexField(
        rf"\A{DEVICE.pattern}\Z", label="Device", help_text="The word in the label ciflow/crcr/<device>; L3 needs one."
    )
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

    def __init__(self, data: Any = None, *, repository: Repository, target: Level) -> None:
        super().__init__(
            data,
            initial={"level": target.number, "expected_level": repository.level, "device": repository.device},
        )
        self.fields["level"].choices = [(level.number, level.code) for level in direct_targets(repository.level)]  # type: ignore[attr-defined]
        if target.number != STABLE:
            del self.fields["device"]


def visible(value: str) -> None:
    """Refuses what hides or reorders other characters."""
    if finding := hidden_finding(HIDDEN_IN_LINE, value):
        raise ValidationError(finding.capitalize())


class AcceptFileForm(forms.Form):
    """Say why the file that a guard stopped is meant so."""

    alarm = forms.UUIDField(widget=forms.HiddenInput)
    reason = forms.CharField(
        max_length=REASON_MAX,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Becomes part of the public log, for good.",
    )


class RenameForm(forms.Form):
    """What people call a platform, and its word in addresses."""

    name = forms.CharField(max_length=100, validators=[visible])
    slug = forms.SlugField(max_length=80, help_text="Its address: /platforms/<slug>/. Old addresses stop working.")

    def __init__(self, data: Any = None, *, platform: Platform) -> None:
        super().__init__(data, initial={"name": platform.name, "slug": platform.slug})


class RepositoryForm(FilterForm):
    """Which repositories the API lists."""

    q = search_field("Name or repository")
    level = forms.TypedChoiceField(
        required=False,
        coerce=int,
        choices=[("", "Any level"), *((level.number, f"{level.code} {level.name}") for level in LEVELS[1:])],
    )
    kind = forms.ChoiceField(required=False, choices=[("", "Any kind"), *Platform.Kind.choices])

    def filters(self) -> PlatformFilters:
        given = self.given()
        return PlatformFilters(words=given.pop("q", ""), **given)


class DirectoryForm(RepositoryForm):
    """What the directory of platforms shows: the same, in an order."""

    sort = sort_field("name", "level")


class InvitationForm(forms.Form):
    """An invitation to speak for a platform."""

    note = forms.CharField(max_length=100, label="For whom", help_text="A name, so that members know the link by it.")
