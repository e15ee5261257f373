"""System checks: a hub that is set up wrongly says so at start, with what to set instead."""

import re
import shutil
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from accelhub.env import is_loopback, storage_url
from apps.audit.checkpoints import CheckpointError, read_private_key
from apps.audit.outside import scheme_of
from apps.platforms.authority import AUTHORITIES, FILE, address
from apps.relay.modes import MODES

TAG = "accelhub"
ALLOWLIST_ID = "accelhub.E012"


@register(TAG, Tags.security)
def demo_stays_at_home(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Demo mode signs anyone in and trusts a local issuer: never with an address others can reach."""
    base = urlsplit(settings.BASE_URL)
    if settings.DEMO and (base.scheme == "https" or not is_loopback(base.hostname)):
        return [
            Error(
                f"ACCELHUB_DEMO is on and ACCELHUB_BASE_URL is {settings.BASE_URL}.",
                hint="Unset ACCELHUB_DEMO, or use an http address on localhost.",
                id="accelhub.E001",
            )
        ]
    return []


@register(TAG, Tags.security)
def debug_stays_at_home(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Debug mode shows source and settings to whoever makes a page fail, and does not ask for secrets."""
    base = urlsplit(settings.BASE_URL)
    if settings.DEBUG and not is_loopback(base.hostname):
        hint = "Unset ACCELHUB_DEBUG, or use an address on localhost."
        return [
            Error(f"ACCELHUB_DEBUG is on and ACCELHUB_BASE_URL is {settings.BASE_URL}.", hint=hint, id="accelhub.E005")
        ]
    return []


@register(TAG, Tags.security)
def app_key_is_readable(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """The App's private key is asked for long after start, by a worker: say at once when it is no key."""
    if not settings.GITHUB_APP_PRIVATE_KEY:
        return []
    try:
        serialization.load_pem_private_key(settings.GITHUB_APP_PRIVATE_KEY.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        hint = "Set it (or ACCELHUB_GITHUB_APP_PRIVATE_KEY_FILE) to the PEM text from GitHub, line breaks included."
        return [Error("ACCELHUB_GITHUB_APP_PRIVATE_KEY is no private key.", hint=hint, id="accelhub.E006")]
    return []


@register(TAG, Tags.security)
def secrets_are_set(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Outside demo and debug, each secret comes from configuration."""
    if settings.DEMO or settings.DEBUG:
        return []
    missing = {
        "ACCELHUB_SECRET_KEY": "" if settings.SECRET_KEY.startswith("unsafe:") else settings.SECRET_KEY,
        "ACCELHUB_GITHUB_WEBHOOK_SECRET": settings.GITHUB_WEBHOOK_SECRET,
        "ACCELHUB_GITHUB_APP_ID": settings.GITHUB_APP_ID,
        "ACCELHUB_GITHUB_APP_PRIVATE_KEY": settings.GITHUB_APP_PRIVATE_KEY,
    }
    return [
        Error(f"{name} is not set.", hint=f"Set {name} or {name}_FILE.", id="accelhub.E002")
        for name, value in missing.items()
        if not value
    ]


@register(TAG, Tags.security)
def issuers_are_https(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Trust anchors are fetched over https; http only from loopback, and only in debug or demo mode."""
    errors: list[CheckMessage] = []
    if not isinstance(settings.OIDC_ISSUERS, list) or not all(isinstance(e, dict) for e in settings.OIDC_ISSUERS):
        hint = "It is a list of objects with issuer, jwks_url and kind."
        return [Error("ACCELHUB_OIDC_ISSUERS is of another shape.", hint=hint, id="accelhub.E004")]
    for entry in settings.OIDC_ISSUERS:
        if missing := {"issuer", "jwks_url", "kind"} - set(entry):
            errors.append(
                Error(
                    f"ACCELHUB_OIDC_ISSUERS: an entry lacks {', '.join(sorted(missing))}.",
                    hint="Each entry needs issuer, jwks_url and kind.",
                    id="accelhub.E004",
                )
            )
            continue
        if entry["kind"] not in ("github", "buildkite"):
            errors.append(
                Error(
                    f"ACCELHUB_OIDC_ISSUERS: kind {entry['kind']!r} is unknown.",
                    hint='Use kind "github" or "buildkite".',
                    id="accelhub.E004",
                )
            )
        for field in ("issuer", "jwks_url"):
            url = urlsplit(entry[field])
            local = url.scheme == "http" and is_loopback(url.hostname) and (settings.DEMO or settings.DEBUG)
            if url.scheme != "https" and not local:
                errors.append(
                    Error(
                        f"ACCELHUB_OIDC_ISSUERS: {field} {entry[field]} is not https.",
                        hint="Use https; http is for loopback in debug or demo mode.",
                        id="accelhub.E003",
                    )
                )
    return errors


@register(TAG, Tags.security)
def sign_in_is_whole(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Somebody can sign in, and what is set up about it fits together."""
    errors: list[CheckMessage] = []
    pair = [settings.SOCIAL_AUTH_GITHUB_KEY, settings.SOCIAL_AUTH_GITHUB_SECRET]
    both = "Set both SOCIAL_AUTH_GITHUB_KEY and SOCIAL_AUTH_GITHUB_SECRET."
    if any(pair) and not all(pair):
        errors.append(Error("Sign-in with GitHub is half set up.", hint=both, id="accelhub.E007"))
    if not any(pair) and not settings.LOCAL_SIGN_IN:
        hint = f"{both} In an emergency set ACCELHUB_LOCAL_SIGN_IN."
        errors.append(Error("Nobody can sign in.", hint=hint, id="accelhub.E007"))
    if settings.MAINTAINER_TEAM and not re.fullmatch(r"[\w.-]+/[\w.-]+", settings.MAINTAINER_TEAM):
        hint = "Write organisation/team-slug, or unset it."
        errors.append(
            Error(f"ACCELHUB_MAINTAINER_TEAM is {settings.MAINTAINER_TEAM!r}.", hint=hint, id="accelhub.E007")
        )
    return errors


@register(TAG, Tags.security)
def github_is_https(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """GitHub is told the hub's secrets and users' tokens: over https, or on loopback in debug or demo mode."""
    addresses = {"ACCELHUB_GITHUB_URL": settings.GITHUB_URL, "ACCELHUB_GITHUB_API_URL": settings.GITHUB_API_URL}
    return [
        Error(f"{name} is {value}.", hint="Use https; http is for loopback in debug or demo mode.", id="accelhub.E008")
        for name, value in addresses.items()
        if not _is_trusted(value)
    ]


@register(TAG, Tags.security)
def allowlist_has_an_owner(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Where a file is the authority, it is one of the upstream repository: nobody else decides who is listed."""
    if settings.ALLOWLIST_AUTHORITY not in AUTHORITIES:
        hint = f"Set {' or '.join(AUTHORITIES)}."
        return [Error(f"ACCELHUB_ALLOWLIST_AUTHORITY is {settings.ALLOWLIST_AUTHORITY!r}.", hint=hint, id=ALLOWLIST_ID)]
    if settings.ALLOWLIST_AUTHORITY != FILE:
        return []
    try:
        address()
    except ValueError as error:
        seen, _, hint = str(error).partition(": write ")
        return [Error(f"ACCELHUB_ALLOWLIST_URL {seen}.", hint=f"Write {hint}", id=ALLOWLIST_ID)]
    return []


@register(TAG, Tags.security)
def base_is_https(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """People sign in at the base address, and downstreams send their tokens there."""
    if settings.DEMO or settings.DEBUG:
        return []
    base = urlsplit(settings.BASE_URL)
    if base.scheme == "https" or (base.scheme == "http" and is_loopback(base.hostname)):
        return []
    hint = "Write https://<host>; http is for localhost."
    return [Error(f"ACCELHUB_BASE_URL is {settings.BASE_URL}.", hint=hint, id="accelhub.E010")]


# What token_urlsafe(24) gives; docs/operator.md says how to make a longer one.
SECRET_KEY_MIN = 32


@register(TAG, Tags.security)
def secret_key_is_long(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """It signs sessions and seals GitHub tokens: nobody may guess it."""
    if settings.DEMO or settings.DEBUG:
        return []
    hint = f"Write at least {SECRET_KEY_MIN}: python -c 'import secrets; print(secrets.token_urlsafe(48))'."
    errors: list[CheckMessage] = []
    if not settings.SECRET_KEY.startswith("unsafe:") and len(settings.SECRET_KEY) < SECRET_KEY_MIN:
        said = f"ACCELHUB_SECRET_KEY has {len(settings.SECRET_KEY)} characters."
        errors.append(Error(said, hint=hint, id="accelhub.E011"))
    shortest = min((len(key.strip()) for key in settings.SECRET_KEY_FALLBACKS), default=SECRET_KEY_MIN)
    if shortest < SECRET_KEY_MIN:
        said = f"ACCELHUB_SECRET_KEY_FALLBACKS names a key of {shortest} characters."
        errors.append(Error(said, hint="What it signed can be forged: take it out.", id="accelhub.E011"))
    return errors


@register(TAG, Tags.security)
def mode_is_known(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """The mode is one of the table's, and has what it stands on."""
    if settings.MODE not in MODES:
        hint = f"Use one of {', '.join(MODES)}."
        return [Error(f"ACCELHUB_MODE is {settings.MODE!r}.", hint=hint, id="accelhub.E020")]
    errors: list[CheckMessage] = []
    if not MODES[settings.MODE].dispatches and not settings.HUD_BOT_KEY:
        hint = "Set the key that the relay sends as x-hud-internal-bot, or use the mode active."
        errors.append(Error(f"{settings.MODE} mode without ACCELHUB_HUD_BOT_KEY.", hint=hint, id="accelhub.E021"))
    if settings.HUD_FORWARD_URL and not _is_trusted(settings.HUD_FORWARD_URL):
        hint = "Use https; http is for loopback in debug or demo mode."
        errors.append(Error(f"ACCELHUB_HUD_FORWARD_URL is {settings.HUD_FORWARD_URL}.", hint=hint, id="accelhub.E022"))
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,40}", settings.CHECK_PREFIX):
        hint = "Use up to 40 letters, digits, dots, lines or underscores: the names of check runs begin with it."
        errors.append(Error(f"ACCELHUB_CHECK_PREFIX is {settings.CHECK_PREFIX!r}.", hint=hint, id="accelhub.E023"))
    return errors


@register(TAG, Tags.security)
def disabled_tests_are_https(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """What upstream disables is shown under its name: nobody on the way may write it."""
    if not settings.DISABLED_TESTS_URL or _is_trusted(settings.DISABLED_TESTS_URL):
        return []
    hint = "Use https; http is for loopback in debug or demo mode."
    return [Error(f"ACCELHUB_DISABLED_TESTS_URL is {settings.DISABLED_TESTS_URL}.", hint=hint, id="accelhub.E025")]


@register(TAG, Tags.security)
def storage_is_supported(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Reports are kept as files. An object store needs a client of 20 MB that no other part of the hub uses; a folder
    that such a store is mounted at serves as well."""
    url = urlsplit(storage_url())
    is_folder = url.scheme == "file" and not url.netloc and url.path.startswith("/")
    if is_folder or not storage_url():
        return []
    hint = "Unset it for the data folder, or write file:///an/absolute/folder; object stores are not built in."
    # Only the scheme is shown: what follows it may hold a password.
    seen = f"begins with {url.scheme}:" if url.scheme else "has no scheme"
    return [Error(f"ACCELHUB_STORAGE_URL {seen}, and only files are supported.", hint=hint, id="accelhub.E024")]


@register(TAG, Tags.security)
def checkpoints_are_whole(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """The key that signs checkpoints is one, and what they are pushed to can be reached safely. What is wrong is said
    without repeating a key or an address, which may hold a password."""
    errors: list[CheckMessage] = []
    try:
        if settings.CHECKPOINT_KEY:
            read_private_key(settings.CHECKPOINT_KEY)
    except CheckpointError as error:
        hint = "Make one: openssl genpkey -algorithm ed25519, or 32 random bytes in base64."
        errors.append(Error(f"ACCELHUB_CHECKPOINT_KEY {error}.", hint=hint, id="accelhub.E026"))
    if not settings.CHECKPOINT_GIT:
        return errors
    if (
        not settings.CHECKPOINT_KEY and not settings.DEMO
    ):  # a demo makes its own, after this is asked for the first time
        hint = "Set ACCELHUB_CHECKPOINT_KEY, or unset ACCELHUB_CHECKPOINT_GIT."
        errors.append(Error("Without a key there are no checkpoints to push.", hint=hint, id="accelhub.E027"))
    try:
        if scheme_of(settings.CHECKPOINT_GIT) == "http" and not _is_trusted(settings.CHECKPOINT_GIT):
            raise ValueError("is not https: use https; http is for loopback in debug or demo mode")
    except ValueError as error:
        seen, _, hint = str(error).partition(": ")
        errors.append(Error(f"ACCELHUB_CHECKPOINT_GIT {seen}.", hint=f"{_begun(hint)}.", id="accelhub.E027"))
    if shutil.which("git") is None:
        hint = "Install git where the hub runs, or unset ACCELHUB_CHECKPOINT_GIT."
        errors.append(Error("Checkpoints are to be pushed, and there is no git.", hint=hint, id="accelhub.E027"))
    return errors


def _begun(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _is_trusted(address: str) -> bool:
    url = urlsplit(address)
    is_local = url.scheme == "http" and is_loopback(url.hostname) and (settings.DEMO or settings.DEBUG)
    return url.scheme == "https" or is_local


@register(Tags.database)
def pipelines_are_mapped(app_configs: Any, databases: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Buildkite's tokens mean a repository only through a mapping: trusted without one, each is refused.

    A warning, since Buildkite is trusted by default and a new hub has no mapping yet. It asks the database, so it runs
    with `migrate` and `check --database default`.
    """
    from apps.platforms.models import Pipeline  # models are there once the checks run, not while this is imported

    issuers = [entry["issuer"] for entry in settings.OIDC_ISSUERS if entry.get("kind") == "buildkite"]
    if not issuers or not databases or Pipeline._meta.db_table not in connection.introspection.table_names():
        return []
    if Pipeline.objects.exists():
        return []
    hint = "Map one on /pipelines/, or leave the issuer out of ACCELHUB_OIDC_ISSUERS."
    return [checks.Warning(f"{issuers[0]} is trusted, and no pipeline is mapped.", hint=hint, id="accelhub.W009")]


def unsafe() -> list[str]:
    """What our checks find, a line each: its id, what was seen, what to set."""
    return sorted(f"{e.id}: {e.msg} {e.hint}" for e in run_checks(tags=[TAG]) if e.is_serious())


def refuse_unsafe() -> None:
    """Raise ImproperlyConfigured with every error of ours: for servers, which run no system checks by themselves."""
    if errors := unsafe():
        raise ImproperlyConfigured(" ".join(errors))
