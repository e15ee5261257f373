"""What a replaying downstream sends after a job's end, and should not: the hub answers, refuses and counts it."""

import uuid
from dataclasses import dataclass
from typing import Any

_NAMES = uuid.UUID("d0c8a3a4-5f0e-4e43-9a59-0d1c7d9f4b6e")


@dataclass(frozen=True)
class Replay:
    """One more callback. Without `has_own_token` it comes with the token of the end that it follows."""

    body: dict[str, Any]
    has_own_token: bool = False


def replays_of(body: dict[str, Any]) -> tuple[Replay, ...]:
    """After an end's `body`: the same again (a duplicate), the same token with another body (409), and the answer to a
    delivery that nobody sent (403)."""
    workflow = body["workflow"]
    other = "failure" if workflow["conclusion"] == "success" else "success"
    return (
        Replay(body),
        Replay(body | {"workflow": workflow | {"conclusion": other}}),
        Replay(body | {"delivery_id": str(uuid.uuid5(_NAMES, str(body["delivery_id"])))}, has_own_token=True),
    )
