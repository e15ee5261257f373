"""Deadlines in working days of a declared calendar: weekends, public holidays and substituted working days.

The calendars are the `holidays` package's; their codes are ISO 3166: a country (`CN`) or one of its parts (`DE-BY`).
The empty code is the plain week: Monday to Friday, without holidays.
"""

import datetime

import holidays

from apps.core.errors import Problem

PLAIN_WEEK = ""
CODE_MAX = 10


def deadline(start: datetime.datetime, days: int, calendar: str) -> datetime.datetime:
    """The end, UTC, of the `days`-th working day after the day of `start`: what begins on a Friday with one working day
    ends as Monday does. `days` is 1 or more; `calendar` a code that `checked` took."""
    last = _calendar(calendar).get_nth_working_day(start.astimezone(datetime.UTC).date(), days)
    return datetime.datetime.combine(last, datetime.time(), datetime.UTC) + datetime.timedelta(days=1)


def checked(calendar: str) -> str:
    """The code as it is kept. Raises Problem `malformed`, field `calendar`, for one that no calendar stands behind."""
    code = calendar.strip().upper()
    country, dash, part = code.partition("-")
    parts = holidays.list_supported_countries(include_aliases=False).get(country)
    if code != PLAIN_WEEK and (parts is None or (dash and part not in parts)):
        raise Problem(
            "malformed",
            f"calendar: saw {calendar[:20]!r}, send a country as ISO 3166 spells it (CN, DE), a part of it that has a "
            "calendar of its own (DE-BY), or nothing for Monday to Friday.",
            "calendar",
        )
    return code


def named(calendar: str) -> str:
    """What a calendar is, as people read it."""
    return "working days, Monday to Friday" if calendar == PLAIN_WEEK else f"working days of {calendar}"


def _calendar(code: str) -> holidays.HolidayBase:
    # A fresh one each time: they fill themselves year by year, and threads would share that.
    if code == PLAIN_WEEK:
        return holidays.HolidayBase()
    country, _, part = code.partition("-")
    return holidays.country_holidays(country, subdiv=part or None)
