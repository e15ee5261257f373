"""The people of a stand-in: fictional GitHub users, the teams they are in, the repositories they may write to.

None of them exists. As with the platforms, every login carries `demo`.
"""

import itertools
import threading
from dataclasses import dataclass, field, replace
from typing import Any

from apps.simulator.directory import Repository

# Far above GitHub's real ids, so that a stand-in's user is never mistaken for one.
FIRST_ID = 9_500_000_001
MAINTAINERS = "accelhub-demo/relay-maintainers"


@dataclass(frozen=True)
class Person:
    """One user. `teams` are `org/team-slug`; `pending` ones are invitations not yet accepted. `writes` are full names,
    `write_ids` ids of repositories that they may push to."""

    login: str
    id: int
    name: str
    about: str = ""
    teams: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    write_ids: frozenset[int] = field(default=frozenset())

    @property
    def email(self) -> str:
        return f"{self.login}@example.com"

    def may_push(self, repository: Repository) -> bool:
        return repository.id in self.write_ids or repository.full_name in self.writes


PEOPLE: tuple[Person, ...] = (
    Person(
        "demo-mika",
        FIRST_ID,
        "Mika (fictional)",
        f"in the team {MAINTAINERS}",
        teams=frozenset({MAINTAINERS}),
    ),
    Person(
        "demo-pallas-dev",
        FIRST_ID + 1,
        "Pallas developer (fictional)",
        "may write to pallas-demo/torch-pallas",
        writes=frozenset({"pallas-demo/torch-pallas"}),
    ),
    Person("demo-newcomer", FIRST_ID + 2, "Newcomer (fictional)", "nobody in particular"),
)


class People:
    """Users by login (in any case of letters) and by id. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_id = {person.id: person for person in PEOPLE}
        self._numbers = itertools.count(FIRST_ID + 1000)

    def all(self) -> list[Person]:
        with self._lock:
            return sorted(self._by_id.values(), key=lambda person: person.id)

    def find(self, login: str) -> Person | None:
        with self._lock:
            return self._find(login)

    def by_id(self, person_id: int) -> Person | None:
        with self._lock:
            return self._by_id.get(person_id)

    def add(self, login: str, *, teams: frozenset[str] | set[str] = frozenset()) -> Person:
        """A new user, with an id of their own."""
        with self._lock:
            return self._put(Person(login, next(self._numbers), login.title(), teams=frozenset(teams)))

    def rename(self, old: str, new: str) -> Person:
        """Another login for the same user; anyone may register the old one then. KeyError where it is unknown."""
        return self._change(old, login=new)

    def put_in_teams(self, login: str, teams: set[str], *, pending: set[str] | None = None) -> Person:
        """The teams they are in from now on. KeyError where the login is unknown."""
        return self._change(login, teams=frozenset(teams), pending=frozenset(pending or ()))

    def allow_push(self, login: str, *repositories: int) -> Person:
        """The ids of the repositories they may write to from now on. KeyError where the login is unknown."""
        return self._change(login, writes=frozenset(), write_ids=frozenset(repositories))

    def remove(self, login: str) -> None:
        """Delete an account. KeyError where the login is unknown."""
        with self._lock:
            del self._by_id[self._known(login).id]

    def _change(self, known_as: str, **values: Any) -> Person:
        with self._lock:
            return self._put(replace(self._known(known_as), **values))

    def _known(self, login: str) -> Person:
        person = self._find(login)
        if person is None:
            raise KeyError(login)
        return person

    def _find(self, login: str) -> Person | None:
        return next((p for p in self._by_id.values() if p.login.lower() == login.lower()), None)

    def _put(self, person: Person) -> Person:
        self._by_id[person.id] = person
        return person
