"""Signing in and out."""

import logging
import unicodedata
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth import login as begin_session
from django.contrib.auth.views import LoginView, LogoutView
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST
from social_core.exceptions import AuthCanceled, AuthInputError, AuthSessionError, SocialAuthBaseException
from social_django.utils import load_backend, load_strategy

from apps.accounts.backends import GitHubBackend, HubBackend
from apps.accounts.demo import DEMO_ACCOUNTS
from apps.accounts.github import is_in_maintainer_team, is_offered, keep_token, with_github_form
from apps.accounts.services import digest_of, sync_team_role
from apps.core.access import public
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.limits import Limit

log = logging.getLogger(__name__)

_NEXT = "github_next"
_UNFINISHED_SECONDS = 1_800


# Of one name: guessing a password takes longer than anyone has. Of all: each costs the hub the time of a slow hash.
FAILED_SIGN_INS = Limit("sign-in", 10, "failed sign-ins with this name")
ALL_FAILED_SIGN_INS = Limit("sign-ins", 60, "failed sign-ins with name and password")


def _named(request: HttpRequest) -> str:
    """Whom a sign-in is about, as a key of bounded length: every spelling that the form takes for one name is one."""
    return digest_of(unicodedata.normalize("NFKC", request.POST.get("username", "")).strip().casefold())


class _LoginView(LoginView):
    template_name = "accounts/login.html"
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        response: Any = super().dispatch(request, *args, **kwargs)
        return with_github_form(response) if is_offered() else response

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not settings.LOCAL_SIGN_IN:
            raise Problem("not_permitted", "Names and passwords are not taken here: sign in with GitHub.")
        ALL_FAILED_SIGN_INS.check("")
        FAILED_SIGN_INS.check(_named(request))
        return super().post(request, *args, **kwargs)

    def form_invalid(self, form: Any) -> HttpResponse:
        ALL_FAILED_SIGN_INS.take("")
        FAILED_SIGN_INS.take(_named(self.request))
        return super().form_invalid(form)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            is_github_offered=is_offered(),
            is_local_offered=settings.LOCAL_SIGN_IN,
            demo_accounts=DEMO_ACCOUNTS,  # the template shows them in demo mode only
            **kwargs,
        )


login = public(_LoginView.as_view())
logout = public(LogoutView.as_view())


def _github(request: HttpRequest) -> GitHubBackend:
    if not is_offered():
        raise Http404
    backend: GitHubBackend = load_backend(load_strategy(request), "github", reverse("accounts:github_callback"))
    return backend


@public
@never_cache
@require_POST
def github(request: HttpRequest) -> HttpResponse:
    """`/accounts/github/`: on to GitHub, to come back to `next`, which is an address of this hub or nothing."""
    backend = _github(request)
    # Nobody is signed in yet: whoever does not come back within half an hour leaves nothing.
    request.session.set_expiry(_UNFINISHED_SECONDS)
    request.session[_NEXT] = _local(request, request.POST.get(REDIRECT_FIELD_NAME, ""))
    answer: HttpResponse = backend.start()
    return answer


@public
@never_cache
@require_GET
def github_callback(request: HttpRequest) -> HttpResponse:
    """`/accounts/github/callback/`: back from GitHub: the browser that was sent there, once, within half an hour."""
    backend = _github(request)
    target = request.session.pop(_NEXT, "")
    try:
        # Whoever is signed in already stays out of it: no account is ever linked to another.
        user: Any = backend.complete(user=None)
    except SocialAuthBaseException as error:
        log.warning("sign-in with GitHub failed: %s, %s", error.stage, error.code)
        return _back_to_login(request, _words(error))
    if not user or not HubBackend().user_can_authenticate(user):
        return _back_to_login(request, "This account is switched off: ask an admin of the hub.")
    is_member = is_in_maintainer_team(user, backend.user_token)
    sync_team_role(user=user, team=settings.MAINTAINER_TEAM, is_member=is_member, now=now())
    begin_session(request, user, backend=f"{HubBackend.__module__}.{HubBackend.__qualname__}")
    request.session.set_expiry(None)
    keep_token(request, backend.user_token)
    return redirect(_local(request, target) or settings.LOGIN_REDIRECT_URL)


def _local(request: HttpRequest, target: str) -> str:
    """An address of this hub, as it was given; empty for any other."""
    hosts = {request.get_host()}
    return target if url_has_allowed_host_and_scheme(target, hosts, require_https=request.is_secure()) else ""


def _back_to_login(request: HttpRequest, words: str) -> HttpResponse:
    messages.error(request, words)
    return redirect("accounts:login")


def _words(error: SocialAuthBaseException) -> str:
    match error:
        case AuthCanceled():
            return "GitHub was told no, so you are not signed in."
        case AuthSessionError() | AuthInputError() | SocialAuthBaseException(code="authorization_code_rejected"):
            return "This sign-in was not begun in this browser, or too long ago. Begin again."
    return "GitHub did not answer as expected. Try again in a few minutes; if it stays, tell the hub's operators."
