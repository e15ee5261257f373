"""A dispatch that GitHub redirects: its repository is called otherwise now. Followed where it is the same one."""

import datetime

from apps.core.errors import Problem
from apps.core.github import GitHubRefused, client
from apps.platforms.models import Repository
from apps.platforms.renames import compare_with_github

# What GitHub answers about a former name. A POST is not followed by itself: nothing was dispatched.
MOVED_STATUSES = frozenset({301, 307, 308})


def new_name_of(repository: Repository, *, status: int, now: datetime.datetime) -> str:
    """The name that GitHub has for a listed repository whose name it redirects (`status`); the hub takes it over.

    Raises GitHubUnavailable, and GitHubRefused with what has to happen first: where the repository is another one, has
    another owner, was never pinned, or bears a name that is taken here.
    """
    if repository.github_id is None:
        raise GitHubRefused(status, "the name is redirected, and the repository is not pinned: check the name.")
    found = client().repository_identity(repository.full_name)
    try:
        compare_with_github(repository=repository, found=found, now=now)
    except Problem as problem:
        raise GitHubRefused(status, problem.detail) from problem
    if found.github_id != repository.github_id:
        raise GitHubRefused(status, f"the name leads to {found.full_name}, which is another repository.")
    if found.github_owner_id != repository.github_owner_id:
        raise GitHubRefused(
            status,
            f"it is {found.full_name} now, whose owner nobody has accepted: decide, then send again.",
        )
    return found.full_name
