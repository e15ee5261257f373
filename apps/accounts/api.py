"""How a program signs in to the API."""

from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from apps.accounts.backends import HubBackend
from apps.accounts.models import ApiToken, User
from apps.accounts.services import digest_of


class ApiTokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer ahub_…`. Anything else in the header is left to the next way of signing in."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, text = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = ApiToken.objects.select_related("user").filter(digest=digest_of(text.strip())).first()
        if token is None or not HubBackend().user_can_authenticate(token.user):
            raise AuthenticationFailed(
                "This API token is unknown or its user is no longer active: make one on /account/."
            )
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="AccelHub"'
