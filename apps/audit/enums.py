"""The vocabulary of the log."""

from django.db import models


class Action(models.TextChoices):
    """What happened, spelled `noun.verb` in the past tense. The noun is the subject's model."""

    LEVEL_CHANGED = "repository.level_changed", "Level changed"
    REPOSITORY_LISTED = "repository.listed", "Repository listed"
    DETAILS_CHANGED = "repository.details_changed", "Listing details changed"
    IDENTITY_PINNED = "repository.identity_pinned", "Identity pinned"
    IDENTITY_REPINNED = "repository.identity_repinned", "Identity corrected"
    PLATFORM_CREATED = "platform.created", "Platform created"
    PLATFORM_RENAMED = "platform.renamed", "Platform renamed"
    ROLE_GRANTED = "user.role_granted", "Role granted"
    MEMBER_ADDED = "platform.member_added", "Member added"
    TOKEN_CREATED = "user.token_created", "API token created"


class ActorKind(models.TextChoices):
    USER = "user", "user"
    COMMAND = "command", "operator's command"
    HUB = "hub", "the hub itself"
