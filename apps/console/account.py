"""One's own account: what it may do, its sessions, its API tokens."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.accounts import selectors
from apps.accounts.forms import TokenForm
from apps.accounts.services import actor_of, create_api_token, revoke_api_token, sign_out_everywhere
from apps.core.access import requires
from apps.core.clock import now
from apps.core.permissions import Open, Permission
from apps.platforms.selectors import member_platforms


@requires(Open.SIGNED_IN)
@never_cache
@require_http_methods(["GET", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """`/account/`: the signed-in user's own.

    POST `act`: `create` (`note`; the token is shown in the answer, once), `revoke` (`token`), `sign_out`.
    """
    user: Any = request.user
    form, token = TokenForm(), ""
    match request.method, request.POST.get("act"):
        case "POST", "create":
            form = TokenForm(request.POST)
            if form.is_valid():
                token = create_api_token(user=user, actor=actor_of(user), now=now(), **form.cleaned_data)
                form = TokenForm()
        case "POST", "revoke":
            found = selectors.own_token_or_404(user, request.POST.get("token", ""))
            revoke_api_token(token=found, actor=actor_of(user), now=now())
            messages.success(request, f"The API token for {found.note} is revoked.")
            return redirect("console:account")
        case "POST", "sign_out":
            count = sign_out_everywhere(user=user, actor=actor_of(user), now=now())
            request.session.flush()
            browsers = "1 browser" if count == 1 else f"{count} browsers"
            messages.success(request, f"Signed out everywhere: {browsers}. API tokens stay until you revoke them.")
            return redirect("accounts:login")
        case "POST", _:
            raise Http404
    moment = now()
    context = {
        "roles": selectors.roles_granted(user),
        "platforms": list(member_platforms(user).order_by("name")),
        "sessions": selectors.count_sessions(user, now=moment),
        "tokens": list(selectors.tokens_of(user)),
        "form": form,
        "token": token,
        "may_change_users": user.may(Permission.USER_CHANGE),
        "may_see_tables": user.may(Permission.ADMIN_VIEW),
        "now": moment,
    }
    return render(request, "console/account.html", context)
