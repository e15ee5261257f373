"""Wake-up topics of platforms. Keys are primary keys as text."""

REPOSITORY_UNPINNED = "repository_unpinned"
EDIT_PENDING = "allowlist_edit_pending"
SYNC_WANTED = "allowlist_sync_wanted"
# Heard by governance, which owns proposals and e-mails.
DECISION_PUT_BACK = "decision_put_back"
ALLOWLIST_ALARM = "allowlist_alarm"
# A listing has changed: what stands on pull requests may no longer be asked for.
LISTING_FOR_CHECKS = "listing_for_checks"
# A repository begins to block, or no longer does; heard by the gate.
BLOCKING_CHANGED = "blocking_changed"
REPOSITORY_RENAMED = "repository_renamed"
