"""Django settings: one file, driven by the environment (accelhub/env.py; names in docs/operator-reference.md)."""

import json
from urllib.parse import urlsplit

from accelhub import demo
from accelhub.env import (
    BASE_DIR,
    broker_url,
    database,
    env,
    former_secret_keys,
    is_loopback,
    mail,
    paths,
    redis_url,
    storage,
)

DATA_DIR = paths().data

# --- who we are -------------------------------------------------------------------------------------------------
PORT = env.int("PORT", 8000)
DEMO = env.bool("ACCELHUB_DEMO", False)
# How many days back the demo's history begins, at the first start of a data folder; 0: none.
DEMO_HISTORY_DAYS = env.int("ACCELHUB_DEMO_HISTORY_DAYS", 30)
DEBUG = env.bool("ACCELHUB_DEBUG", False)
BASE_URL = env.str("ACCELHUB_BASE_URL", f"http://127.0.0.1:{PORT}").rstrip("/")
_base = urlsplit(BASE_URL)
# The demo brings its own GitHub: keys, secrets and addresses of the stand-in, made by `manage.py up`.
_demo = demo.load(DATA_DIR) if DEMO else demo.NOTHING

# --- secrets ----------------------------------------------------------------------------------------------------
# An empty key stops production through the system check accelhub.E002; a running demo makes its own.
SECRET_KEY = env.str("ACCELHUB_SECRET_KEY", _demo.secret_key) or "unsafe: set ACCELHUB_SECRET_KEY"
SECRET_KEY_FALLBACKS = former_secret_keys()
GITHUB_APP_ID = env.str("ACCELHUB_GITHUB_APP_ID", _demo.app_id)
GITHUB_APP_PRIVATE_KEY = env.str("ACCELHUB_GITHUB_APP_PRIVATE_KEY", _demo.app_private_key)
GITHUB_WEBHOOK_SECRET = env.str("ACCELHUB_GITHUB_WEBHOOK_SECRET", _demo.webhook_secret)
# Signs checkpoints of the decision log; without one there are none.
CHECKPOINT_KEY = env.str("ACCELHUB_CHECKPOINT_KEY", _demo.checkpoint_key)
# Where checkpoints are pushed to, with a token where it is https; empty: nowhere.
CHECKPOINT_GIT = env.str("ACCELHUB_CHECKPOINT_GIT", "")
CHECKPOINT_GIT_TOKEN = env.str("ACCELHUB_CHECKPOINT_GIT_TOKEN", "").strip()

# --- the relay that the hub stands behind, or is -----------------------------------------------------------------
# observer, shadow or active: apps/relay/modes.py says what each does.
MODE = env.str("ACCELHUB_MODE", "active")
HUD_BOT_KEY = env.str("ACCELHUB_HUD_BOT_KEY", "")
# What the names of our check runs begin with: no two Apps may use the same.
CHECK_PREFIX = env.str("ACCELHUB_CHECK_PREFIX", "crcr")
HUD_FORWARD_URL = env.str("ACCELHUB_HUD_FORWARD_URL", "")
HUD_FORWARD_KEY = env.str("ACCELHUB_HUD_FORWARD_KEY", "") or HUD_BOT_KEY

# --- the world outside ------------------------------------------------------------------------------------------
UPSTREAM_REPO = env.str("ACCELHUB_UPSTREAM_REPO", "pytorch/pytorch")
GITHUB_API_URL = env.str("ACCELHUB_GITHUB_API_URL", _demo.api_url or "https://api.github.com").rstrip("/")
GITHUB_URL = env.str("ACCELHUB_GITHUB_URL", _demo.api_url or "https://github.com").rstrip("/")
# Who owns the allowlist: `hub`, or `file`: the one at this address in the upstream repository, which the hub follows.
ALLOWLIST_AUTHORITY = env.str("ACCELHUB_ALLOWLIST_AUTHORITY", "hub")
ALLOWLIST_URL = env.str("ACCELHUB_ALLOWLIST_URL", "")
OIDC_AUDIENCE = env.str("ACCELHUB_OIDC_AUDIENCE", "pytorch-cross-repo-ci-relay")
# Trust anchors are configuration of the server, never data. Each: issuer, jwks_url, kind.
OIDC_ISSUERS = env.json("ACCELHUB_OIDC_ISSUERS", json.loads(_demo.oidc_issuers)) or [
    {
        "issuer": "https://token.actions.githubusercontent.com",
        "jwks_url": "https://token.actions.githubusercontent.com/.well-known/jwks",
        "kind": "github",
    },
    {
        "issuer": "https://agent.buildkite.com",
        "jwks_url": "https://agent.buildkite.com/.well-known/jwks",
        "kind": "buildkite",
    },
]

# --- HTTP -------------------------------------------------------------------------------------------------------
ALLOWED_HOSTS = env.list("ACCELHUB_ALLOWED_HOSTS", default=[_base.hostname, "localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = [f"{_base.scheme}://{_base.netloc}"]
_https = _base.scheme == "https"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _https
# Cookies are shared by all ports of a host: two hubs on one machine must not sign each other out.
SESSION_COOKIE_NAME = "accelhub_session" if _https else f"accelhub_session_{PORT}"
CSRF_COOKIE_NAME = "accelhub_csrf" if _https else f"accelhub_csrf_{PORT}"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _https else None
SECURE_HSTS_SECONDS = 31_536_000 if _https and not is_loopback(_base.hostname) else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# A webhook may carry 25 MB (GitHub's own limit); the callback route has its own, smaller cap.
DATA_UPLOAD_MAX_MEMORY_SIZE = 26_214_400
# Files of one upload. Django counts them as they come in.
DATA_UPLOAD_MAX_NUMBER_FILES = 100
# Where uploads lie while they come in: beside their place, so that moving them there copies nothing.
INCOMING_DIR = DATA_DIR / "incoming"

from csp.constants import NONE, SELF  # noqa: E402

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    },
}

INSTALLED_APPS = [
    "accelhub",
    "apps.core",
    "apps.audit",
    "apps.accounts",
    "apps.platforms",
    "apps.relay",
    "apps.results",
    "apps.quarantine",
    "apps.policies",
    "apps.gate",
    "apps.governance",
    "apps.levels",
    "apps.appeals",
    "apps.checks",
    "apps.public",
    "apps.console",
    "apps.simulator",
    "rest_framework",
    "django_htmx",
    "template_partials.apps.SimpleAppConfig",
    "social_django",
    "django.contrib.admin.apps.SimpleAdminConfig",  # the hub's own site: apps/core/admin.py
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "apps.core.middleware.ClockMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "apps.core.middleware.ProblemMiddleware",
]

ROOT_URLCONF = "accelhub.urls"
WSGI_APPLICATION = "accelhub.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": [
                (
                    "template_partials.loader.Loader",
                    [
                        (
                            "django.template.loaders.cached.Loader",
                            [
                                "django.template.loaders.filesystem.Loader",
                                "django.template.loaders.app_directories.Loader",
                            ],
                        )
                    ],
                ),
            ],
            "builtins": [
                "template_partials.templatetags.partials",
                "django.templatetags.static",
                "django.contrib.humanize.templatetags.humanize",
                "apps.core.templatetags.hub",
                "apps.core.templatetags.charts",
                "apps.core.templatetags.lists",
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "apps.core.context.hub",
                "apps.public.context.navigation",
                "apps.console.context.navigation",
            ],
        },
    },
]

# --- storage ----------------------------------------------------------------------------------------------------
_database = database()
DATABASES = {
    "default": _database
    | {
        # One connection per web thread, kept: with CONN_MAX_AGE=0 the callback path falls to a quarter.
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        # A database that does not answer is a 503 within seconds, not a thread that waits.
        "OPTIONS": {"application_name": "accelhub", "connect_timeout": 5} | _database.get("OPTIONS", {}),
    },
}
REDIS_URL = redis_url()
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Uploaded reports and what is made of them.
STORAGES = {
    "default": storage(DATA_DIR),
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# Upstream's list of disabled tests, shown beside tests; empty: it is not fetched.
DISABLED_TESTS_URL = env.str("ACCELHUB_DISABLED_TESTS_URL", "")
# How many days uploaded bytes are kept once they are read, beside what was made of them; 0: for good.
RAW_DAYS = env.int("ACCELHUB_RAW_DAYS", 90)

# --- people -----------------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "accounts.User"
SESSION_ENGINE = "apps.accounts.sessions"
AUTHENTICATION_BACKENDS = ["apps.accounts.backends.HubBackend", "apps.accounts.backends.GitHubBackend"]
# Names and passwords are for demos, development, and operators in an emergency.
LOCAL_SIGN_IN = env.bool("ACCELHUB_LOCAL_SIGN_IN", DEMO or DEBUG)
SOCIAL_AUTH_GITHUB_KEY = env.str("SOCIAL_AUTH_GITHUB_KEY", _demo.oauth_key)
SOCIAL_AUTH_GITHUB_SECRET = env.str("SOCIAL_AUTH_GITHUB_SECRET", _demo.oauth_secret)
# Its members are maintainers: `org/team-slug`.
MAINTAINER_TEAM = env.str("ACCELHUB_MAINTAINER_TEAM", _demo.maintainer_team)
SOCIAL_AUTH_GITHUB_SCOPE = ["user:email", *(["read:org"] if MAINTAINER_TEAM else [])]
SOCIAL_AUTH_PIPELINE = [
    "social_core.pipeline.social_auth.social_details",
    "social_core.pipeline.social_auth.social_uid",
    # Ours: the account of this GitHub id. Nothing is ever matched by login or e-mail address.
    "apps.accounts.backends.account_of_response",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
CSRF_FAILURE_VIEW = "apps.core.views.csrf_failure"
LOGIN_URL = "accounts:login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/"

# --- e-mail -----------------------------------------------------------------------------------------------------
_mail = mail()
EMAIL_BACKEND = _mail["EMAIL_BACKEND"]
EMAIL_FILE_PATH = _mail["EMAIL_FILE_PATH"]
EMAIL_HOST = _mail.get("EMAIL_HOST") or "localhost"
EMAIL_PORT = _mail.get("EMAIL_PORT") or 25
EMAIL_HOST_USER = _mail.get("EMAIL_HOST_USER") or ""
EMAIL_HOST_PASSWORD = _mail.get("EMAIL_HOST_PASSWORD") or ""
EMAIL_USE_TLS = _mail.get("EMAIL_USE_TLS", False)
EMAIL_USE_SSL = _mail.get("EMAIL_USE_SSL", False)
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = env.str("ACCELHUB_EMAIL_FROM", f"AccelHub <accelhub@{_base.hostname}>")

# --- time and words ---------------------------------------------------------------------------------------------
TIME_ZONE = "UTC"
USE_TZ = True
LANGUAGE_CODE = "en"
USE_I18N = False
USE_THOUSAND_SEPARATOR = False

# --- API --------------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "apps.accounts.api.ApiTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["apps.core.api.DeclaredAccess"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "apps.core.api.Negotiation",
    "EXCEPTION_HANDLER": "apps.core.api.problem_handler",
}

# --- background tasks -------------------------------------------------------------------------------------------
CELERY_BROKER_URL = broker_url()
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "relay"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# Nothing in Redis is the only copy (wake-ups are rows): a message lost with its worker may come back this soon.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 600,
    # A Redis that hangs must not hold a web thread: the wake-up rows wait for beat.
    "socket_timeout": 10,
    "socket_connect_timeout": 2,
}
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{levelname} {name}: {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django.server": {"level": "WARNING"},
        "celery": {"level": "WARNING"},
        "kombu": {"level": "WARNING"},
    },
}
