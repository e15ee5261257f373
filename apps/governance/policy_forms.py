"""The form that edits a draft of the policy: a row of inputs for each criterion, outcome and limit."""

import datetime
from typing import Any

from django import forms
from django.utils import timezone

from apps.governance.waiving import REASON_MAX
from apps.policies.policy import LIMITS, MEASURES, OUTCOMES, Act, Comparison, Use
from apps.policies.services import TITLE_MAX

_COMPARISONS = [("", "evidence"), *((one.value, one.value) for one in Comparison)]
_ACTS = [(act.value, act.value) for act in Act]
_THEN = [("", "nothing"), (Act.BLOCK.value, Act.BLOCK.value), (Act.PASS.value, Act.PASS.value)]
_ADDED = "added"


class TitleForm(forms.Form):
    """What a draft is called."""

    title = forms.CharField(max_length=TITLE_MAX, help_text="What it is to change, in a few words.")


class DraftForm(forms.Form):
    """All rows of a draft. Values are checked by policies.policy.read, in one place: here they are only gathered."""

    title = forms.CharField(max_length=TITLE_MAX)
    revision = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, values: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._values = values
        for place, row in enumerate(values["criteria"]):
            self._add_criterion(str(place), row)
        self._add_criterion(_ADDED, {})
        for name in OUTCOMES:
            row = values["handling"][name]
            self._add(f"handling-{name}-act", forms.ChoiceField(choices=_ACTS, initial=row["act"], label="Act"))
            self._add(f"handling-{name}-hours", forms.IntegerField(initial=row["hours"], label="Hours"))
            then = forms.ChoiceField(choices=_THEN, required=False, initial=row["then"], label="Then")
            self._add(f"handling-{name}-then", then)
        for name, limit in LIMITS.items():
            number = forms.IntegerField(
                min_value=limit.least, max_value=limit.most, initial=values["limits"][name], label=limit.says
            )
            self._add(f"limits-{name}", number)

    def _add(self, name: str, field: forms.Field) -> None:
        field.widget.attrs.setdefault("aria-label", name.replace("-", " ").replace("_", " "))
        self.fields[name] = field

    def _add_criterion(self, place: str, row: dict[str, Any]) -> None:
        prefix = f"criterion-{place}"
        if not row:
            levels = [("", "no row"), *((str(level), f"L{level}") for level in range(1, 5))]
            self._add(f"{prefix}-level", forms.ChoiceField(choices=levels, required=False))
            uses = [(use.value, use.value) for use in Use]
            self._add(f"{prefix}-use", forms.ChoiceField(choices=uses, required=False))
            measures = [(key, one.title) for key, one in MEASURES.items()]
            self._add(f"{prefix}-measure", forms.ChoiceField(choices=measures, required=False))
            self._add(f"{prefix}-source", forms.CharField(required=False, max_length=100, initial="AccelHub"))
        else:
            self._add(f"{prefix}-keep", forms.BooleanField(required=False, initial=True))
        comparison = forms.ChoiceField(choices=_COMPARISONS, required=False, initial=row.get("comparison", ">="))
        self._add(f"{prefix}-comparison", comparison)
        self._add(f"{prefix}-threshold", forms.CharField(required=False, initial=row.get("threshold", "")))
        self._add(f"{prefix}-window", forms.IntegerField(required=False, initial=row.get("window_days", 0)))

    @property
    def criteria_rows(self) -> list[dict[str, Any]]:
        """For the page: what a row is about, and its inputs."""
        rows = []
        for place, row in enumerate(self._values["criteria"]):
            inputs = {name: self[f"criterion-{place}-{name}"] for name in ("keep", "comparison", "threshold", "window")}
            key = f"L{row['level']}.{row['use']}.{row['measure']}"
            measure = MEASURES[row["measure"]]
            rows.append({"key": key, "measure": measure, "source": row["source"], **inputs})
        return rows

    @property
    def added_row(self) -> dict[str, Any]:
        """For the page: the inputs of the row that is to be added."""
        names = ("level", "use", "measure", "comparison", "threshold", "window", "source")
        return {name: self[f"criterion-{_ADDED}-{name}"] for name in names}

    @property
    def handling_rows(self) -> list[dict[str, Any]]:
        """For the page: each outcome with its inputs."""
        return [
            {"name": name, "says": says, **{part: self[f"handling-{name}-{part}"] for part in ("act", "hours", "then")}}
            for name, says in OUTCOMES.items()
        ]

    @property
    def limit_rows(self) -> list[dict[str, Any]]:
        """For the page: each limit with its input."""
        return [{"name": name, "limit": limit, "input": self[f"limits-{name}"]} for name, limit in LIMITS.items()]

    def values(self) -> dict[str, Any]:
        """The rows as policies.policy.read takes them."""
        given = self.cleaned_data
        criteria = [
            row | self._asked(str(place))
            for place, row in enumerate(self._values["criteria"])
            if given[f"criterion-{place}-keep"]
        ]
        prefix = f"criterion-{_ADDED}"
        if given[f"{prefix}-level"]:
            row = {name: given[f"{prefix}-{name}"] for name in ("use", "measure", "source")}
            criteria.append(row | {"level": int(given[f"{prefix}-level"])} | self._asked(_ADDED))
        return {
            "criteria": criteria,
            "handling": {
                name: {part: given[f"handling-{name}-{part}"] for part in ("act", "hours", "then")} for name in OUTCOMES
            },
            "limits": {name: given[f"limits-{name}"] for name in LIMITS},
        }

    def _asked(self, place: str) -> dict[str, Any]:
        given, prefix = self.cleaned_data, f"criterion-{place}"
        return {
            "comparison": given[f"{prefix}-comparison"],
            "threshold": given[f"{prefix}-threshold"],
            "window_days": given[f"{prefix}-window"] or 0,
        }


class InForceForm(forms.Form):
    """From when a draft holds (UTC; empty: at once), and why."""

    from_at = forms.DateTimeField(
        label="From (UTC)",
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
        help_text="Empty: at once. Decisions made before keep their policy.",
    )
    reason = forms.CharField(
        max_length=REASON_MAX, widget=forms.Textarea(attrs={"rows": 3}), help_text="Public: it stands in the log."
    )
    revision = forms.IntegerField(widget=forms.HiddenInput)

    def clean_from_at(self) -> datetime.datetime | None:
        value = self.cleaned_data["from_at"]
        return timezone.make_aware(value) if value and timezone.is_naive(value) else value
