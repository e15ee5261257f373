"""Tags of lists: heads that sort."""

from collections.abc import Mapping
from typing import Any

from django import template

register = template.Library()


@register.inclusion_tag("components/sort_head.html", takes_context=True)
def sort_head(
    context: Mapping[str, Any], key: str, text: str, target: str, sort: str, classes: str = "", descends: bool = False
) -> dict[str, object]:
    """`{% sort_head "count" "Count" "refusals" sort "num w10" descends=True %}`: a head that orders its list.

    `sort` is the order in force; `descends`: the first click shows the largest first. A click on the current order
    turns it round, and leaves the page number behind.
    """
    direction = {key: "ascending", f"-{key}": "descending"}.get(sort, "")
    turned = {"ascending": f"-{key}", "descending": key}.get(direction, f"-{key}" if descends else key)
    query = context["request"].GET.copy()
    query["sort"] = turned
    query.pop("page", None)
    href = f"?{query.urlencode()}"
    return {"text": text, "href": href, "target": target, "direction": direction, "classes": classes}
