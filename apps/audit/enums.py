"""The vocabulary of the log."""

from django.db import models


class Action(models.TextChoices):
    """What happened, spelled `noun.verb` in the past tense. The noun is the subject's model."""

    LEVEL_CHANGED = "repository.level_changed", "Level changed"
    REPOSITORY_LISTED = "repository.listed", "Repository listed"
    DETAILS_CHANGED = "repository.details_changed", "Listing details changed"
    REPOSITORY_ATTACHED = "repository.attached", "Repository attached to a platform"
    IDENTITY_PINNED = "repository.identity_pinned", "Identity pinned"
    IDENTITY_REPINNED = "repository.identity_repinned", "Identity corrected"
    TENURE_IMPORTED = "repository.tenure_imported", "Earlier level imported"
    HISTORY_IMPORTED = "job.history_imported", "Job history imported"
    PLATFORM_CREATED = "platform.created", "Platform created"
    PLATFORM_RENAMED = "platform.renamed", "Platform renamed"
    PROPOSAL_SUBMITTED = "proposal.submitted", "Proposal submitted"
    PROPOSAL_RETURNED = "proposal.returned", "Proposal returned"
    PROPOSAL_RESUBMITTED = "proposal.resubmitted", "Proposal submitted again"
    PROPOSAL_WITHDRAWN = "proposal.withdrawn", "Proposal withdrawn"
    ROLE_GRANTED = "user.role_granted", "Role granted"
    ROLE_REMOVED = "user.role_removed", "Role removed"
    ORGANISATION_CREATED = "organisation.created", "Organisation created"
    ORGANISATION_SET = "user.organisation_set", "Organisation set"
    SIGNED_OUT_EVERYWHERE = "user.signed_out_everywhere", "Signed out everywhere"
    SWITCHED_OFF = "user.switched_off", "Account switched off"
    SWITCHED_ON = "user.switched_on", "Account switched on"
    MEMBER_ADDED = "platform.member_added", "Member added"
    MEMBER_REMOVED = "platform.member_removed", "Member removed"
    INVITATION_CREATED = "platform.invitation_created", "Invitation created"
    INVITATION_WITHDRAWN = "platform.invitation_withdrawn", "Invitation withdrawn"
    TOKEN_CREATED = "user.token_created", "API token created"
    TOKEN_REVOKED = "user.token_revoked", "API token revoked"


class ActorKind(models.TextChoices):
    USER = "user", "user"
    COMMAND = "command", "operator's command"
    HUB = "hub", "the hub itself"
