"""Signing in and out."""

from django.contrib.auth.views import LoginView, LogoutView

from apps.accounts.demo import DEMO_ACCOUNTS
from apps.core.access import public


class _LoginView(LoginView):
    template_name = "accounts/login.html"
    redirect_authenticated_user = True
    extra_context = {"demo_accounts": DEMO_ACCOUNTS}  # the template shows them in demo mode only


login = public(_LoginView.as_view())
logout = public(LogoutView.as_view())
