"""System checks: a hub that is set up wrongly says so at start, with what to set instead."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register, run_checks
from django.core.exceptions import ImproperlyConfigured

from accelhub.env import is_loopback

TAG = "accelhub"


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
        if entry["kind"] != "github":
            errors.append(
                Error(
                    f"ACCELHUB_OIDC_ISSUERS: kind {entry['kind']!r} is unknown.",
                    hint='Use kind "github".',
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


def refuse_unsafe() -> None:
    """Raise ImproperlyConfigured with every error of ours: for servers, which run no system checks by themselves."""
    errors = [message for message in run_checks(tags=[TAG]) if message.is_serious()]
    if errors:
        raise ImproperlyConfigured(" ".join(f"{e.id}: {e.msg} {e.hint}" for e in errors))
