"""What the ORM's own lookups say too dearly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import BooleanField, F, Field, Func, Q, Value


class _AnyOf(Func):
    template = "%(expressions)s)"
    arg_joiner = " = ANY("
    output_field = BooleanField()


def any_of(column: str, values: Iterable[Any], kind: Field[Any, Any]) -> Func | Q:
    """A condition: the column is one of the values, which travel as one array of `kind`; none is asked for where there
    are none. `__in` makes a parameter of each: with thousands of them that costs more than the rows."""
    wanted = list(values)
    return _AnyOf(F(column), Value(wanted, output_field=ArrayField(kind))) if wanted else Q(pk__in=[])
