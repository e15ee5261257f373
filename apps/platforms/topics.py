"""Wake-up topics of platforms. Keys are primary keys as text."""

REPOSITORY_UNPINNED = "repository_unpinned"
# A listing has changed: what stands on pull requests may no longer be asked for.
LISTING_FOR_CHECKS = "listing_for_checks"
