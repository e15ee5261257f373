"""End every open check run of ours on upstream's pull requests as neutral, without the hub.

For the hour in which the hub is down or wrong and its check runs hold up merges. It needs the GitHub App's id and key
and GitHub's API, and nothing else: no database, no Redis, no settings, no Django.

    python break_glass.py --reason "the hub's database is being restored"

It reads what the hub reads: ACCELHUB_GITHUB_APP_ID, ACCELHUB_GITHUB_APP_PRIVATE_KEY (each also as NAME_FILE),
ACCELHUB_GITHUB_API_URL, ACCELHUB_UPSTREAM_REPO. Looks at the head of every open pull request, and at each --sha.
Exit status: 0 all are over, 1 some are not (run it again), 2 it could not begin.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jwt
import requests

TIMEOUT_SECONDS = 10
ATTEMPTS = 3
PAUSE_SECONDS = 2.0
AT_ONCE = 8
PAGE = 100
APP_JWT_SECONDS = 540  # GitHub takes at most ten minutes
TITLE = "Ended by the hub's operators"


class GitHub:
    """The App's installation on one repository."""

    def __init__(self, api_url: str, app_id: str, private_key: str, repository: str) -> None:
        self._api_url, self.repository = api_url.rstrip("/"), repository
        now = int(time.time())
        claims = {"iat": now - 60, "exp": now + APP_JWT_SECONDS, "iss": app_id}
        self._token = jwt.encode(claims, private_key, algorithm="RS256")
        # The App's number: a check run of any other App is none of ours.
        self._app_number = self.ask("GET", "/app")["id"]
        installation = self.ask("GET", f"/repos/{repository}/installation")["id"]
        self._token = self.ask("POST", f"/app/installations/{installation}/access_tokens")["token"]

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One request, again where GitHub did not take it. Raises requests.RequestException."""
        for left in reversed(range(ATTEMPTS)):
            try:
                answer = requests.request(
                    method,
                    self._api_url + path,
                    json=body,
                    headers={"Authorization": f"Bearer {self._token}", "Accept": "application/vnd.github+json"},
                    timeout=TIMEOUT_SECONDS,
                )
                answer.raise_for_status()
                return answer.json()
            except requests.RequestException as error:
                status = error.response.status_code if error.response is not None else 0
                if not left or (400 <= status < 500 and status not in (403, 429)):
                    raise
                time.sleep(PAUSE_SECONDS)
        raise AssertionError("the last attempt returns or raises")

    def heads(self) -> Iterator[str]:
        """The commits that open pull requests stand at."""
        for pull in self._pages(f"/repos/{self.repository}/pulls?state=open"):
            yield pull["head"]["sha"]

    def open_check_runs(self, sha: str) -> list[dict[str, Any]]:
        """Ours at a commit that are not over, hidden older ones of a name included."""
        found = self._pages(f"/repos/{self.repository}/commits/{sha}/check-runs?filter=all", "check_runs")
        # Of an App that is gone GitHub says null.
        return [
            run for run in found if run["status"] != "completed" and (run["app"] or {}).get("id") == self._app_number
        ]

    def end(self, run: dict[str, Any], reason: str) -> None:
        """Complete a check run as neutral."""
        output = {"title": TITLE, "summary": f"**{TITLE}.**\n\n{reason}\n\nIt ended without a verdict on the change."}
        body = {"status": "completed", "conclusion": "neutral", "output": output}
        self.ask("PATCH", f"/repos/{self.repository}/check-runs/{run['id']}", body)

    def _pages(self, path: str, key: str = "") -> Iterator[dict[str, Any]]:
        page = 1
        while True:
            answer = self.ask("GET", f"{path}&per_page={PAGE}&page={page}")
            rows = answer[key] if key else answer
            yield from rows
            if len(rows) < PAGE:
                return
            page += 1


def setting(name: str, default: str = "") -> str:
    """A variable, or the content of the file that NAME_FILE names."""
    path = os.environ.get(f"{name}_FILE")
    return Path(path).read_text().strip() if path else os.environ.get(name, default)


def sweep(github: GitHub, sha: str, reason: str, is_dry: bool) -> tuple[int, list[str]]:
    """End ours at one commit. Returns how many, and what went wrong."""
    try:
        runs = github.open_check_runs(sha)
    except requests.RequestException as error:
        return 0, [f"{sha}: {error}"]
    ended, wrong = 0, []
    for run in runs:
        try:
            if not is_dry:
                github.end(run, reason)
            ended += 1
            say(f"{'would end' if is_dry else 'ended'}  {sha[:12]}  {run['name']}")
        except requests.RequestException as error:
            wrong.append(f"{sha}: {run['name']}: {error}")
    return ended, wrong


def say(line: str) -> None:
    """Print a line, whatever is in it: a name of a check run is a downstream's text."""
    text = "".join(c if c.isprintable() else " " for c in line)
    sys.stdout.write(text.encode(sys.stdout.encoding, "replace").decode(sys.stdout.encoding) + "\n")


def main() -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reason", required=True, help="stands on every check run that is ended")
    parser.add_argument("--sha", action="append", default=[], help="a commit besides the open pull requests' (repeat)")
    parser.add_argument("--dry-run", action="store_true", help="name them, end none")
    options = parser.parse_args()
    app_id, key = setting("ACCELHUB_GITHUB_APP_ID"), setting("ACCELHUB_GITHUB_APP_PRIVATE_KEY")
    if not app_id or not key:
        sys.stderr.write("ACCELHUB_GITHUB_APP_ID and ACCELHUB_GITHUB_APP_PRIVATE_KEY: set both.\n")
        return 2
    try:
        github = GitHub(
            setting("ACCELHUB_GITHUB_API_URL", "https://api.github.com"),
            app_id,
            key,
            setting("ACCELHUB_UPSTREAM_REPO", "pytorch/pytorch"),
        )
        shas = sorted({*github.heads(), *options.sha})
    except (requests.RequestException, ValueError, jwt.PyJWTError) as error:
        sys.stderr.write(f"GitHub could not be asked: {error}\n")
        return 2
    with ThreadPoolExecutor(AT_ONCE) as pool:
        swept = list(pool.map(lambda sha: sweep(github, sha, options.reason, options.dry_run), shas))
    ended, wrong = sum(count for count, _ in swept), [line for _, lines in swept for line in lines]
    for line in wrong:
        say(f"FAILED  {line}")
    done = "would be ended" if options.dry_run else "ended"
    say(f"{ended} check runs {done} at {len(shas)} commits, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
