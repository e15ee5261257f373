"""Who speaks for a platform: its members' page, an invitation's page, and the proof of write access."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.github import is_offered, kept_token, with_github_form
from apps.accounts.services import actor_of
from apps.core.access import requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.github import GitHubUser
from apps.core.permissions import Open, Permission
from apps.platforms import selectors
from apps.platforms.forms import InvitationForm
from apps.platforms.members import (
    INVITATION_DAYS,
    accept_invitation,
    create_invitation,
    join_by_write_access,
    remove_member,
    withdraw_invitation,
)
from apps.platforms.models import Platform


@requires(Open.SIGNED_IN)
@never_cache
@require_http_methods(["GET", "POST"])
def members(request: HttpRequest, slug: str) -> HttpResponse:
    """`/platforms/<slug>/members/`: who speaks for it, and how to come to do so.

    POST `act` for members and maintainers: `invite` (`note`; the link is shown in the answer, once), `withdraw`
    (`invitation`), `remove` (`user`).
    """
    user: Any = request.user
    platform = selectors.platform_or_404(slug)
    may_change = selectors.may_on_platform(user, Permission.MEMBERSHIP_CHANGE, platform)
    is_inviting = request.method == "POST" and request.POST.get("act") == "invite"
    form = InvitationForm(request.POST if is_inviting else None)
    link = ""
    if request.method == "POST":
        if not may_change:
            raise PermissionDenied("Only who speaks for the platform, or a maintainer, may change who does.")
        if not is_inviting:
            return _change(request, platform)
        if form.is_valid():
            link = _invite(request, platform, form)
            form = InvitationForm() if link else form
    moment = now()
    context = {
        "platform": platform,
        "may_change": may_change,
        "memberships": list(selectors.memberships_of(platform)) if may_change else [],
        "invitations": list(selectors.open_invitations(platform, now=moment)) if may_change else [],
        "is_member": selectors.member_platforms(user).filter(pk=platform.pk).exists(),
        "repositories": list(platform.repositories.all()),
        "has_github": bool(kept_token(request)),
        "is_github_offered": is_offered(),
        "form": form,
        "link": link,
        "days": INVITATION_DAYS,
        "now": moment,
    }
    return with_github_form(render(request, "platforms/platform_members.html", context))


def _invite(request: HttpRequest, platform: Platform, form: InvitationForm) -> str:
    """The new link; empty, with the refusal on the form, when there is none."""
    user: Any = request.user
    try:
        _, code = create_invitation(
            platform=platform, inviter=user, actor=actor_of(user), now=now(), **form.cleaned_data
        )
    except Problem as problem:
        form.add_error(None, problem.detail)
        return ""
    return settings.BASE_URL + reverse("platforms:invitation", args=[code])


def _change(request: HttpRequest, platform: Platform) -> HttpResponse:
    user: Any = request.user
    match request.POST.get("act"):
        case "withdraw":
            invitation = selectors.own_invitation_or_404(platform, request.POST.get("invitation", ""))
            withdraw_invitation(invitation=invitation, actor=actor_of(user), now=now())
            messages.success(request, f"The invitation for {invitation.note} is withdrawn.")
        case "remove":
            member = selectors.member_or_404(platform, request.POST.get("user", ""))
            remove_member(platform=platform, user=member, actor=actor_of(user), now=now())
            messages.success(request, f"{member} no longer speaks for {platform.name}.")
        case _:
            raise Http404
    return redirect("platforms:members", slug=platform.slug)


@requires(Open.SIGNED_IN)
@require_POST
def claim(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    """`/repositories/<owner>/<name>/claim/`: “I maintain this repository”, checked with the user's own GitHub token."""
    user: Any = request.user
    repository = selectors.repository_or_404(owner, name)
    token = kept_token(request)
    if not token:
        raise Problem("write_access", "Your session did not begin with GitHub, so it cannot be asked for you.")
    github = GitHubUser(api_url=settings.GITHUB_API_URL, token=token)
    is_new = join_by_write_access(repository=repository, user=user, github=github, actor=actor_of(user), now=now())
    said = "You now speak" if is_new else "You already spoke"
    messages.success(request, f"{said} for {repository.platform.name}.")
    return redirect("platforms:members", slug=repository.platform.slug)


@requires(Open.SIGNED_IN)
@never_cache
@require_http_methods(["GET", "POST"])
def invitation(request: HttpRequest, code: str) -> HttpResponse:
    """`/invitations/<code>/`: what the invitation is to; POST accepts it."""
    user: Any = request.user
    found = selectors.invitation_or_404(code)
    if request.method == "POST":
        accept_invitation(invitation=found, user=user, actor=actor_of(user), now=now())
        messages.success(request, f"You now speak for {found.platform.name}.")
        return redirect("platforms:members", slug=found.platform.slug)
    moment = now()
    if found.accepted_at or found.withdrawn_at or found.expires_at <= moment:
        raise Problem("invitation_closed", "It was used, withdrawn, or is older than seven days.")
    return render(request, "platforms/invitation.html", {"invitation": found, "now": moment})
