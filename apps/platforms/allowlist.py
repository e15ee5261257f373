"""The allowlist file that upstream's relay and merge bot read: text to entries and back. Pure: no database, no clock.

The format in full. Top keys `L1` to `L4`; one that is missing or empty lists nobody. `L1`, `L2` and `L4` hold a list
of `owner/repo` or `owner/repo: VALUE`; `L3` holds devices, each a mapping of `owner/repo: VALUE`. VALUE is nothing, or
oncalls (`alice, bob` or `[alice, bob]`), or a mapping with `oncalls` and `events` (a list; left out: every event).

The file decides who is listed, so nothing in it is guessed at: what upstream would drop, merge or convert in silence is
refused here with its place. Names are read from YAML's node graph, hence stay text as written (`no`, `1.0`, `null`).
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import yaml

PULL_REQUEST, NIGHTLY = "pull_request", "nightly"
EVENT_WORDS = {PULL_REQUEST: PULL_REQUEST, "push": PULL_REQUEST, NIGHTLY: NIGHTLY}
EVERY_EVENT = frozenset(EVENT_WORDS.values())
LEVELS = {"L1": 1, "L2": 2, "L3": 3, "L4": 4}
KINDS: dict[type[yaml.Node], str] = {yaml.SequenceNode: "a list", yaml.MappingNode: "a mapping"}

MAX_BYTES = 1_000_000
MAX_ENTRIES = 5_000
MAX_FINDINGS = 1_000
MAX_SHOWN = 60  # characters of a value in a message
MAX_DEPTH = 8  # a valid file needs 5: the file, L3, a device, VALUE, oncalls
TOO_DEEP = (f"this is nested more than {MAX_DEPTH} deep", "each entry as `owner/repo: alice, bob`")

LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}")  # `_` parts off the company in managed accounts
FULL_NAME = re.compile(LOGIN.pattern + r"/(?!\.{1,2}(?![A-Za-z0-9._-]))[A-Za-z0-9._-]{1,100}")
DEVICE = re.compile(r"[!-~]{1,38}")  # `ciflow/crcr/<device>` is a label, and GitHub ends those at 50 characters
UNPRINTABLE = re.compile(r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_, -]*")
YAML_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
LINE_BREAK = re.compile(r"\r\n|[\r\n\x85\u2028\u2029]")


@dataclass(frozen=True)
class Entry:
    """One listed repository. `device` only at level 3; two entries are equal wherever they stand in a file."""

    level: int
    full_name: str
    device: str = ""
    oncalls: tuple[str, ...] = ()
    events: frozenset[str] = EVERY_EVENT
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)

    @property
    def key(self) -> str:
        """The name as GitHub compares it: without regard to case."""
        return self.full_name.lower()


@dataclass(frozen=True)
class Allowlist:
    """A file that was read: its entries by level, and within a level as the file orders them."""

    entries: tuple[Entry, ...]

    @cached_property
    def by_key(self) -> dict[str, Entry]:
        """Every entry under its lower-case name."""
        return {entry.key: entry for entry in self.entries}

    def find(self, full_name: str) -> Entry | None:
        """The entry of `owner/repo`, in any case of letters, or None for a repository that is not listed."""
        return self.by_key.get(full_name.lower())

    def renamed(self, former: Mapping[str, str]) -> "Allowlist":
        """The list by present names: `former` has them by former ones, in lower case. An entry under a former name
        keeps it where the file has the present name too, or an entry before it came to bear that."""
        taken, entries = set(self.by_key), []
        for entry in self.entries:
            present = former.get(entry.key, entry.full_name)
            if present.lower() not in taken:
                taken.add(present.lower())
                entry = replace(entry, full_name=present)
            entries.append(entry)
        return Allowlist(tuple(entries))


@dataclass(frozen=True, order=True)
class Finding:
    """One problem: its place (counted from 1), what was seen there, and what to write instead."""

    line: int
    column: int
    message: str
    instead: str

    @classmethod
    def at(cls, mark: yaml.Mark, message: str, instead: str) -> "Finding":
        """A finding at a place that YAML counts from 0."""
        return cls(mark.line + 1, mark.column + 1, message, instead)

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message} — write {self.instead}"


class AllowlistError(ValueError):
    """The file is refused. `findings` has its problems in the order of their places, at most MAX_FINDINGS and one."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(sorted(findings))
        super().__init__("\n".join(map(str, self.findings)))


def parse(text: str) -> Allowlist:
    """Read an allowlist file.

    Args: `text`, the whole file. A file without a single level key is refused: to import it would unlist everyone.
    Returns: the entries of a file without any problem.
    Raises: AllowlistError with every problem found; with just the first when the text is not plain YAML.
    """
    text = text.removeprefix("\ufeff")
    _refuse_characters(text)
    reader = _Reader()
    reader.read(_compose(text))
    if reader.findings:
        raise AllowlistError(reader.findings)
    return Allowlist(tuple(sorted(reader.entries.values(), key=lambda entry: entry.level)))


def dump(entries: Iterable[Entry]) -> str:
    """Write an allowlist file that upstream reads.

    Oncalls below L3 are a list and elsewhere a comma string: the forms that every reader of upstream's has understood.

    Args: `entries` of levels 1 to 4, which keep their order within a level, and at level 3 within a device.
    Returns: the text; `parse` gives equal entries back.
    Raises: ValueError when the format cannot hold them: a repository twice, a device below level 3, no event at all.
    """
    entries = tuple(entries)
    lines: list[str] = []
    for level, number in LEVELS.items():
        devices: dict[str, list[str]] = {}
        for entry in entries:
            if entry.level == number:
                devices.setdefault(entry.device, []).extend(entry_lines(entry, "    " if level == "L3" else "  - "))
        lines.append(f"{level}:")
        for device, below in devices.items():
            lines += [f"  {scalar(device)}:", *below] if level == "L3" else below
    text = "\n".join(lines) + "\n"
    if Counter(parse(text).entries) != Counter(entries):
        raise ValueError("the allowlist file has no way to write one of these entries")
    return text


def entry_lines(entry: Entry, lead: str) -> Iterator[str]:
    """An entry as lines of the file, the first of them behind `lead`: its indentation, and a dash where L3 has none."""
    oncalls = _oncalls_text(entry)
    if entry.events == EVERY_EVENT:
        colon = ":" if oncalls or not lead.strip() else ""
        yield f"{lead}{entry.full_name}{colon} {oncalls}".rstrip()
        return
    yield f"{lead}{entry.full_name}:"
    below = " " * (len(lead) + 2)
    if oncalls:
        yield f"{below}oncalls: {oncalls}"
    yield f"{below}events: [{', '.join(sorted(entry.events))}]"


def _oncalls_text(entry: Entry) -> str:
    if not entry.oncalls:
        return ""
    if entry.level == LEVELS["L3"]:
        return f"[{', '.join(map(scalar, entry.oncalls))}]"
    return scalar(", ".join(entry.oncalls))


def scalar(text: str) -> str:
    """A text in quotes, unless every YAML reader takes it for the same text without (`no` and `1.0` need them)."""
    return text if PLAIN.fullmatch(text) and text.lower() not in YAML_WORDS else json.dumps(text)


def _refuse_characters(text: str) -> None:
    """Raise AllowlistError for a text that is too long, or has a character that YAML does not know."""
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise AllowlistError([Finding(1, 1, "the file is larger than 1 MB", "the list and nothing else")])
    if found := UNPRINTABLE.search(text):
        lines = LINE_BREAK.split(text[: found.start()])
        message = f"the character U+{ord(found[0]):04X} cannot stand in this file"
        raise AllowlistError([Finding(len(lines), len(lines[-1]) + 1, message, "the line without it")])


def _compose(text: str) -> yaml.Node | None:
    """The text's node graph, or None for a text without content. Raises AllowlistError with one finding."""
    depth = 0
    try:
        for event in yaml.parse(text, yaml.CSafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            _refuse_event(event, depth)
        root: yaml.Node | None = yaml.compose(text, yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        raise AllowlistError([_syntax_finding(error, text)]) from None
    return root


def _refuse_event(event: Any, depth: int) -> None:
    """Raise AllowlistError for what YAML can do and this format never needs: each is a way to hide or to inflate."""
    if getattr(event, "anchor", None):
        message, instead = f"the YAML reference {_quote(event.anchor)} is not allowed", "each name in full, no & or *"
    elif getattr(event, "tag", None):
        message, instead = f"the YAML tag {_quote(event.tag)} is not allowed", "the value without it"
    elif isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
        message, instead = "the YAML merge key << is not allowed", "each name in full"
    elif depth > MAX_DEPTH:
        message, instead = TOO_DEEP
    else:
        return
    raise AllowlistError([Finding.at(event.start_mark, message, instead)])


def _syntax_finding(error: yaml.MarkedYAMLError, text: str) -> Finding:
    """The finding for a text that is not YAML, in the author's terms where the mistake is a common one."""
    mark, problem = error.problem_mark, str(error.problem)
    assert mark is not None, "libyaml gives every syntax error a place"
    word = re.split(r"[\s,\[\]{}]", text[mark.index : mark.index + MAX_SHOWN], maxsplit=1)[0]
    if "cannot start any token" in problem and word:
        bare = word.strip(word[0])
        message = f"{_quote(word)} starts with {word[0]}, which YAML reserves"
        instead = f"{bare}, without the {word[0]}" if bare and bare.isascii() else "a name in its place"
    elif "cannot start any token" in problem:
        message, instead = "a tab stands where YAML takes only spaces", "spaces"
    elif "mapping values are not allowed" in problem:
        message, instead = "a second key cannot stand here", "one key to a line, indented as deep as its neighbours"
    elif "another document" in problem:
        message, instead = "a second YAML document starts here", "one document, without ---"
    elif "nesting depth" in problem:
        message, instead = TOO_DEEP
    else:
        start = f"{error.context} from line {error.context_mark.line + 1}, " if error.context_mark else ""
        message = f"this is not YAML: {start}{problem}"
        instead = "every quote and bracket closed, and neighbours indented alike"
    return Finding.at(mark, message, instead)


def _quote(text: str) -> str:
    """A text of the file as a message shows it: on one line and not too long."""
    return repr(text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…")


def _seen(node: yaml.Node) -> str:
    """What stands at a node."""
    return KINDS.get(type(node)) or (_quote(node.value) if node.value else "an empty value")


def _is_null(node: yaml.Node) -> bool:
    """Whether nothing stands at a node: left out, `~` or `null`, without quotes."""
    return bool(node.tag == "tag:yaml.org,2002:null")


class _Reader:
    """One walk over the node graph, in the file's order. It goes on after a problem, so that all are reported."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.entries: dict[str, Entry] = {}

    def report(self, node: yaml.Node, message: str, instead: str) -> None:
        """Note a problem at a node. Raises AllowlistError when there are more than anyone would read."""
        enough = len(self.findings) == MAX_FINDINGS
        if enough:
            message, instead = "there are more problems from here on", "the lines above anew, then check again"
        self.findings.append(Finding.at(node.start_mark, message, instead))
        if enough:
            raise AllowlistError(self.findings)

    def inside(self, node: yaml.Node, kind: type[yaml.CollectionNode], where: str, instead: str) -> list[Any]:
        """What a list or mapping holds; nothing, and a finding, when the node is not of that kind."""
        if isinstance(node, kind):
            return list(node.value)
        self.report(node, f"{where} is {_seen(node)}, not {KINDS[kind]}", instead)
        return []

    def pairs(self, held: list[Any], where: str) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        """The pairs of a mapping whose keys are text, and there for the first time. The others are reported."""
        lines: dict[str, int] = {}
        for key, value in held:
            if not isinstance(key, yaml.ScalarNode):
                self.report(key, f"{where}: {_seen(key)} stands where a key belongs", "a name")
            elif key.value in lines:
                message = f"{where}: the key {_seen(key)} is there twice, first on line {lines[key.value]}"
                self.report(key, message, "it once, with what belongs to both")
            else:
                lines[key.value] = key.start_mark.line + 1
                yield key, value

    def read(self, root: yaml.Node | None) -> None:
        """The whole file."""
        if root is None or _is_null(root) or (isinstance(root, yaml.MappingNode) and not root.value):
            self.findings.append(Finding(1, 1, "the file is empty", "at least one level key, such as `L1:`"))
            return
        held = self.inside(root, yaml.MappingNode, "the file", "`L1:` and below it `- owner/repo`")
        for key, node in self.pairs(held, "the file"):
            if key.value not in LEVELS:
                self.report(key, f"{_seen(key)} is not a level", "L1, L2, L3 or L4")
            elif not _is_null(node):
                (self.read_devices if key.value == "L3" else self.read_list)(key.value, node)

    def read_list(self, level: str, node: yaml.Node) -> None:
        """What stands below L1, L2 or L4."""
        held = self.inside(node, yaml.SequenceNode, level, "one `- owner/repo` line for each repository")
        for position, item in enumerate(held, 1):
            where = f"{level}, entry {position}"
            pairs: list[Any] = item.value if isinstance(item, yaml.MappingNode) else [(item, None)]
            if len(pairs) == 1:
                name, value = pairs[0]
                self.read_entry(level, "", name, value, where)
            else:
                keys = ", ".join(_seen(key) for key, _ in pairs[:4]) or "none"
                message = f"{where}: a mapping with {len(pairs)} keys, not one ({keys})"
                self.report(item, message, "a dash before each repository, and its settings indented below it")

    def read_devices(self, level: str, node: yaml.Node) -> None:
        """What stands below L3."""
        devices = self.inside(node, yaml.MappingNode, level, "`device:` and below it `owner/repo:`")
        for key, repositories in self.pairs(devices, level):
            where = f"{level}.{key.value}" if DEVICE.fullmatch(key.value) else f"{level}.{_quote(key.value)}"
            if not DEVICE.fullmatch(key.value):
                problem = "does not fit a label" if key.value.strip() else "is empty"
                instead = "what ends its label `ciflow/crcr/…`: at most 38 characters, no space"
                self.report(key, f"{level}: the device name {_quote(key.value)} {problem}", instead)
            held = self.inside(repositories, yaml.MappingNode, where, "`owner/repo:` lines, without a dash")
            for position, (name, value) in enumerate(held, 1):
                self.read_entry(level, key.value, name, value, f"{where}, entry {position}")

    def read_entry(self, level: str, device: str, name: yaml.Node, value: yaml.Node | None, where: str) -> None:
        """One repository; `value` is None for an entry that is just a name."""
        oncalls, events = self.read_value(value, where)
        full_name = name.value if isinstance(name, yaml.ScalarNode) else ""
        if not FULL_NAME.fullmatch(full_name):
            glued = re.match(f"({FULL_NAME.pattern}):[^/]", full_name)
            instead = f"`{glued[1]}: …`, with a space after the colon" if glued else "`owner/repo`, as on GitHub"
            self.report(name, f"{where}: {_seen(name)} is not owner/repo", instead)
            return
        line, column = name.start_mark.line + 1, name.start_mark.column + 1
        entry = Entry(LEVELS[level], full_name, device, oncalls, events, line, column)
        first = self.entries.setdefault(entry.key, entry)
        if first is not entry:
            message = f"{where}: {_seen(name)} is listed already, on line {first.line} at L{first.level}"
            self.report(name, message, "it once, at its one level")
        elif len(self.entries) == MAX_ENTRIES + 1:
            self.report(name, f"{where}: the file has more than {MAX_ENTRIES} entries", "fewer")

    def read_value(self, node: yaml.Node | None, where: str) -> tuple[tuple[str, ...], frozenset[str]]:
        """What stands behind a repository's name, as its oncalls and its events."""
        if not isinstance(node, yaml.MappingNode):
            return self.read_oncalls(node, where), EVERY_EVENT
        settings: dict[str, yaml.Node] = {}
        for key, value in self.pairs(node.value, where):
            if key.value in {"oncalls", "events"}:
                settings[key.value] = value
            else:
                self.report(key, f"{where}: {_seen(key)} is not a setting", "`oncalls` or `events`")
        return self.read_oncalls(settings.get("oncalls"), where), self.read_events(settings.get("events"), where)

    def read_oncalls(self, node: yaml.Node | None, where: str) -> tuple[str, ...]:
        """Oncalls: a comma string, a list, or nothing."""
        if node is None or _is_null(node):
            return ()
        if isinstance(node, yaml.ScalarNode):
            parts = [(node, _quote(part), part) for part in (raw.strip(" ") for raw in node.value.split(","))]
        else:
            held = self.inside(node, yaml.SequenceNode, f"{where}: oncalls", "`alice, bob` or `[alice, bob]`")
            parts = [(item, _seen(item), item.value if isinstance(item, yaml.ScalarNode) else "") for item in held]
        oncalls: dict[str, str] = {}
        for position, (item, seen, login) in enumerate(parts, 1):
            if not LOGIN.fullmatch(login):
                bare = login.removeprefix("@")
                instead = f"{bare}, without the @" if LOGIN.fullmatch(bare) else "GitHub logins, a comma between two"
                self.report(item, f"{where}, oncall {position}: {seen} is not a GitHub login", instead)
            elif login.lower() in oncalls:
                self.report(item, f"{where}, oncall {position}: {seen} is named already", "each login once")
            else:
                oncalls[login.lower()] = login
        return tuple(oncalls.values())

    def read_events(self, node: yaml.Node | None, where: str) -> frozenset[str]:
        """Events: a list that is not empty, or nothing, which means all of them."""
        if node is None or _is_null(node):
            return EVERY_EVENT
        held = node.value if isinstance(node, yaml.SequenceNode) else []
        if not held:
            problem = "an empty list" if isinstance(node, yaml.SequenceNode) else f"{_seen(node)}, not a list"
            instead = "`[pull_request]` or `[nightly]`, or leave `events` out for both"
            self.report(node, f"{where}: events is {problem}", instead)
        events: set[str] = set()
        for position, item in enumerate(held, 1):
            word = EVENT_WORDS.get(item.value) if isinstance(item, yaml.ScalarNode) else None
            at = f"{where}, event {position}"
            if word is None:
                self.report(item, f"{at}: {_seen(item)} is not an event", "pull_request or nightly")
            elif word in events:
                self.report(item, f"{at}: {_seen(item)} is named already, as {word}", "each event once")
            else:
                events.add(word)
        return frozenset(events)
