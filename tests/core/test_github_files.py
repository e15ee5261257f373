"""The hub's client and the stand-in on files, branches and pull requests: each holds the other to GitHub's manners."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings

from apps.core.github import GitHubClient, GitHubRefused, GitHubUnavailable
from apps.core.github_files import Blob, RepositoryFiles
from apps.simulator.contents import RepositoryContents, blob_sha
from apps.simulator.standin import GitHubStandIn

UPSTREAM, PATH = "pytorch/pytorch", ".github/allow list.yml"


@pytest.fixture
def github() -> Iterator[GitHubStandIn]:
    with GitHubStandIn(app_id=settings.GITHUB_APP_ID, app_private_key=settings.GITHUB_APP_PRIVATE_KEY) as standin:
        standin.add_repository(UPSTREAM)
        yield standin


@pytest.fixture
def held(github: GitHubStandIn) -> RepositoryContents:
    return github.contents(UPSTREAM)


@pytest.fixture
def files(github: GitHubStandIn) -> RepositoryFiles:
    return RepositoryFiles(_client(github), UPSTREAM)


def _client(github: GitHubStandIn) -> GitHubClient:
    return GitHubClient(api_url=github.url, app_id=settings.GITHUB_APP_ID, private_key=settings.GITHUB_APP_PRIVATE_KEY)


def test_a_file_is_read_as_its_newest_commit_has_it(files: RepositoryFiles, held: RepositoryContents) -> None:
    first = held.push(PATH, "one\n")
    second = held.push(PATH, "zwei é\n")
    held.push("README.md", "another file")
    commit = files.newest_commit(PATH, branch="main")
    assert (commit.sha, commit.at.tzinfo is not None) == (second, True)
    assert files.read(PATH, ref=second) == Blob(blob_sha("zwei é\n".encode()), "zwei é\n".encode())
    assert files.read(PATH, ref=first).content == b"one\n"


def test_the_ids_of_content_are_gits() -> None:
    assert blob_sha(b"what is up, doc?") == "bd9dbf5aae1a3862dd1526723246b20206e5fc37"


def test_an_edit_goes_by_a_branch_and_a_pull_request(files: RepositoryFiles, held: RepositoryContents) -> None:
    base = held.push(PATH, "one\n")
    assert (files.branch_head("main"), files.branch_head("hub/edit")) == (base, None)
    files.create_branch("hub/edit", sha=base)
    files.write(PATH, b"two\n", branch="hub/edit", replaces=blob_sha(b"one\n"), message="say two")
    assert (held.read(PATH), held.read(PATH, branch="hub/edit")) == (b"one\n", b"two\n")
    assert files.branches("hub/", limit=5) == ["hub/edit"]
    assert files.branches("hub/", limit=0) == files.branches("other/", limit=5) == []
    assert files.pull_of_branch("hub/edit") is None
    opened = files.open_pull(title="Say two", body="Because.", branch="hub/edit", base="main")
    assert (opened.number, opened.url, opened.title, opened.is_open, opened.is_merged, opened.merge_sha) == (
        *(1, "https://github.com/pytorch/pytorch/pull/1", "Say two", True, False),
        "",
    )
    assert files.pull_of_branch("hub/edit") == files.pull(1) == opened
    assert (held.pulls[0].body, held.pulls[0].base) == ("Because.", "main")
    sha = held.merge(1)
    merged = files.pull(1)
    assert (merged.is_open, merged.is_merged, merged.merge_sha) == (False, True, sha)
    assert files.pull_of_branch("hub/edit", state="open") is None
    assert (held.read(PATH), files.newest_commit(PATH, branch="main").sha) == (b"two\n", sha)


def test_what_a_bot_landed_is_closed_and_not_merged(files: RepositoryFiles, held: RepositoryContents) -> None:
    files.create_branch("edit", sha=held.push(PATH, "one\n"))
    files.write(PATH, b"two\n", branch="edit", replaces=blob_sha(b"one\n"), message="say two")
    files.open_pull(title="Say two", body="", branch="edit", base="main")
    held.land(1)
    landed = files.pull(1)
    assert (landed.is_open, landed.is_merged, held.read(PATH)) == (False, False, b"two\n")


REFUSED: dict[str, tuple[int, Callable[[RepositoryFiles, str], Any]]] = {
    "no such file": (404, lambda files, base: files.newest_commit("nothing.yml", branch="main")),
    "no such file to read": (404, lambda files, base: files.read("nothing.yml", ref="main")),
    "no such branch": (404, lambda files, base: files.newest_commit(PATH, branch="nothing")),
    "too large": (413, lambda files, base: files.read("large.yml", ref="main")),
    "a branch twice": (422, lambda files, base: files.create_branch("main", sha=base)),
    "no such commit": (422, lambda files, base: files.create_branch("new", sha="0" * 40)),
    "an old blob": (
        409,
        lambda files, base: files.write(PATH, b"x", branch="main", replaces="0" * 40, message="x"),
    ),
    "nothing to pull": (422, lambda files, base: files.open_pull(title="x", body="", branch="same", base="main")),
    "no such pull request": (404, lambda files, base: files.pull(7)),
}


@pytest.mark.parametrize(("status", "ask"), REFUSED.values(), ids=REFUSED)
def test_what_github_refuses(
    files: RepositoryFiles, held: RepositoryContents, status: int, ask: Callable[[RepositoryFiles, str], Any]
) -> None:
    held.push("large.yml", "x" * 1_000_001)
    base = held.push(PATH, "one\n")
    held.create_branch("same", base)
    with pytest.raises(GitHubRefused) as caught:
        ask(files, base)
    assert caught.value.status == status


def test_who_may_not_write_is_refused(github: GitHubStandIn, held: RepositoryContents) -> None:
    base = held.push(PATH, "one\n")
    files = RepositoryFiles(_client(github), UPSTREAM)
    files.read(PATH, ref="main")  # the token is fetched while the App is installed
    github.add_repository(UPSTREAM, installed=False)
    for write in (
        lambda: files.create_branch("new", sha=base),
        lambda: files.write(PATH, b"x", branch="main", replaces=blob_sha(b"one\n"), message="x"),
        lambda: files.open_pull(title="x", body="", branch="main", base="main"),
    ):
        with pytest.raises(GitHubRefused) as caught:
            write()
        assert caught.value.status == 403


@pytest.mark.parametrize("status", [500, 502, 503, 0])
def test_a_github_that_does_not_answer_is_asked_again(
    github: GitHubStandIn, files: RepositoryFiles, held: RepositoryContents, status: int
) -> None:
    sha = held.push(PATH, "one\n")
    github.fail(r"/commits", status)
    with pytest.raises(GitHubUnavailable):
        files.newest_commit(PATH, branch="main")
    assert files.newest_commit(PATH, branch="main").sha == sha


def test_a_token_that_github_takes_back_is_not_kept(
    github: GitHubStandIn, files: RepositoryFiles, held: RepositoryContents
) -> None:
    sha = held.push(PATH, "one\n")
    assert files.newest_commit(PATH, branch="main").sha == sha
    github.fail(r"/commits", 401, times=2, message="Bad credentials")
    with pytest.raises(GitHubUnavailable):
        files.newest_commit(PATH, branch="main")
    before = sum("access_tokens" in request.path for request in github.requests)
    assert files.newest_commit(PATH, branch="main").sha == sha
    assert sum("access_tokens" in request.path for request in github.requests) == before + 1
