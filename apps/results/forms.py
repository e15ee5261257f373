"""Filters of the lists about tests."""

from django import forms

from apps.core.filters import FilterForm, search_field
from apps.results.formats.cases import Outcome
from apps.results.skips import SkipClass

FOUND = (Outcome.FAILED, Outcome.ERROR, Outcome.LOST, Outcome.XPASSED, Outcome.FLAKY)


class FindingForm(FilterForm):
    """A report's findings."""

    outcome = forms.ChoiceField(
        label="Outcome", required=False, choices=[("", "any"), *((one.label, one.label) for one in FOUND)]
    )

    quarantined = forms.ChoiceField(
        label="In quarantine", required=False, choices=[("", "any"), ("yes", "yes"), ("no", "no")]
    )

    def chosen(self) -> dict[str, str]:
        """What report_selectors.findings_found takes."""
        return {name: str(value) for name, value in self.given().items()}


class SkipForm(FilterForm):
    """A report's skips; `reason` is the number of one."""

    reason = forms.IntegerField(required=False, widget=forms.HiddenInput)


SkipForm.base_fields["class"] = forms.ChoiceField(
    label="Class",
    required=False,
    choices=[("", "any"), *((one.value, one.value.replace("_", " ")) for one in SkipClass)],
)


class TestSearchForm(FilterForm):
    """Words of a test's file, class and name."""

    __test__ = False
    q = search_field("Words of its file, class and name")

    def words(self) -> str:
        return str(self.given().get("q", ""))
