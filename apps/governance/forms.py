"""Forms of proposals. What a proposal may say stands in policy.findings; forms put its words beside their fields."""

from typing import Any

from django import forms

from apps.governance import policy
from apps.governance.models import Proposal
from apps.governance.policy import Draft, Item
from apps.governance.selectors import evidence_of
from apps.platforms.policy import EVENTS

SLOTS = 3  # for new items; who needs more comes back for them


class ProposalForm(forms.Form):
    """Everything but the evidence."""

    platform_name = forms.CharField(
        max_length=policy.NAME_MAX, help_text="What people call the accelerator. Public once accepted."
    )
    full_name = forms.CharField(
        label="Downstream repository",
        max_length=policy.FULL_NAME_MAX,
        help_text="owner/name, as on GitHub. Public once accepted.",
    )
    oncalls = forms.CharField(
        max_length=500,
        help_text="GitHub logins of who answers when the CI breaks, a comma between two. Public once accepted.",
    )
    events = forms.MultipleChoiceField(
        label="Takes part in",
        choices=[(event, event) for event in EVENTS],
        widget=forms.CheckboxSelectMultiple,
        help_text="The upstream events that are sent to the repository.",
    )
    device = forms.CharField(
        max_length=policy.DEVICE_MAX,
        required=False,
        help_text="The word in the label ciflow/crcr/<device>. Needed at L3, can be named later.",
    )
    contact = forms.EmailField(
        label="Contact",
        max_length=policy.CONTACT_MAX,
        help_text="An e-mail address. Only you and the maintainers see it; it gets an e-mail when they have decided.",
    )


class ChangesForm(forms.Form):
    """What a resubmission says besides."""

    words = forms.CharField(
        label="What changed",
        max_length=policy.WORDS_MAX,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Part of the proposal's history.",
    )
    revision = forms.IntegerField(min_value=1, widget=forms.HiddenInput)


class EvidenceForm(forms.Form):
    """One item. An item that is left empty, or was emptied, is none."""

    title = forms.CharField(max_length=policy.TITLE_MAX)
    text = forms.CharField(
        max_length=policy.TEXT_MAX,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="What the hardware is, where CI runs on it, how others can check that.",
    )
    url = forms.CharField(
        label="Link",
        max_length=policy.URL_MAX,
        required=False,
        widget=forms.URLInput,
        help_text="https://… The hub never opens it; a maintainer may.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.empty_permitted = True

    def has_changed(self) -> bool:
        return any(self[name].data for name in self.fields)


_EvidenceFormSet = forms.formset_factory(
    EvidenceForm, extra=SLOTS, max_num=policy.EVIDENCE_MAX, absolute_max=policy.EVIDENCE_MAX, validate_max=True
)


_INCOMPLETE = {
    "missing_management_form": "The form arrived incomplete: reload the page and send it again.",
    "too_many_forms": f"Give at most {policy.EVIDENCE_MAX} items of evidence.",
}


class DraftForms:
    """The forms of one page, read together. After `is_valid`, `draft` holds what was said."""

    def __init__(self, data: Any = None, *, initial: dict[str, Any], items: list[dict[str, Any]]) -> None:
        self.main = ProposalForm(data, initial=initial)
        self.evidence = _EvidenceFormSet(data, initial=items, prefix="evidence", error_messages=_INCOMPLETE)
        self.draft: Draft | None = None

    @classmethod
    def of(cls, proposal: Proposal, data: Any = None) -> "DraftForms":
        """The forms filled with a proposal as it is."""
        names = ("platform_name", "full_name", "events", "device", "contact")
        initial = {name: getattr(proposal, name) for name in names} | {"oncalls": ", ".join(proposal.oncalls)}
        items = [{"title": item.title, "text": item.text, "url": item.url} for item in evidence_of(proposal)]
        return cls(data, initial=initial, items=items)

    def is_valid(self) -> bool:
        # Both are asked, so that all errors are shown at once.
        if not all([self.main.is_valid(), self.evidence.is_valid()]):
            return False
        values = self.main.cleaned_data
        items = [(form, form.cleaned_data) for form in self.evidence if any(form.cleaned_data.values())]
        self.draft = Draft(
            platform_name=values["platform_name"],
            full_name=values["full_name"],
            device=values["device"],
            oncalls=tuple(filter(None, (login.strip() for login in values["oncalls"].split(",")))),
            events=tuple(values["events"]),
            contact=values["contact"],
            evidence=tuple(Item(said["title"], said["text"], said["url"]) for _, said in items),
        )
        found = policy.findings(self.draft)
        for finding in found:
            self._show(finding, [form for form, _ in items])
        return not found

    def _show(self, finding: policy.Finding, forms_of_items: list[forms.Form]) -> None:
        name, _, rest = finding.field.partition(".")
        if name != "evidence":
            self.main.add_error(name, finding.text)
        elif rest:
            position, _, field = rest.partition(".")
            forms_of_items[int(position)].add_error(field, finding.text)
        else:
            self.main.add_error(None, f"Evidence: {finding.text}")

    def refuse(self, field: str | None, detail: str) -> None:
        """Show what a service refused."""
        self.main.add_error(field if field in self.main.fields else None, detail)


class _WordsForm(forms.Form):
    """What a decision says, and the submission that it is about."""

    revision = forms.IntegerField(min_value=1, widget=forms.HiddenInput)


def _words_field(label: str, help_text: str, *, required: bool) -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=policy.WORDS_MAX,
        required=required,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=help_text,
    )


class AcceptForm(_WordsForm):
    reason = _words_field("Reason", "Becomes part of the public log, for good.", required=True)


class ReturnForm(_WordsForm):
    words = _words_field("What is missing", "The vendor reads it here and by e-mail.", required=True)


class WithdrawForm(_WordsForm):
    words = _words_field("Why", "Part of the proposal's history.", required=False)
