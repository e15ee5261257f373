"""Forms of quarantines."""

from typing import Any

from django import forms

from apps.core.filters import FilterForm, search_field
from apps.platforms.models import Platform
from apps.quarantine.enums import ReasonClass, State
from apps.quarantine.services import OWNER_MAX, REASON_MAX, TESTS_MAX
from apps.results.exclusions import PATTERN_MAX


class QuarantineFilterForm(FilterForm):
    """Which quarantines the list shows."""

    platform = forms.SlugField(required=False, max_length=80, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    state = forms.ChoiceField(required=False, choices=[("", "Any"), *State.choices])
    owner = forms.CharField(required=False, max_length=OWNER_MAX)


def _words(label: str, help_text: str, *, required: bool = True) -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=REASON_MAX,
        required=required,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=help_text,
    )


class VerbForm(forms.Form):
    """A verb without more to say."""

    revision = forms.IntegerField(min_value=1, widget=forms.HiddenInput)


class ReasonForm(VerbForm):
    reason = _words("Reason", "Becomes part of the log, for good.")


class InForceForm(VerbForm):
    expires_at = forms.DateField(
        label="Until",
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        input_formats=["%Y-%m-%d"],
        help_text="The end of that day, UTC. Empty: as long as the rules allow.",
    )


class ReleaseForm(ReasonForm):
    fix_sha = forms.RegexField(
        r"^[0-9a-fA-F]{7,40}$",
        label="Fixed by commit",
        required=False,
        help_text="Of upstream's main. Passes on it and on later commits prove the release.",
    )


class NameForm(VerbForm):
    platform = forms.ModelChoiceField(Platform.objects.order_by("name"), to_field_name="slug")


class ProposeForm(forms.Form):
    """A vendor's bulk form: one record for all that is named."""

    variant = forms.CharField(max_length=100, initial="default")
    tests = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text=f"Numbers of tests, as in the address of a test's page, one or more a line; at most {TESTS_MAX}.",
    )
    pattern = forms.CharField(
        required=False,
        max_length=PATTERN_MAX,
        help_text="Instead of tests: file::Class::name with * for any characters.",
    )
    reason_class = forms.ChoiceField(label="Kind", choices=ReasonClass.choices)
    reason = _words("Reason", "What is seen, and what is being done about it.")
    owner = forms.CharField(max_length=OWNER_MAX, help_text="The GitHub login of whoever sees to it.")
    issue_url = forms.CharField(label="Issue", required=False, max_length=300, help_text="An https address.")

    def clean_tests(self) -> list[int]:
        words = self.cleaned_data["tests"].replace(",", " ").split()
        if wrong := [word for word in words if not (word.isascii() and word.isdigit() and len(word) < 19)]:
            raise forms.ValidationError(f"Saw {wrong[0][:40]!r}: send numbers of tests.")
        return [int(word) for word in words]

    def values(self) -> dict[str, Any]:
        """What the service takes."""
        return dict(self.cleaned_data)


class UpstreamFilterForm(FilterForm):
    """Which lines of upstream's list are shown."""

    q = search_field("Name")
    unknown = forms.BooleanField(required=False, label="Only without effect")


class WordForm(forms.Form):
    """What a word of upstream's list means."""

    word = forms.ChoiceField()
    platform = forms.ModelChoiceField(
        Platform.objects.filter(kind=Platform.Kind.IN_TREE).order_by("name"),
        to_field_name="slug",
        required=False,
        empty_label="none of those here",
    )
    reason = _words("Reason", "Becomes part of the log, for good.")

    def __init__(self, words: list[str], *args: Any) -> None:
        super().__init__(*args)
        self.fields["word"].choices = [(word, word) for word in words]  # type: ignore[attr-defined]
