"""Forms of quarantines."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.html import format_html

from apps.core.filters import FilterForm, search_field
from apps.platforms.models import Platform
from apps.quarantine.enums import ReasonClass, State
from apps.quarantine.naming import resolved
from apps.quarantine.selectors import WAITING
from apps.quarantine.services import OWNER_MAX, REASON_MAX, TESTS_MAX
from apps.results.exclusions import PATTERN_MAX
from apps.results.history import DEFAULT_VARIANT
from apps.results.models import Test

REFUSED_SHOWN = 10


class QuarantineFilterForm(FilterForm):
    """Which quarantines the list shows."""

    platform = forms.SlugField(required=False, max_length=80, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    state = forms.ChoiceField(required=False, choices=[("", "Any"), *State.choices])
    waiting = forms.ChoiceField(
        required=False, choices=[("", "Any"), *((key, words) for key, (_, words) in WAITING.items())]
    )
    owner = forms.CharField(required=False, max_length=OWNER_MAX)


class RegressionFilterForm(FilterForm):
    """Which regressions the list shows."""

    platform = forms.SlugField(required=False, max_length=80, widget=forms.TextInput(attrs={"autocomplete": "off"}))


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


class ReleasedForm(ReasonForm):
    unproven = forms.BooleanField(
        label="Without proof",
        required=False,
        help_text="For one that should never have been in force. The log says so.",
    )


class NameForm(VerbForm):
    platform = forms.ModelChoiceField(Platform.objects.order_by("name"), to_field_name="slug")


def _label_of(test: Test) -> str:
    place = " · ".join(part for part in (test.file, test.class_name) if part)
    return format_html('<span class="mono">{}<span class="sub">{}</span></span>', test.name or "(no name)", place)


class ProposeForm(forms.Form):
    """A vendor's bulk form: one record for all that is named. With a report its red and flaky tests can be picked."""

    variant = forms.CharField(max_length=100, initial=DEFAULT_VARIANT)
    tests = forms.CharField(
        label="Tests",
        required=False,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
        help_text=f"One a line, at most {TESTS_MAX:,}: file::Class::name, name (module.Class), a name alone, or a "
        "number as in the address of a test's page. Names are looked for in the platform's last report.",
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

    def __init__(self, data: Any = None, *, platform: Platform, offered: Sequence[Test] = (), initial: Any = None):
        super().__init__(data, initial=initial)
        self.platform = platform
        if offered:
            choices = [(test.pk, _label_of(test)) for test in offered]
            self.fields["picked"] = forms.TypedMultipleChoiceField(
                label="Red and flaky in the report",
                required=False,
                coerce=int,
                choices=choices,
                widget=forms.CheckboxSelectMultiple,
            )
            self.order_fields(["picked"])

    def clean(self) -> dict[str, Any]:
        said = super().clean() or {}
        picked = said.pop("picked", [])
        if {"tests", "variant"} <= said.keys():
            found = resolved(said["tests"].splitlines(), self.platform, said["variant"])
            for sentence in found.refused[:REFUSED_SHOWN]:
                self.add_error("tests", sentence)
            if (more := len(found.refused) - REFUSED_SHOWN) > 0:
                self.add_error("tests", f"And {more:,} more lines.")
            said["tests"] = sorted({*picked, *found.tests})
        return said

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
