"""A hub that follows an allowlist file: the upstream repository on a stand-in for GitHub, and rounds of the sync.

Apps are imported inside: a conftest.py loads this before settings.
"""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from apps.core import github as core_github
from apps.core.clock import now
from apps.simulator.contents import Pull, RepositoryContents
from apps.simulator.standin import GitHubStandIn

NAME, PATH = "pytorch/pytorch", ".github/allowlist.yml"


@dataclass
class Upstream:
    """The upstream repository, and what the hub makes of it."""

    github: GitHubStandIn
    held: RepositoryContents

    def push(self, text: str | bytes | None) -> str:
        """Put the file on the main branch. Returns the commit."""
        return self.held.push(PATH, text)

    def says(self, text: str, *, at: datetime.datetime | None = None) -> str:
        """Put the file on the main branch, and let the hub look. Returns the commit."""
        sha = self.push(text)
        self.round(at)
        return sha

    def round(self, at: datetime.datetime | None = None) -> None:
        """One round of the sync."""
        from apps.platforms.sync import sync

        sync(now=at or now())

    @property
    def text(self) -> str:
        return self.held.read(PATH).decode()

    def open_pull_requests(self) -> list[str | None]:
        """Open what waits for it. Returns what became of each decision."""
        from apps.platforms.edits import open_pull_request
        from apps.platforms.models import AllowlistEdit

        waiting = AllowlistEdit.objects.filter(state="pending").order_by("pk").values_list("pk", flat=True)
        return [open_pull_request(edit_pk=pk, now=now()) for pk in list(waiting)]

    def demote(self, full_name: str, text: str, *, branch: str = "") -> Pull:
        """Open a pull request as upstream's own script does."""
        branch = branch or f"crcr-demotion/{full_name}"
        self.held.create_branch(branch, self.held.branches()["main"])
        self.held.push(PATH, text, branch=branch)
        return self.held.open_pull(title=f"[CRCR] Demote {full_name} from L3 to L2", head=branch)


@pytest.fixture
def upstream(settings: Any) -> Iterator[Upstream]:
    """The hub follows a file that is not there yet."""
    standin = GitHubStandIn(app_id=settings.GITHUB_APP_ID, app_private_key=settings.GITHUB_APP_PRIVATE_KEY)
    with standin:
        settings.GITHUB_API_URL = standin.url
        settings.ALLOWLIST_AUTHORITY = "file"
        settings.ALLOWLIST_URL = f"https://github.com/{NAME}/blob/main/{PATH}"
        core_github.client.cache_clear()
        standin.add_repository(NAME)
        yield Upstream(standin, standin.contents(NAME))
    core_github.client.cache_clear()
