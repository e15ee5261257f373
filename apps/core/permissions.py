"""The permissions that exist. Which role has which stands in apps/accounts/policy.py, as one table."""

import enum


class Permission(enum.StrEnum):
    """Spelled `noun:verb`. The noun is the model's name."""

    LEVEL_CHANGE = "level:change"
    PLATFORM_RENAME = "platform:rename"
    NOTICE_ANSWER = "fallnotice:answer"
    CALENDAR_DECLARE = "platform:declare_calendar"
    PIPELINE_CHANGE = "pipeline:change"
    TRANSFER_DECIDE = "transfer:decide"
    PROPOSAL_DECIDE = "proposal:decide"
    LIMIT_CHANGE = "limit:change"
    OUTCOME_DECLARE = "outcome:declare"
    JOB_ACKNOWLEDGE = "job:acknowledge"
    HEALTH_VIEW = "health:view"
    ALLOWLIST_VIEW = "allowlist:view"
    MEMBERSHIP_CHANGE = "membership:change"
    USER_CHANGE = "user:change"
    ADMIN_VIEW = "admin:view"
    CALLBACK_VIEW_PRIVATE = "callback:view_private"
    PARTICIPATION_CHANGE = "participation:change"
    DISPATCH_VIEW = "dispatch:view"
    DISPATCH_RESEND = "dispatch:resend"
    REJECTION_VIEW = "rejection:view"
    CHECK_RESEND = "check:resend"
    REPORT_VIEW_PRIVATE = "report:view_private"
    REPORT_REMOVE = "report:remove"
    QUARANTINE_CHANGE = "quarantine:change"
    QUARANTINE_DECIDE = "quarantine:decide"
    RULES_CHANGE = "rules:change"
    PROMOTION_OPEN = "promotion:open"
    PROMOTION_DECIDE = "promotion:decide"
    WAIVER_GRANT = "waiver:grant"
    APPEAL_OPEN = "appeal:open"
    APPEAL_DECIDE = "appeal:decide"
    POLICY_CHANGE = "policy:change"
    OVERRIDE_GRANT = "override:grant"
    BREAKER_CLOSE = "breaker:close"
    RELAY_VIEW = "relay:view"
    COMPONENT_VIEW = "component:view"


class Open(enum.StrEnum):
    """The declarations that ask for no role."""

    PUBLIC = "public"  # anyone may call it
    SIGNED = "signed"  # the view itself verifies a signature: HMAC or OIDC
    SIGNED_IN = "signed in"  # any user


Access = Permission | Open
