"""Settings from the environment, secrets from files, and the system checks that refuse an unsafe hub."""

import base64
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from accelhub import demo
from accelhub.checks import TAG, refuse_unsafe
from accelhub.env import Paths, broker_url, database, redis_url
from tests.environment import without_ours
from tests.factories.checkpoints import seed

ROOT = Path(__file__).parents[2]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment that says nothing about the hub, but where an empty data folder lies."""
    for name in set(os.environ) - set(without_ours(os.environ)):
        monkeypatch.delenv(name)
    monkeypatch.setenv("ACCELHUB_DATA_DIR", str(tmp_path))
    return monkeypatch


def settings_now() -> dict[str, Any]:
    """The settings as a process that starts now would read them."""
    return runpy.run_path(str(ROOT / "accelhub" / "settings.py"))


class TestEnvironment:
    def test_without_any_variable_it_is_a_local_hub_on_embedded_services(
        self, environment: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        found = settings_now()
        assert found["BASE_URL"] == "http://127.0.0.1:8000"
        assert (found["DEMO"], found["DEBUG"]) == (False, False)
        assert found["DATABASES"]["default"]["HOST"] == str(Paths(tmp_path).postgres_socket_dir)
        assert found["CELERY_BROKER_URL"] == f"redis+socket://{Paths(tmp_path).redis_socket}"
        assert found["GITHUB_API_URL"] == "https://api.github.com"
        assert [(issuer["issuer"], issuer["kind"]) for issuer in found["OIDC_ISSUERS"]] == [
            ("https://token.actions.githubusercontent.com", "github"),
            ("https://agent.buildkite.com", "buildkite"),
        ]

    def test_sockets_stay_short_and_apart_however_deep_the_data_folders_lie(self) -> None:
        deep = Paths(Path("/home") / ("deep/" * 200))
        assert len(str(deep.postgres_socket_dir / ".s.PGSQL.5432")) < 107
        assert len(str(deep.redis_socket)) < 107
        assert deep.runtime != Paths(Path("/home")).runtime

    def test_servers_are_taken_by_url(self, environment: pytest.MonkeyPatch) -> None:
        environment.setenv("DATABASE_URL", "postgres://me:secret@db.internal:6543/hub")
        environment.setenv("REDIS_URL", "redis://redis.internal:6379/2")
        assert database() | {"ENGINE": ""} == {
            "ENGINE": "",
            "NAME": "hub",
            "USER": "me",
            "PASSWORD": "secret",
            "HOST": "db.internal",
            "PORT": 6543,
        }
        assert redis_url() == broker_url() == "redis://redis.internal:6379/2"

    def test_the_base_url_decides_about_cookies(self, environment: pytest.MonkeyPatch) -> None:
        environment.setenv("ACCELHUB_BASE_URL", "https://hub.example/")
        found = settings_now()
        assert found["BASE_URL"] == "https://hub.example"
        assert found["SESSION_COOKIE_SECURE"] is found["CSRF_COOKIE_SECURE"] is True
        assert found["CSRF_TRUSTED_ORIGINS"] == ["https://hub.example"]
        assert "hub.example" in found["ALLOWED_HOSTS"]
        assert found["SECURE_HSTS_SECONDS"] > 0

    def test_hubs_on_two_ports_of_one_machine_do_not_share_cookies(self, environment: pytest.MonkeyPatch) -> None:
        names = set()
        for port in ("8000", "8001"):
            environment.setenv("PORT", port)
            names.add(settings_now()["SESSION_COOKIE_NAME"])
        assert len(names) == 2

    def test_former_secret_keys_are_a_list_of_either_kind_of_line_end(self, environment: pytest.MonkeyPatch) -> None:
        assert settings_now()["SECRET_KEY_FALLBACKS"] == []
        environment.setenv("ACCELHUB_SECRET_KEY_FALLBACKS", "older, oldest,\n")
        assert settings_now()["SECRET_KEY_FALLBACKS"] == ["older", "older\n", "oldest", "oldest\n"]

    def test_every_secret_may_come_from_a_file(self, tmp_path: Path) -> None:
        secrets = {
            "ACCELHUB_SECRET_KEY": "SECRET_KEY",
            "ACCELHUB_GITHUB_WEBHOOK_SECRET": "GITHUB_WEBHOOK_SECRET",
            "ACCELHUB_GITHUB_APP_ID": "GITHUB_APP_ID",
            "ACCELHUB_GITHUB_APP_PRIVATE_KEY": "GITHUB_APP_PRIVATE_KEY",
            "SOCIAL_AUTH_GITHUB_KEY": "SOCIAL_AUTH_GITHUB_KEY",
            "SOCIAL_AUTH_GITHUB_SECRET": "SOCIAL_AUTH_GITHUB_SECRET",
            "REDIS_URL": "REDIS_URL",
        }
        files = {f"{name}_FILE": str(tmp_path / name) for name in secrets} | {"DATABASE_URL_FILE": str(tmp_path / "db")}
        for name in secrets:
            (tmp_path / name).write_text(f"redis://{name}\nsecond line")
        (tmp_path / "db").write_text("postgres://me:from-a-file@db.internal/hub")
        # In a process of its own: the reader remembers what it read.
        script = (
            "import json; from django.conf import settings; "
            f"print(json.dumps([[getattr(settings, name) for name in {list(secrets.values())!r}], "
            "settings.DATABASES['default']['PASSWORD']]))"
        )
        found = json.loads(run("-c", script, DJANGO_SETTINGS_MODULE="accelhub.settings", **files).stdout)
        assert found == [[f"redis://{name}\nsecond line" for name in secrets], "from-a-file"]


ADDRESS = "postgres://user:password@host:5432/name"
UNREADABLE = {
    "a port": ({"PORT": "abc"}, "PORT is 'abc': write a whole number."),
    "days": ({"ACCELHUB_DEMO_HISTORY_DAYS": ""}, "ACCELHUB_DEMO_HISTORY_DAYS is '': write a whole number."),
    "issuers": (
        {"ACCELHUB_OIDC_ISSUERS": "{"},
        "ACCELHUB_OIDC_ISSUERS is '{': write JSON, such as "
        '[{"issuer": "https://…", "jwks_url": "https://…", "kind": "github"}].',
    ),
    "a file": (
        {"ACCELHUB_SECRET_KEY_FILE": "/nonexist"},
        "ACCELHUB_SECRET_KEY_FILE names /nonexist, which cannot be read (No such file or directory): "
        "name a readable file.",
    ),
    "mail": (
        {"EMAIL_URL": "foo"},
        "EMAIL_URL has no scheme: write an address such as smtp+tls://user:password@host:587.",
    ),
    "a mail port": (
        {"EMAIL_URL": "smtp://secret:word@mail:port"},
        "EMAIL_URL cannot be read as an address: write one such as smtp+tls://user:password@host:587.",
    ),
    "a database": (
        {"DATABASE_URL": "mysql://me:secret@db/hub"},
        f"DATABASE_URL begins with 'mysql': write an address such as {ADDRESS}.",
    ),
    "a database's port": (
        {"DATABASE_URL": "postgres://me:secret@db:x/hub"},
        f"DATABASE_URL cannot be read as an address: write one such as {ADDRESS}.",
    ),
    "redis": (
        {"REDIS_URL": "redis.internal"},
        "REDIS_URL has no scheme: write an address such as redis://host:6379/0.",
    ),
}


@pytest.mark.parametrize(("environment", "line"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_variable_that_cannot_be_read_is_one_line(environment: dict[str, str], line: str, tmp_path: Path) -> None:
    done = run("manage.py", "check", ACCELHUB_DATA_DIR=str(tmp_path), **environment)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{line}\n")


class TestDemo:
    def test_its_facts_are_made_once_and_kept(self, tmp_path: Path) -> None:
        first = demo.ensure(tmp_path, "http://127.0.0.1:8000")
        assert demo.ensure(tmp_path, "http://127.0.0.1:8000") == first == demo.load(tmp_path)
        assert (tmp_path / demo.FILE).stat().st_mode & 0o077 == 0

    def test_one_of_before_gets_a_key_for_checkpoints_and_keeps_it(self, tmp_path: Path) -> None:
        first = demo.ensure(tmp_path, "http://127.0.0.1:8000")
        assert len(base64.b64decode(first.checkpoint_key)) == 32
        kept = json.loads((tmp_path / demo.FILE).read_text())
        (tmp_path / demo.FILE).write_text(json.dumps(kept | {"checkpoint_key": ""}))
        second = demo.ensure(tmp_path, "http://127.0.0.1:8000")
        assert second.checkpoint_key not in ("", first.checkpoint_key)
        assert second == demo.ensure(tmp_path, "http://127.0.0.1:8000")

    def test_settings_read_them_in_demo_mode_only(self, environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
        facts = demo.ensure(tmp_path, "http://127.0.0.1:8000")
        assert settings_now()["GITHUB_WEBHOOK_SECRET"] == ""
        environment.setenv("ACCELHUB_DEMO", "1")
        found = settings_now()
        assert found["GITHUB_WEBHOOK_SECRET"] == facts.webhook_secret
        assert found["CHECKPOINT_KEY"] == facts.checkpoint_key
        assert found["GITHUB_API_URL"] == found["GITHUB_URL"] == facts.api_url
        assert found["SOCIAL_AUTH_GITHUB_KEY"] == "standin-1001"
        assert len(found["SOCIAL_AUTH_GITHUB_SECRET"]) == 40
        assert found["MAINTAINER_TEAM"] == "accelhub-demo/relay-maintainers"
        assert [issuer["issuer"] for issuer in found["OIDC_ISSUERS"]] == [facts.api_url, f"{facts.api_url}/buildkite"]


def errors() -> list[str]:
    return [str(message.id) for message in run_checks(tags=[TAG])]


class TestSystemChecks:
    """A name for each way to set the hub up wrongly. The tests' own settings pass."""

    @pytest.fixture(autouse=True)
    def _github_itself(self, settings: Settings) -> None:
        settings.GITHUB_API_URL = "https://api.github.com"

    def test_a_sound_setup_passes(self, settings: Settings) -> None:
        assert errors() == []
        refuse_unsafe()

    @pytest.mark.parametrize("base", ["https://127.0.0.1", "http://hub.example", "http://192.168.1.2:8000"])
    def test_e001_a_demo_that_others_can_reach(self, settings: Settings, base: str) -> None:
        settings.DEMO, settings.BASE_URL = True, base
        assert errors() == ["accelhub.E001"]
        settings.DEMO, settings.BASE_URL = False, "https://hub.example"
        assert errors() == []

    @pytest.mark.parametrize("name", ["SECRET_KEY", "GITHUB_WEBHOOK_SECRET", "GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY"])
    def test_e002_a_missing_secret(self, settings: Settings, name: str) -> None:
        setattr(settings, name, "unsafe: set ACCELHUB_SECRET_KEY" if name == "SECRET_KEY" else "")
        (message,) = run_checks(tags=[TAG])
        assert (message.id, message.msg) == ("accelhub.E002", f"ACCELHUB_{name} is not set.")
        settings.DEBUG = True
        assert errors() == []

    @pytest.mark.parametrize("field", ["issuer", "jwks_url"])
    @pytest.mark.parametrize(
        ("url", "is_demo", "expected"),
        [
            ("http://ci.example", False, ["accelhub.E003"]),
            ("http://ci.example", True, ["accelhub.E003"]),
            ("http://127.0.0.1:9000", False, ["accelhub.E003"]),
            ("http://127.0.0.1:9000", True, []),
            ("https://ci.example", False, []),
        ],
    )
    def test_e003_an_issuer_over_http(
        self, settings: Settings, field: str, url: str, is_demo: bool, expected: list[str]
    ) -> None:
        settings.DEMO = is_demo
        entry = {"issuer": "https://ci.example", "jwks_url": "https://ci.example/jwks", "kind": "github"}
        settings.OIDC_ISSUERS = [entry | {field: url}]
        assert errors() == expected

    @pytest.mark.parametrize(
        "entry", [{"issuer": "https://a"}, {"issuer": "https://a", "jwks_url": "https://a/j", "kind": "x"}]
    )
    def test_e004_an_issuer_that_is_not_complete(self, settings: Settings, entry: dict[str, str]) -> None:
        settings.OIDC_ISSUERS = [entry]
        assert errors() == ["accelhub.E004"]

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"SOCIAL_AUTH_GITHUB_KEY": "k"}, ["Sign-in with GitHub is half set up."]),
            ({"SOCIAL_AUTH_GITHUB_SECRET": "s", "LOCAL_SIGN_IN": False}, ["Sign-in with GitHub is half set up."]),
            ({"LOCAL_SIGN_IN": False}, ["Nobody can sign in."]),
            ({"MAINTAINER_TEAM": "crew"}, ["ACCELHUB_MAINTAINER_TEAM is 'crew'."]),
            ({"MAINTAINER_TEAM": "acme/crew/x"}, ["ACCELHUB_MAINTAINER_TEAM is 'acme/crew/x'."]),
            ({"SOCIAL_AUTH_GITHUB_KEY": "k", "SOCIAL_AUTH_GITHUB_SECRET": "s", "LOCAL_SIGN_IN": False}, []),
            ({"MAINTAINER_TEAM": "acme/crew-1"}, []),
        ],
    )
    def test_e007_a_sign_in_that_is_not_whole(
        self, settings: Settings, changed: dict[str, Any], words: list[str]
    ) -> None:
        for name, value in changed.items():
            setattr(settings, name, value)
        found = run_checks(tags=[TAG])
        assert [(message.id, message.msg) for message in found] == [("accelhub.E007", word) for word in words]

    @pytest.mark.parametrize("name", ["GITHUB_URL", "GITHUB_API_URL"])
    def test_e008_a_github_over_http(self, settings: Settings, name: str) -> None:
        setattr(settings, name, "http://127.0.0.1:9000")
        assert errors() == ["accelhub.E008"]
        settings.DEMO = True
        assert errors() == []
        setattr(settings, name, "http://github.example")
        assert errors() == ["accelhub.E008"]

    def test_e025_a_list_of_disabled_tests_over_http(self, settings: Settings) -> None:
        settings.DISABLED_TESTS_URL = "http://127.0.0.1:9000/disabled-tests.json"
        assert errors() == ["accelhub.E025"]
        settings.DEMO = True
        assert errors() == []
        settings.DISABLED_TESTS_URL = "http://lists.example/disabled-tests.json"
        assert errors() == ["accelhub.E025"]
        settings.DISABLED_TESTS_URL = "https://lists.example/disabled-tests.json"
        assert errors() == []

    @pytest.mark.parametrize(
        ("base", "expected"),
        [
            ("http://hub.example", ["accelhub.E010"]),
            ("hub.example", ["accelhub.E010"]),
            ("http://localhost:8000", []),
            ("https://hub.example", []),
        ],
    )
    def test_e010_an_address_of_others_over_http(self, settings: Settings, base: str, expected: list[str]) -> None:
        settings.BASE_URL = base
        assert errors() == expected

    @pytest.mark.parametrize(("length", "expected"), [(31, ["accelhub.E011"]), (32, [])])
    def test_e011_a_secret_key_that_can_be_guessed(self, settings: Settings, length: int, expected: list[str]) -> None:
        settings.SECRET_KEY = "k" * length
        assert errors() == expected
        settings.DEBUG = True
        assert errors() == []

    @pytest.mark.parametrize(("length", "expected"), [(31, ["accelhub.E011"]), (32, [])])
    def test_e011_a_former_one_that_can_be_guessed(self, settings: Settings, length: int, expected: list[str]) -> None:
        settings.SECRET_KEY_FALLBACKS = ["k" * 48, "k" * length + "\n"]
        assert errors() == expected

    @pytest.mark.parametrize("value", ["x", "c2hvcnQ=", "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----"])
    def test_e025_a_checkpoint_key_that_is_none(self, settings: Settings, value: str) -> None:
        settings.CHECKPOINT_KEY = value
        (message,) = run_checks(tags=[TAG])
        said = "ACCELHUB_CHECKPOINT_KEY is neither an Ed25519 key in PEM nor 32 bytes in base64."
        assert (message.id, message.msg) == ("accelhub.E026", said)
        settings.CHECKPOINT_KEY = seed()
        assert errors() == []

    @pytest.mark.parametrize(
        ("address", "is_demo", "said"),
        [
            ("https://git.example/log.git", False, []),
            ("git@git.example:log.git", False, []),
            ("/srv/log.git", False, []),
            ("http://127.0.0.1/log.git", True, []),
            ("http://127.0.0.1/log.git", False, ["ACCELHUB_CHECKPOINT_GIT is not https."]),
            ("http://git.example/log.git", True, ["ACCELHUB_CHECKPOINT_GIT is not https."]),
            (
                "https://x:secret@git.example/log.git",
                False,
                ["ACCELHUB_CHECKPOINT_GIT holds a user or password."],
            ),
            ("log.git", False, ["ACCELHUB_CHECKPOINT_GIT is no address that checkpoints are pushed to."]),
        ],
    )
    def test_e026_checkpoints_pushed_to_no_safe_address(
        self, settings: Settings, address: str, is_demo: bool, said: list[str]
    ) -> None:
        settings.CHECKPOINT_KEY, settings.CHECKPOINT_GIT, settings.DEMO = seed(), address, is_demo
        found = run_checks(tags=[TAG])
        assert [(message.id, message.msg) for message in found] == [("accelhub.E027", words) for words in said]
        assert not [message for message in found if "secret" in str(message)]

    def test_e026_nothing_to_push_or_nothing_to_push_with(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        settings.CHECKPOINT_KEY, settings.CHECKPOINT_GIT = "", "/srv/log.git"
        (message,) = run_checks(tags=[TAG])
        assert message.msg == "Without a key there are no checkpoints to push."
        settings.DEMO = True  # it makes a key of its own
        assert errors() == []
        settings.DEMO = False
        settings.CHECKPOINT_KEY = seed()
        monkeypatch.setenv("PATH", str(tmp_path))
        (message,) = run_checks(tags=[TAG])
        assert message.msg == "Checkpoints are to be pushed, and there is no git."

    def test_a_server_refuses_to_load_with_any_of_them(self, settings: Settings) -> None:
        settings.GITHUB_WEBHOOK_SECRET = ""
        with pytest.raises(ImproperlyConfigured, match=r"accelhub\.E002: ACCELHUB_GITHUB_WEBHOOK_SECRET is not set"):
            refuse_unsafe()

    def test_gunicorn_serves_no_unsafe_hub(self, tmp_path: Path) -> None:
        done = run(
            "-m",
            "gunicorn",
            "--config",
            "python:accelhub.gunicorn",
            "--check-config",
            "accelhub.wsgi:application",
            ACCELHUB_DATA_DIR=str(tmp_path),
        )
        assert done.returncode == 1
        assert "accelhub.E002" in done.stderr


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=without_ours(os.environ) | environment,
    )
