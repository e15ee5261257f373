"""The upstream repository of the demo: pull requests and pushes, signed and posted to the hub as GitHub posts them.

Event number n follows from the seed, n and the pull requests that are open, so a simulator that comes back goes on
where it stopped. Titles, branches and people are made up.
"""

import datetime
import hashlib
import hmac
import json
import random
import uuid
from dataclasses import asdict, dataclass, field
from typing import Any

import requests

from apps.simulator.chance import chance
from apps.simulator.directory import INSTALLATION_OFFSET
from apps.simulator.loopback import CLOCK_HEADER, send

REPOSITORY_ID = 9_800_000_000
OWNER_ID = 9_700_000_000
INSTALLATION_ID = OWNER_ID + INSTALLATION_OFFSET
CONTRIBUTORS = 9
MOST_OPEN = 8
FEWEST_OPEN = 4
FIRST_NUMBER = 900_001  # above every real pull request, so that no link leads to one
LABELS = (
    "module: nn",
    "module: linalg",
    "release notes: fixes",
    "topic: not user facing",
    "ciflow/crcr/kestrel",
    "ciflow/crcr/wren",
)
VERBS = ("Simplify", "Tighten", "Document", "Speed up", "Split", "Correct", "Cover")
THINGS = (
    "shape checks in linalg.qr",
    "dispatch of masked reductions",
    "error text of mismatched devices",
    "stride handling in interpolate",
    "the storage resize path",
    "dtype promotion of scalar bounds",
    "the generator seed in dropout tests",
    "memory planning of fused pointwise kernels",
)


@dataclass
class PullRequest:
    """An open or lately closed pull request of the fictional history."""

    number: int
    title: str
    login: str
    branch: str
    head_sha: str
    base_sha: str
    labels: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Event:
    """One webhook: GitHub's name of the event, the id of the delivery, and the body."""

    name: str
    delivery_id: str
    body: dict[str, Any]

    def __str__(self) -> str:
        number = self.body.get("number")
        what = f"#{number} {self.body['action']}" if number else self.body.get("ref", "")
        return f"{self.name} {what} ({self.delivery_id})"


class Upstream:
    """Makes events and posts them. Not safe to use from several threads at once."""

    def __init__(self, *, hub_url: str, webhook_secret: str, repository: str, seed: int) -> None:
        self._webhook_url = f"{hub_url}/github/webhook"
        self._secret = webhook_secret
        self._repository = repository
        self._seed = seed
        self._count = 0
        self._next_number = FIRST_NUMBER
        self._main_sha = _sha(chance(seed, "main"))
        self._open: list[PullRequest] = []
        self._closed: list[PullRequest] = []
        self._at: datetime.datetime | None = None

    @property
    def count(self) -> int:
        """How many events it has made."""
        return self._count

    @property
    def main_sha(self) -> str:
        """The newest commit of main."""
        return self._main_sha

    # --- making events ----------------------------------------------------------------------------------------

    def next_event(self, at: datetime.datetime | None = None) -> Event:
        """What happens next: mostly new and updated pull requests, some pushes, now and then a close or a reopen.

        `at`: when, for the times in its body; None: now.
        """
        self._at = at
        rng = chance(self._seed, "event", self._count + 1)
        kind = rng.choices(("opened", "synchronize", "push", "closed", "reopened"), weights=(30, 33, 18, 16, 3))[0]
        if len(self._open) >= MOST_OPEN and kind in {"opened", "reopened"}:
            kind = "closed"
        if len(self._open) < FEWEST_OPEN and kind in {"closed", "synchronize"}:
            kind = "opened"
        if kind == "reopened" and not self._closed:
            kind = "push"
        if kind == "push":
            return self.push()
        if kind == "opened":
            return self.opened()
        pull = rng.choice(self._closed if kind == "reopened" else self._open)
        return {"synchronize": self.synchronize, "closed": self.closed, "reopened": self.reopened}[kind](pull)

    def opened(self) -> Event:
        """Someone opens a pull request."""
        rng, delivery_id = self._begin()
        pull = PullRequest(
            number=self._next_number,
            title=f"{rng.choice(VERBS)} {rng.choice(THINGS)}",
            login=f"demo-contributor-{rng.randint(1, CONTRIBUTORS)}",
            branch=f"demo-change-{self._next_number}",
            head_sha=_sha(rng),
            base_sha=self._main_sha,
            labels=sorted(rng.sample(LABELS, rng.randint(0, 2))),
        )
        self._next_number += 1
        self._open.append(pull)
        return self._pull_request(delivery_id, "opened", pull)

    def synchronize(self, pull: PullRequest) -> Event:
        """Its author pushes another commit."""
        rng, delivery_id = self._begin()
        before, pull.head_sha = pull.head_sha, _sha(rng)
        return self._pull_request(delivery_id, "synchronize", pull, before=before, after=pull.head_sha)

    def closed(self, pull: PullRequest) -> Event:
        """It is merged or given up."""
        _, delivery_id = self._begin()
        self._open.remove(pull)
        self._closed = [*self._closed, pull][-3:]
        return self._pull_request(delivery_id, "closed", pull)

    def reopened(self, pull: PullRequest) -> Event:
        """It was closed too early."""
        _, delivery_id = self._begin()
        self._closed.remove(pull)
        self._open.append(pull)
        return self._pull_request(delivery_id, "reopened", pull)

    def push(self, ref: str = "refs/heads/main") -> Event:
        """A commit lands on `ref`."""
        rng, delivery_id = self._begin()
        before, after = self._main_sha, _sha(rng)
        if ref == "refs/heads/main":
            self._main_sha = after
        login = f"demo-contributor-{rng.randint(1, CONTRIBUTORS)}"
        commit = {
            "id": after,
            "tree_id": _sha(rng),
            "message": f"{rng.choice(VERBS)} {rng.choice(THINGS)} (demo)",
            "timestamp": self._now(),
            "author": {"name": login, "email": f"{login}@example.com", "username": login},
            "added": [],
            "removed": [],
            "modified": ["torch/demo.py"],
        }
        body = {
            "ref": ref,
            "before": before,
            "after": after,
            "created": False,
            "deleted": False,
            "forced": False,
            "base_ref": None,
            "compare": f"https://github.com/{self._repository}/compare/{before[:12]}...{after[:12]}",
            "commits": [commit],
            "head_commit": commit,
            "pusher": {"name": login, "email": f"{login}@example.com"},
        }
        return Event("push", delivery_id, body | self._common(login))

    # --- sending ----------------------------------------------------------------------------------------------

    def send(self, event: Event, at: datetime.datetime | None = None) -> requests.Response:
        """Sign and post a webhook, once: GitHub does not try again either. `at`: the time under which a demo's hub
        shall take it. Raises requests.RequestException."""
        body = json.dumps(event.body).encode()
        clock = {} if at is None else {CLOCK_HEADER: at.isoformat()}
        return send(
            "POST",
            self._webhook_url,
            data=body,
            headers={
                "Content-Type": "application/json",
                "User-Agent": "GitHub-Hookshot/standin",
                "X-GitHub-Event": event.name,
                "X-GitHub-Delivery": event.delivery_id,
                "X-Hub-Signature-256": sign(self._secret, body),
            }
            | clock,
        )

    # --- going on after a restart -----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Where the history stands, as JSON-able data for `restore()`."""
        return {
            "count": self._count,
            "next_number": self._next_number,
            "main_sha": self._main_sha,
            "open": [asdict(pull) for pull in self._open],
            "closed": [asdict(pull) for pull in self._closed],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state()`."""
        self._count = state["count"]
        self._next_number = state["next_number"]
        self._main_sha = state["main_sha"]
        self._open = [PullRequest(**row) for row in state["open"]]
        self._closed = [PullRequest(**row) for row in state["closed"]]

    # --- shapes -----------------------------------------------------------------------------------------------

    def _begin(self) -> tuple[random.Random, str]:
        """The chance and the delivery id of the next event."""
        self._count += 1
        rng = chance(self._seed, "content", self._count)
        return rng, str(uuid.UUID(int=rng.getrandbits(128), version=4))

    def _pull_request(self, delivery_id: str, action: str, pull: PullRequest, **more: str) -> Event:
        url = f"https://github.com/{self._repository}/pull/{pull.number}"
        fork = f"{pull.login}/{self._repository.split('/')[1]}"
        head_repository = {"full_name": fork, "name": fork.split("/")[1], "fork": True, "owner": _user(pull.login)}
        body = {
            "action": action,
            "number": pull.number,
            "pull_request": {
                "id": 9_000_000_000 + pull.number,
                "number": pull.number,
                "state": "closed" if action == "closed" else "open",
                "title": pull.title,
                "body": "Made up for the demo.",
                "draft": False,
                "merged": action == "closed" and pull.number % 4 > 0,
                "html_url": url,
                "url": f"https://api.github.com/repos/{self._repository}/pulls/{pull.number}",
                "user": _user(pull.login),
                "labels": [{"name": label} for label in pull.labels],
                "head": {
                    "label": f"{pull.login}:{pull.branch}",
                    "ref": pull.branch,
                    "sha": pull.head_sha,
                    "user": _user(pull.login),
                    "repo": head_repository,
                },
                "base": {
                    "label": f"{self._repository.split('/')[0]}:main",
                    "ref": "main",
                    "sha": pull.base_sha,
                    "repo": {"full_name": self._repository, "name": self._repository.split("/")[1], "fork": False},
                },
                "author_association": "CONTRIBUTOR",
                "commits": 1,
                "changed_files": 2,
                "additions": 18,
                "deletions": 7,
                "updated_at": self._now(),
            },
        }
        return Event("pull_request", delivery_id, body | more | self._common(pull.login))

    def _now(self) -> str:
        at = self._at or datetime.datetime.now(datetime.UTC)
        return at.isoformat(timespec="seconds").replace("+00:00", "Z")

    def _common(self, sender: str) -> dict[str, Any]:
        owner, name = self._repository.split("/")
        return {
            "repository": {
                "id": REPOSITORY_ID,
                "name": name,
                "full_name": self._repository,
                "private": False,
                "owner": {"login": owner, "id": OWNER_ID, "type": "Organization"},
                "html_url": f"https://github.com/{self._repository}",
                "default_branch": "main",
                "fork": False,
            },
            "sender": _user(sender),
            "installation": {"id": INSTALLATION_ID},
        }


def sign(secret: str, body: bytes) -> str:
    """The value of X-Hub-Signature-256."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def _user(login: str) -> dict[str, Any]:
    digits = "".join(c for c in login if c.isdigit())
    return {"login": login, "id": 9_900_000_000 + int(digits or 0), "type": "User"}


def _sha(rng: random.Random) -> str:
    return f"{rng.getrandbits(160):040x}"
