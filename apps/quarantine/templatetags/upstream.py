"""What upstream says of a test, for pages of rooms below this one."""

from typing import Any

from django import template

from apps.quarantine import upstream_words
from apps.results.models import Test

register = template.Library()


@register.inclusion_tag("quarantine/upstream_of_test.html")
def upstream_disabled(test: Test) -> dict[str, Any]:
    """`{% upstream_disabled test %}`: the lines of upstream's list that name a test; nothing where there is none."""
    return {"disabled": upstream_words.about(test)}
