"""A list's filters, as they stand in its address. Markup: components/filters.html and `{% sort_head %}`."""

from typing import Any

from django import forms


class FilterForm(forms.Form):
    """A GET form. What cannot be read is said at its field and narrows nothing: the page is still a page."""

    use_required_attribute = False

    def given(self) -> dict[str, Any]:
        """The values that could be read and are not empty, by field."""
        self.is_valid()
        return {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}

    @property
    def is_narrowed(self) -> bool:
        """Whether anything but the order was asked for."""
        return any(self.data.get(name) for name in self.fields if name != "sort")


def sort_field(*keys: str) -> forms.ChoiceField:
    """The order of a list: a key, or the key after a minus for the other direction. Empty: the list's own."""
    names = [name for key in keys for name in (key, f"-{key}")]
    return forms.ChoiceField(required=False, choices=[(name, name) for name in names], widget=forms.HiddenInput)


def search_field(label: str) -> forms.CharField:
    """Words to look for."""
    return forms.CharField(
        label=label, required=False, max_length=100, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )


def day_field(label: str) -> forms.DateField:
    """A day, UTC."""
    return forms.DateField(
        label=label,
        required=False,
        input_formats=["%Y-%m-%d"],
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        error_messages={"invalid": "Write a day as 2026-11-30."},
    )
