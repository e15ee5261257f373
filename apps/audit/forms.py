"""Forms of the log."""

from typing import Any

from django import forms

from apps.audit.enums import Action
from apps.audit.selectors import DecisionFilters
from apps.core.filters import FilterForm, day_field, search_field

# Grants, seats and tokens are in the log and never among the public decisions: nobody looks for them here.
DECISIVE = [action for action in Action if not action.value.startswith("user.") and ".member_" not in action.value]


# The kinds of what decisions are about: the nouns of what can be one.
SUBJECT_NAMES = {"ruleversion": "rules", "check": "check run"}
SUBJECTS = sorted({action.value.partition(".")[0] for action in DECISIVE})


class DecisionForm(FilterForm):
    """Which decisions the list shows."""

    about = search_field("Platform or repository")
    subject = forms.ChoiceField(
        label="Kind",
        required=False,
        choices=[("", "Any"), *((kind, SUBJECT_NAMES.get(kind, kind)) for kind in SUBJECTS)],
    )
    action = forms.ChoiceField(
        required=False, choices=[("", "Any"), *((action.value, action.label) for action in DECISIVE)]
    )
    actor = search_field("Decided by")
    since = day_field("From")
    until = day_field("To")

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if values.get("since") and values.get("until") and values["since"] > values["until"]:
            self.add_error("until", "Give a day that is not before “From”.")
        return values

    def filters(self) -> DecisionFilters:
        return DecisionFilters(**self.given())
