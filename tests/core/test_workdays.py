"""Working days of a declared calendar, over weekends, holidays and substituted working days."""

import datetime

import pytest

from apps.core.errors import Problem
from apps.core.workdays import checked, deadline


def _at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("start", "days", "calendar", "end"),
    [
        # A Friday: one working day is all of Monday.
        ("2026-12-04T18:00", 1, "", "2026-12-08T00:00"),
        ("2026-12-05T00:00", 1, "", "2026-12-08T00:00"),
        ("2026-12-07T23:59", 2, "", "2026-12-10T00:00"),
        # The plain week knows no Christmas, Germany's does.
        ("2026-12-24T10:00", 1, "", "2026-12-26T00:00"),
        ("2026-12-24T10:00", 1, "DE", "2026-12-29T00:00"),
        # Epiphany is a holiday in Bavaria only.
        ("2026-01-05T10:00", 1, "DE", "2026-01-07T00:00"),
        ("2026-01-05T10:00", 1, "DE-BY", "2026-01-08T00:00"),
        # China's spring festival, with the Saturday before it worked.
        ("2026-02-13T10:00", 1, "CN", "2026-02-15T00:00"),
        ("2026-02-14T10:00", 1, "CN", "2026-02-25T00:00"),
    ],
)
def test_a_deadline_is_the_end_of_the_working_day(start: str, days: int, calendar: str, end: str) -> None:
    assert deadline(_at(start), days, calendar) == _at(end)


def test_a_calendar_is_a_country_or_a_part_of_it() -> None:
    assert [checked(code) for code in ("", " cn ", "DE-BY")] == ["", "CN", "DE-BY"]
    for code in ("QQ", "CN-XX", "Germany", "-BY", "DE-"):
        with pytest.raises(Problem) as refused:
            checked(code)
        assert (refused.value.code, refused.value.field) == ("malformed", "calendar")
