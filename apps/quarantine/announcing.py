"""Who is told of what becomes of a quarantine, beyond the log and its feed."""

import datetime

from django.db.models import Q
from django.db.models.functions import Lower

from apps.accounts.models import User
from apps.audit.models import Event
from apps.governance.notices import announce_event
from apps.platforms.models import Platform, Repository


def announce(event: Event, *, platform: Platform, link: str, now: datetime.datetime) -> int:
    """Write to the platform's members; where the event is public, to its repositories' oncalls too, as far as they have
    signed in here. Returns how many are told."""
    readers = Q(memberships__platform=platform)
    if event.is_decision:
        lists = Repository.objects.filter(platform=platform).values_list("oncalls", flat=True)
        readers |= Q(login__in={login.lower() for oncalls in lists for login in oncalls})
    found = User.objects.alias(login=Lower("github_login")).filter(readers).values("pk")
    return announce_event(event, readers=User.objects.filter(pk__in=found), link=link, now=now)
