"""Forms of users."""

from typing import Any

from django import forms

from apps.accounts.models import Organisation, User
from apps.accounts.policy import GRANTABLE, Role
from apps.accounts.services import REASON_MAX


def _reason() -> forms.CharField:
    return forms.CharField(
        max_length=REASON_MAX,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Kept in the log, for good. It is not among the public decisions.",
    )


class GrantForm(forms.Form):
    """Give a user a role that they do not have by hand yet."""

    role = forms.TypedChoiceField(coerce=Role, choices=[(role.value, role.label) for role in GRANTABLE])
    reason = _reason()


class RemoveForm(forms.Form):
    """Take a role from a user."""

    role = forms.TypedChoiceField(coerce=Role, choices=[(role.value, role.label) for role in GRANTABLE])
    reason = _reason()

    def __init__(self, data: Any = None, *, roles: list[Role]) -> None:
        super().__init__(data, auto_id="remove-%s")
        self.fields["role"].choices = [(role.value, role.label) for role in roles]  # type: ignore[attr-defined]


class SeatForm(forms.Form):
    """Say whom a user works for."""

    organisation = forms.ModelChoiceField(Organisation.objects.order_by("name"), required=False, empty_label="None")
    reason = _reason()

    def __init__(self, data: Any = None, *, user: User) -> None:
        super().__init__(data, auto_id="seat-%s", initial={"organisation": user.organisation_id})


class SwitchForm(forms.Form):
    """Switch an account off, or on again."""

    reason = _reason()


class OrganisationForm(forms.Form):
    """A new organisation."""

    name = forms.CharField(max_length=100)
    slug = forms.SlugField(max_length=80, help_text="A short word for it, in lower case.")


class TokenForm(forms.Form):
    """A new API token."""

    note = forms.CharField(max_length=100, help_text="What it is for, so that you can tell it from others.")
