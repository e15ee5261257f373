"""The token in a dispatch's client_payload, which comes back with the callbacks of its jobs (docs/protocol.md,
"Provenance").

It is public: downstreams print their event to their logs, every job echoes it twice, and so do re-runs. So it proves
nothing alone, and beside a verified OIDC token it shows that this very dispatch reached the workflow that answers.

Signed by Django's own signer: the key is derived from the secret key with a salt of its own, one algorithm, and a
rotated key stays readable through SECRET_KEY_FALLBACKS. The end stands inside, because the hub's clock is passed in.
"""

import datetime

from django.core.signing import BadSignature, Signer

from apps.core.errors import Problem
from apps.relay.enums import Provenance
from apps.relay.policy import STATE_KEPT

FIELD = "dispatch_token"
_SALT = "relay.dispatch"


def issue(*, delivery_id: str, repository_id: int, now: datetime.datetime) -> str:
    """A token for one delivery as sent to one repository (primary key); good for as long as the state is kept."""
    ends_at = int((now + STATE_KEPT).timestamp())
    signed = {"delivery": delivery_id, "repository": repository_id, "ends_at": ends_at}
    return Signer(salt=_SALT).sign_object(signed)


def read(token: str, *, delivery_id: str, repository_id: int, now: datetime.datetime) -> Provenance:
    """What an echoed token ('' for none) shows. Raises Problem `dispatch_token_wrong`."""
    if not token:
        return Provenance.NOT_ECHOED
    try:
        signed = Signer(salt=_SALT).unsign_object(token)
    except BadSignature:
        raise _wrong("its signature does not hold") from None
    if signed["delivery"] != delivery_id:
        raise _wrong("it belongs to another delivery")
    if signed["repository"] != repository_id:
        raise _wrong("it was sent to another repository")
    return Provenance.CONFIRMED if now.timestamp() < signed["ends_at"] else Provenance.EXPIRED


def _wrong(what: str) -> Problem:
    return Problem("dispatch_token_wrong", f"{FIELD}: {what}. Send the client_payload back as it came.", FIELD)
