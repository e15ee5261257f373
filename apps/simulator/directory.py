"""The repositories a stand-in knows: names, the numeric ids behind them, and where the App is installed."""

import itertools
import threading
from dataclasses import dataclass, replace
from typing import NamedTuple

# Far above GitHub's real ids, so that a stand-in's id is never mistaken for one.
FIRST_REPOSITORY_ID = 9_800_000_001
FIRST_OWNER_ID = 9_700_000_001
# An App is installed per owner; the id follows from the owner's, so that it survives a restart of the stand-in.
INSTALLATION_OFFSET = 50_000_000


class RepositoryIds(NamedTuple):
    """The numbers that GitHub keeps behind a name."""

    repository_id: int
    owner_id: int
    installation_id: int


@dataclass(frozen=True)
class Repository:
    """One repository. `installed`: the owner gave the App access to it."""

    full_name: str
    id: int
    owner_id: int
    installed: bool = True
    private: bool = False

    @property
    def owner(self) -> str:
        return self.full_name.split("/")[0]

    @property
    def name(self) -> str:
        return self.full_name.split("/")[1]

    @property
    def installation_id(self) -> int:
        return self.owner_id + INSTALLATION_OFFSET

    @property
    def ids(self) -> RepositoryIds:
        return RepositoryIds(self.id, self.owner_id, self.installation_id)


class Directory:
    """Repositories by name (case-insensitively, as GitHub compares) and by id. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_id: dict[int, Repository] = {}
        self._id_by_name: dict[str, int] = {}
        self._former_names: dict[str, int] = {}
        self._owner_ids: dict[str, int] = {}
        self._repository_numbers = itertools.count(FIRST_REPOSITORY_ID)
        self._owner_numbers = itertools.count(FIRST_OWNER_ID)

    def add(
        self,
        full_name: str,
        *,
        installed: bool = True,
        private: bool = False,
        repository_id: int | None = None,
        owner_id: int | None = None,
    ) -> Repository:
        """Register a repository, or change `installed` and `private` of a known one. Ids left out are made up."""
        with self._lock:
            known = self._by_id.get(self._id_by_name.get(full_name.lower(), -1))
            if known is not None:
                return self._put(replace(known, installed=installed, private=private))
            owner = full_name.split("/")[0].lower()
            self._owner_ids[owner] = owner_id or self._owner_ids.get(owner) or next(self._owner_numbers)
            return self._put(
                Repository(
                    full_name,
                    repository_id or next(self._repository_numbers),
                    self._owner_ids[owner],
                    installed,
                    private,
                )
            )

    def rename(self, old: str, new: str) -> Repository:
        """Give a repository another name: its id stays, and the old name redirects. KeyError where `old` is unknown."""
        with self._lock:
            repository = self._by_id[self._id_by_name.pop(old.lower())]
            self._former_names[old.lower()] = repository.id
            owner_id = repository.owner_id
            if new.split("/")[0].lower() != repository.owner.lower():  # a transfer to another owner
                owner = new.split("/")[0].lower()
                owner_id = self._owner_ids.setdefault(owner, next(self._owner_numbers))
            return self._put(replace(repository, full_name=new, owner_id=owner_id))

    def replace(self, full_name: str, *, installed: bool = True) -> Repository:
        """Another owner registers the same name after the first gave it up: new ids. KeyError where it is unknown."""
        with self._lock:
            gone = self._by_id.pop(self._id_by_name[full_name.lower()])
            self._owner_ids[gone.owner.lower()] = owner_id = next(self._owner_numbers)
            return self._put(Repository(gone.full_name, next(self._repository_numbers), owner_id, installed))

    def find(self, full_name: str) -> Repository | None:
        """The repository that bears this name now."""
        with self._lock:
            return self._by_id.get(self._id_by_name.get(full_name.lower(), -1))

    def moved(self, full_name: str) -> Repository | None:
        """The repository that once bore this name, while nobody else has taken it."""
        with self._lock:
            if full_name.lower() in self._id_by_name:
                return None
            return self._by_id.get(self._former_names.get(full_name.lower(), -1))

    def reached(self, full_name: str) -> Repository | None:
        """The repository that this name leads to, by a redirect where it is a former one."""
        return self.find(full_name) or self.moved(full_name)

    def by_id(self, repository_id: int) -> Repository | None:
        with self._lock:
            return self._by_id.get(repository_id)

    def installed_at(self, installation_id: int) -> list[Repository]:
        """What one installation of the App can reach."""
        with self._lock:
            return [r for r in self._by_id.values() if r.installed and r.installation_id == installation_id]

    def _put(self, repository: Repository) -> Repository:
        self._by_id[repository.id] = repository
        self._id_by_name[repository.full_name.lower()] = repository.id
        self._former_names.pop(repository.full_name.lower(), None)
        return repository
