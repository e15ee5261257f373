"""PostgreSQL and Redis that the hub brings itself, for when DATABASE_URL or REDIS_URL is unset (docs/adr/0004)."""

from accelhub.embedded.folders import EmbeddedError, FolderLock
from accelhub.embedded.services import Services, services_for_command, wanted_services

__all__ = ["EmbeddedError", "FolderLock", "Services", "services_for_command", "wanted_services"]
