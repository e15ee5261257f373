"""What a downstream gets with its repository_dispatch, and how it is kept within GitHub's limits."""

import datetime
import json
from typing import Any

from apps.relay import provenance
from apps.relay.models import Dispatch
from apps.relay.policy import PULL_REQUEST, PUSH

# GitHub refuses a client_payload that is larger, or has more than ten keys at its top (ours has four).
LIMIT_BYTES = 65_535
# In `payload` of a trimmed one: how large it would have been, and that limit.
MARK = "trimmed_by_accelhub"

_WHOLE = True
# What downstreams read of a webhook: all that is left of one that does not fit. A list's shape is that of its items.
KEPT: dict[str, Any] = {
    PULL_REQUEST: {
        "action": _WHOLE,
        "number": _WHOLE,
        "repository": {"full_name": _WHOLE},
        "label": {"name": _WHOLE},
        "pull_request": {
            "number": _WHOLE,
            "title": _WHOLE,
            "head": {"sha": _WHOLE, "ref": _WHOLE, "repo": {"full_name": _WHOLE}},
            "base": {"ref": _WHOLE, "sha": _WHOLE},
            "labels": [{"name": _WHOLE}],
            "user": {"login": _WHOLE},
        },
    },
    PUSH: {
        "repository": {"full_name": _WHOLE},
        "ref": _WHOLE,
        "before": _WHOLE,
        "after": _WHOLE,
        "deleted": _WHOLE,
        "base_ref": _WHOLE,
    },
}


def client_payload(dispatch: Dispatch, *, now: datetime.datetime) -> dict[str, Any]:
    """The whole client_payload of a dispatch (docs/protocol.md, "Dispatch"): its keys are what a callback echoes.

    Where it is larger than GitHub takes, `payload` is cut to KEPT and says so under MARK.
    """
    delivery = dispatch.delivery
    made = {
        "event_type": delivery.event,
        "delivery_id": delivery.delivery_id,
        provenance.FIELD: provenance.issue(
            delivery_id=delivery.delivery_id, repository_id=dispatch.repository_id, now=now
        ),
        "payload": json.loads(delivery.body),
    }
    return fitted(made)


def fitted(made: dict[str, Any]) -> dict[str, Any]:
    """The client_payload itself where it fits, else the same with its `payload` trimmed and marked."""
    size = size_of(made)
    if size <= LIMIT_BYTES:
        return made
    kept = _kept(made["payload"], KEPT[made["event_type"]])
    return made | {"payload": kept | {MARK: {"bytes": size, "limit": LIMIT_BYTES}}}


def size_of(made: dict[str, Any]) -> int:
    """Bytes on the wire: as the GitHub client spells JSON, in ASCII and with spaces."""
    return len(json.dumps(made))


def _kept(value: Any, shape: Any) -> Any:
    """The part of a JSON value that a shape names; null for what is of another kind than the shape."""
    if shape is _WHOLE:
        return value
    if isinstance(shape, list):
        return [_kept(item, shape[0]) for item in value] if isinstance(value, list) else None
    if not isinstance(value, dict):
        return None
    return {name: _kept(value[name], below) for name, below in shape.items() if name in value}
