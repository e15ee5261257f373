"""Wake-up topics of platforms. Keys are primary keys as text."""

REPOSITORY_UNPINNED = "repository_unpinned"
REPOSITORY_RENAMED = "repository_renamed"
