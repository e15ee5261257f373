"""A question to the hub's API, and the object that it answers."""

from typing import Any

from accelhub_client.ci import Environment
from accelhub_client.exits import Stop
from accelhub_client.refusals import sentence
from accelhub_client.retries import retried
from accelhub_client.transport import Address, Answer, get

_MEMBERS = "  below L2 what a platform reports is its members' own: set ACCELHUB_API_TOKEN"


def ask(what: str, hub: Address, path: str, environment: Environment) -> dict[str, Any]:
    """What the hub answers at a path of its own. Raises Stop `refused`, `unavailable`.

    Below L2 results are for the platform's members: ACCELHUB_API_TOKEN, of the hub's /account/, says who asks.
    """
    headers = {"Accept": "application/json"}
    if environment.get("ACCELHUB_API_TOKEN"):
        headers["Authorization"] = f"Bearer {environment['ACCELHUB_API_TOKEN'].strip()}"
    return retried(what, lambda: get(hub.at(path), headers), _read)


def _read(answer: Answer) -> dict[str, Any]:
    if answer.status == 404:
        raise Stop("refused", f"{sentence(answer)}\n{_MEMBERS}")
    if answer.status >= 400:
        raise Stop("refused", sentence(answer))
    return answer.json()
