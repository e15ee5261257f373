"""A git repository outside the hub: plain `git`, each command with a time limit, no shell, nobody's configuration.

What the repository holds is not trusted: symbolic links are checked out as files, no hook runs, and a file that is
there with another content is never written over.
"""

import base64
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from apps.core.text import HIDDEN_IN_LINE

COMMAND_SECONDS = 60
FOLDER = "checkpoints"
ADDRESS_MAX = 500
WORDS_MAX = 300
# `user@host:path`, as git spells ssh.
_SCP = re.compile(r"[A-Za-z0-9][\w.-]*@[A-Za-z0-9][\w.-]*:[^\s:][^\s]*")
WRITE = "write https://host/repository.git, ssh://git@host/repository.git, git@host:repository.git or an absolute path"
# What git may know of the environment: how to reach the network, and the ssh keys of whoever runs the hub.
_PASSED_ON = (
    *("PATH", "HOME", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "GIT_SSL_CAINFO"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY", "NO_PROXY"),
)
_CONFIGURATION = {
    "core.symlinks": "false",
    "core.hooksPath": os.devnull,
    "core.autocrlf": "false",
    "init.defaultBranch": "main",
    "http.followRedirects": "false",  # the token goes to the host that was configured, and nowhere else
    "user.name": "AccelHub",
    "user.email": "accelhub@invalid",
}


class GitError(Exception):
    """What git could not do: its own last words, without any secret."""


def scheme_of(address: str) -> str:
    """How git reaches this address: `https`, `http`, `ssh` or `file`. Raises ValueError with what to write instead."""
    if len(address) > ADDRESS_MAX or re.search(r"\s", address) or HIDDEN_IN_LINE.search(address):
        raise ValueError(f"cannot be an address: {WRITE}")
    if _SCP.fullmatch(address):
        return "ssh"
    if address.startswith("/"):
        return "file"
    url = urlsplit(address)
    if url.scheme == "file" and not url.netloc and url.path.startswith("/"):
        return "file"
    if url.scheme not in ("https", "http", "ssh") or not re.match(r"[A-Za-z0-9\[]", url.hostname or ""):
        raise ValueError(f"is no address that checkpoints are pushed to: {WRITE}")
    if url.password or (url.username and url.scheme != "ssh"):
        raise ValueError("holds a user or password: write the token to ACCELHUB_CHECKPOINT_GIT_TOKEN")
    return url.scheme


def publish(address: str, files: Mapping[str, str], *, token: str, message: str) -> None:
    """See that the repository's newest commit has these files in the folder `checkpoints`, by one commit more at most.

    Whoever pushed meanwhile makes git refuse, and the next attempt begins with what they brought. Raises GitError.
    """
    with tempfile.TemporaryDirectory(prefix="accelhub-checkpoints-") as folder:
        git = _Git(Path(folder), address, token)
        git.run("clone", "--quiet", "--depth=1", "--single-branch", "--no-tags", "--", address, str(git.work))
        if not _write(git.work / FOLDER, files):
            return
        inside = ("-C", str(git.work))
        git.run(*inside, "add", "--force", "--", FOLDER)
        git.run(*inside, "commit", "--quiet", "--no-verify", "--message", message)
        git.run(*inside, "push", "--quiet", "origin", "HEAD")


def _write(folder: Path, files: Mapping[str, str]) -> bool:
    """Write the files that are not there. False where nothing was to be written. Raises GitError."""
    if folder.exists() and not folder.is_dir():
        raise GitError(f"the repository has a file {FOLDER}, where the folder of that name belongs")
    folder.mkdir(exist_ok=True)
    missing = {name: content for name, content in files.items() if not (folder / name).exists()}
    for name in files.keys() - missing.keys():
        if (folder / name).read_bytes() != files[name].encode():
            raise GitError(f"the repository holds another {FOLDER}/{name} than this hub: give each hub one of its own")
    for name, content in missing.items():
        (folder / name).write_text(content)
    return bool(missing)


class _Git:
    """Runs git with a folder of its own for everything that it writes."""

    def __init__(self, folder: Path, address: str, token: str) -> None:
        self.work = folder / "work"
        self._words = folder / "words"
        self._token = token
        settings = dict(_CONFIGURATION)
        scheme = scheme_of(address)
        if token and scheme in ("https", "http"):
            # In the environment, where only this user can read it: an argument could be read by all of the machine.
            settings[f"http.{address}.extraHeader"] = f"Authorization: Basic {self._login}"
        self._environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ALLOW_PROTOCOL": scheme,
            "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
            "GIT_CONFIG_COUNT": str(len(settings)),
            **{f"GIT_CONFIG_KEY_{place}": name for place, name in enumerate(settings)},
            **{f"GIT_CONFIG_VALUE_{place}": value for place, value in enumerate(settings.values())},
        }

    @property
    def _login(self) -> str:
        return base64.b64encode(f"x-access-token:{self._token}".encode()).decode()

    def run(self, *arguments: str) -> None:
        """One command. Raises GitError: it failed, it took too long, there is no git."""
        verb = next(word for word in arguments if word in ("clone", "add", "commit", "push"))
        with self._words.open("wb") as words:
            try:
                process = subprocess.Popen(
                    ["git", *arguments],  # noqa: S607  the operator's PATH says which
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=words,
                    env=self._environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise GitError(f"git cannot be run ({error.strerror}): install it where the workers run") from error
            try:
                code = process.wait(COMMAND_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # its helpers too: they hold the network
                process.wait()
                raise GitError(f"git {verb} took longer than {COMMAND_SECONDS} seconds") from None
        if code:
            raise GitError(f"git {verb}: {self._last_words() or f'exit status {code}'}")

    def _last_words(self) -> str:
        text = " ".join(self._words.read_text(errors="replace").split())
        for secret in filter(None, (self._token, self._token and self._login)):
            text = text.replace(secret, "…")
        return HIDDEN_IN_LINE.sub("\ufffd", text)[-WORDS_MAX:]
