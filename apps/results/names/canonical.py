"""From a name as it is written to a test's identity, and back: `restore(canonical) == original`, always.

A platform's report has few spellings: a folder before its files, a device behind its names. Each is kept once and a
test keeps its number, so the original name of every row can be said again without storing it.
"""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from apps.core.text import storable
from apps.results.names import rules

ALL = -1
# Beyond so many ways of spelling in one report, names stay as they are written.
SPELLINGS_MAX = 4_096
DIGEST_BYTES = 16
_SEPARATORS = 2
# So many classes are remembered at once: a whole run of PyTorch has a few thousand.
_PLACES_MAX = 20_000
# And so many ways in which dtypes follow a device.
_TAILS_MAX = 10_000


class Spelling(NamedTuple):
    """How a name was written, told without the name itself. The default: exactly like the identity.

    The file: `root` before it, `separator` between folders, `ending` behind, and how many of the identity's parts were
    written (`file_parts`, ALL for all). The class: `head` before it, then so many parts of the file as a module, and
    the device behind it. The name: the device in it. `mark` was put behind the name to keep two tests apart.
    """

    root: str = ""
    separator: str = "/"
    ending: str = ""
    file_parts: int = ALL
    head: str = ""
    module_parts: int = 0
    class_device: str = ""
    name_device: str = ""
    mark: str = ""


def spelling_of(values: list[str | int]) -> Spelling:
    """Back from the list that JSON keeps. Raises ValueError where it is not a spelling's."""
    if [type(value) for value in values] != [type(value) for value in AS_WRITTEN]:
        raise ValueError(f"spelling: {values!r} is not a list of {len(AS_WRITTEN)} values of a spelling.")
    return Spelling(*values)  # type: ignore[arg-type]


AS_WRITTEN = Spelling()


class Original(NamedTuple):
    """A test as its report writes it. A part that nobody said is ''."""

    file: str
    class_name: str
    name: str


class Canonical(NamedTuple):
    """A test's identity, and how it was written."""

    file: str
    class_name: str
    name: str
    spelling: Spelling


class _Place(NamedTuple):
    """A file and a class: their identity, and which spellings were seen there, by the device in the name."""

    file: str
    class_name: str
    spelling: Spelling
    numbers: dict[str, int]


class Canonicals:
    """The rules for one platform's words: (file, class, name) as written → Canonical.

    One for a report: it remembers what it worked out for each class, and numbers the report's spellings.
    """

    def __init__(self, words: frozenset[str]) -> None:
        self._class = rules.class_pattern(words)
        self._ends = [(word, f"_{word}") for word in sorted(words)]
        self._places: dict[tuple[str, str], _Place] = {}
        self._tails: set[str] = {""}
        self._numbers: dict[Spelling, int] = {AS_WRITTEN: 0}
        self._spellings = [AS_WRITTEN]

    @property
    def spellings(self) -> tuple[Spelling, ...]:
        """The spellings so far, by their numbers."""
        return tuple(self._spellings)

    def number(self, spelling: Spelling) -> int:
        """A spelling's number, a new one if need be."""
        number = self._numbers.get(spelling)
        if number is None:
            number = self._numbers[spelling] = len(self._spellings)
            self._spellings.append(spelling)
        return number

    def of(self, file: str, class_name: str, name: str) -> Canonical:
        """The identity of one test."""
        place = self._place(file, class_name)
        canonical_name, device = self._without_device(name)
        number = self._number_at(place, device)
        if number is None:
            return as_written(file, class_name, name)
        return Canonical(place.file, place.class_name, canonical_name, self._spellings[number])

    def digests(self, originals: Iterable[tuple[str, str, str]]) -> tuple[list[bytes], list[int]]:
        """Of many tests, the digests of their identities and the numbers of their spellings: `of` without the texts.

        This is the loop over 600,000 names."""
        digests, numbers = [], []
        blake2b = hashlib.blake2b
        is_storable = True
        last: tuple[str, str] | None = None
        place = _Place("", "", AS_WRITTEN, {})
        beginning = ""
        for file, class_name, name in originals:
            if last is None or class_name != last[1] or file != last[0]:
                last = (file, class_name)
                place = self._place(file, class_name)
                beginning = f"{place.file}\0{place.class_name}\0"
                is_storable = beginning.count("\0") == _SEPARATORS
            canonical_name, device = self._without_device(name)
            number = place.numbers.get(device)
            if number is None and (number := self._number_at(place, device)) is None:
                digests.append(digest_of(file, class_name, name))
                numbers.append(0)
                continue
            key = beginning + canonical_name
            if key.isascii() and "\0" not in canonical_name and is_storable:
                digests.append(blake2b(key.encode(), digest_size=DIGEST_BYTES).digest())
            else:
                digests.append(digest_of(place.file, place.class_name, canonical_name))
            numbers.append(number)
        return digests, numbers

    def _without_device(self, name: str) -> tuple[str, str]:
        """A name with the device's place in place of the device, and the device; the name itself and '' where it is
        not at its place."""
        for word, end in self._ends:
            at = name.rfind(end)
            if at <= 0 or not self._is_tail(tail := name[at + len(end) :]) or name[:at] == rules.NOTHING_NAMED:
                continue
            return f"{name[:at]}_{rules.PLACEHOLDER}{tail}", word
        return name, ""

    def _is_tail(self, text: str) -> bool:
        """Whether nothing but dtypes follows the device."""
        if text in self._tails:
            return True
        if not rules.TAIL.fullmatch(text):
            return False
        if len(self._tails) < _TAILS_MAX:
            self._tails.add(text)
        return True

    def _number_at(self, place: _Place, device: str) -> int | None:
        """The number of a place's spelling with a device in the name; None where the report has too many spellings."""
        if device not in place.numbers:
            spelling = place.spelling._replace(name_device=device)
            if spelling not in self._numbers and len(self._numbers) >= SPELLINGS_MAX:
                return None
            place.numbers[device] = self.number(spelling)
        return place.numbers[device]

    def _place(self, file: str, class_name: str) -> _Place:
        """File and class of an identity, as remembered."""
        place = self._places.get((file, class_name))
        if place is None:
            if len(self._places) >= _PLACES_MAX:
                self._places.clear()
            place = self._places[file, class_name] = self._new_place(file, class_name)
        return place

    def _new_place(self, file: str, class_name: str) -> _Place:
        path, spelling = _path_of(file)
        path, rest, spelling = _without_module(path, class_name, spelling)
        if found := self._class.fullmatch(rest):
            rest, device = found.groups()
            spelling = spelling._replace(class_device=device)
        if restore(Canonical(path, rest, "", spelling)) != (file, class_name, ""):
            return _Place(file, class_name, AS_WRITTEN, {})
        return _Place(path, rest, spelling, {})


def canonical(original: Original, words: frozenset[str]) -> Canonical:
    """One name by itself. For many, keep a Canonicals."""
    return Canonicals(words).of(*original)


def as_written(file: str, class_name: str, name: str) -> Canonical:
    """The identity of a test to which no rule is applied."""
    return Canonical(file, class_name, name, AS_WRITTEN)


def restore(identity: Canonical) -> Original:
    """The name as its report wrote it."""
    file, class_name, name, spelling = identity
    parts = file.split("/")
    written = parts if spelling.file_parts == ALL else parts[len(parts) - spelling.file_parts :]
    joined = spelling.separator.join(written) if written else ""
    dotted = ".".join(parts[len(parts) - spelling.module_parts :] if spelling.module_parts else ())
    class_name += spelling.class_device
    between = "." if dotted and class_name else ""
    if spelling.name_device:
        before, _, after = name.rpartition(rules.PLACEHOLDER)
        name = f"{before}{spelling.name_device}{after}"
    return Original(
        f"{spelling.root}{joined}{spelling.ending}",
        f"{spelling.head}{dotted}{between}{class_name}",
        name.removesuffix(spelling.mark),
    )


def apart(original: Original, number: int) -> Canonical:
    """The identity of a test whose own another test of the report has taken: its original, under number 1; where that
    is taken too, marked with the next number that is free."""
    mark = f" #{number}" if number > 1 else ""
    return Canonical(original.file, original.class_name, original.name + mark, Spelling(mark=mark))


def digest_of(file: str, class_name: str, name: str) -> bytes:
    """The identity's 16 bytes: BLAKE2b of the three parts with NUL between them. What PostgreSQL cannot store counts as
    what it is stored as."""
    data = _storable_data(f"{file}\0{class_name}\0{name}")
    return _hash(data or "\0".join(map(storable, (file, class_name, name))).encode())


def _storable_data(key: str) -> bytes | None:
    """The parts of an identity as bytes; None where one holds what PostgreSQL cannot store."""
    try:
        return key.encode() if key.count("\0") == _SEPARATORS else None
    except UnicodeEncodeError:
        return None


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


def _path_of(file: str) -> tuple[str, Spelling]:
    """A file's path from upstream's test folder on, and how it was written."""
    if not file:
        return "", Spelling(file_parts=0)
    separator = "\\" if "\\" in file and "/" not in file else "/"
    path = file.removesuffix(".py")
    ending = file[len(path) :]
    if not ending and "/" not in path and rules.MODULE.fullmatch(path.rpartition(".")[2]):
        separator = "."
    path = path.replace(separator, "/")
    at = max(path.rfind(root) + len(root) if root in path else 0 for root in rules.ROOTS)
    at = at or _relative_root(path)
    root = file[:at] if at < len(path) else ""
    return path[len(root) :], Spelling(root=root, separator=separator, ending=ending)


def _relative_root(path: str) -> int:
    """How many characters before the path say only where it was run from."""
    at = 0
    for root in rules.RELATIVE_ROOTS:
        while path.startswith(root, at):
            at += len(root)
    return at


def _without_module(path: str, class_name: str, spelling: Spelling) -> tuple[str, str, Spelling]:
    """File and class, with the module taken out of the class."""
    main, _, rest = class_name.partition(".")
    if main == "__main__" and rest:
        return path, rest, spelling._replace(head="__main__.")
    parts = class_name.split(".")
    end = _module_end(parts)
    skipped = 1 if end > 1 and parts[0] == "test" else 0
    module, rest = parts[skipped:end], ".".join(parts[end:])
    if not module:
        return path, class_name, spelling
    known = path.split("/") if path else []
    taken = spelling._replace(head="test." * skipped, module_parts=len(module))
    if known[len(known) - len(module) :] == module:
        return path, rest, taken
    if module[len(module) - len(known) :] == known:
        return "/".join(module), rest, taken._replace(file_parts=len(known))
    return path, class_name, spelling


def _module_end(parts: list[str]) -> int:
    """How many leading parts of a dotted class are its module: up to the last test file before a class begins."""
    end = 0
    for number, part in enumerate(parts, 1):
        if part[:1].isupper():
            break
        if rules.MODULE.fullmatch(part):
            end = number
    return end
