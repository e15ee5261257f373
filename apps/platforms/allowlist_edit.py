"""One entry of an allowlist file changed in its text; every other line stays as it is, byte for byte. Pure.

YAML's node graph says on which lines things stand, the lines are then cut and put. What comes out is read again and has
to be the intended list, or nothing comes out: a file that is written in an uncommon way is refused, never damaged.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import yaml

from apps.platforms.allowlist import LEVELS, LINE_BREAK, AllowlistError, Entry, entry_lines, parse, scalar

INDENT = 2  # where the file does not show another
DASH = re.compile(r"\s*-(\s|$)")
COMMENT = re.compile(r"\s+#.*")


class EditError(ValueError):
    """The text cannot be edited by lines. The sentence says what is in the way and what to write instead."""


def edit(text: str, full_name: str, entry: Entry | None) -> str:
    """The text with this entry for a repository; None takes the repository off the list.

    An entry that keeps its level and device is replaced where it stands. Another one goes to the end of its new level.
    A comment behind it on its line goes with it; the lines of comment above it stay. Returns the text unchanged where
    it says so already. Raises EditError.
    """
    before = parse(text).by_key
    known = before.get(full_name.lower())
    if entry is not None and known is not None:
        entry = replace(entry, full_name=known.full_name)
    if entry == known:
        return text
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    sheet = _Sheet(text.removeprefix(mark))
    if known is not None and entry is not None and (known.level, known.device) == (entry.level, entry.device):
        sheet.put_in_place(sheet.span_of(known), entry)
    else:
        comment = sheet.cut(known) if known else ""
        if entry is not None:
            sheet = _Sheet(sheet.text)
            sheet.append(entry, comment)
    wanted = {key: one for key, one in before.items() if known is None or key != known.key}
    if entry is not None:
        wanted[entry.key] = entry
    return mark + _checked(sheet.text, wanted)


def _checked(text: str, wanted: dict[str, Entry]) -> str:
    try:
        found = parse(text).by_key
    except AllowlistError as error:
        raise EditError(f"The edit would break the file: {error.findings[0]}.") from error
    if found != wanted:
        raise EditError("The edit would change more than one entry: write one entry to a line, without brackets.")
    return text


@dataclass(frozen=True)
class _Span:
    """The lines of an entry, both included; the column where its first one begins, and where its last one ends."""

    first: int
    last: int
    column: int
    end_column: int


class _Sheet:
    """A valid file as lines, and where its parts stand."""

    def __init__(self, text: str) -> None:
        self._lines = list(_split(text))
        root: Any = yaml.compose(text, yaml.CSafeLoader)
        if root.flow_style:
            raise EditError("The file is one pair of brackets: write one entry to a line.")
        self._levels: dict[str, tuple[yaml.Node, Any]] = {key.value: (key, value) for key, value in root.value}
        self._break = "\r\n" if self._lines and self._lines[0].endswith("\r\n") else "\n"

    @property
    def text(self) -> str:
        return "".join(self._lines)

    # --- where things stand -------------------------------------------------------------------------------------

    def _spans(self, level: str, device: str) -> dict[str, _Span]:
        """The entries of a level, at L3 of one device, by key. Raises EditError where they stand in brackets."""
        node = self._levels[level][1] if level in self._levels else None
        if node is None or isinstance(node, yaml.ScalarNode):
            return {}
        where = level
        if level == "L3":
            devices = {key.value: value for key, value in node.value}
            self._refuse_brackets(node, level)
            if device not in devices:
                return {}
            node, where = devices[device], f"L3.{device}"
        self._refuse_brackets(node, where)
        if level == "L3":
            return {key.value.lower(): self._span(key, value) for key, value in node.value}
        return {_name_of(item).value.lower(): self._item_span(item) for item in node.value}

    def _refuse_brackets(self, node: Any, where: str) -> None:
        if node.flow_style and node.value:
            raise EditError(f"{where} stands in brackets: write one entry to a line.")

    def _span(self, first: yaml.Node, last: yaml.Node) -> _Span:
        line, column = _end(last if _end(last) > _end(first) else first)
        return _Span(first.start_mark.line, line, first.start_mark.column, column)

    def _item_span(self, item: yaml.Node) -> _Span:
        span = self._span(item, item)
        line = span.first
        while not DASH.match(self._lines[line]):  # the dash may stand on a line of its own
            line -= 1
        return replace(span, first=line, column=self._lines[line].index("-"))

    def span_of(self, entry: Entry) -> _Span:
        return self._spans(f"L{entry.level}", entry.device)[entry.key]

    # --- cutting and putting ------------------------------------------------------------------------------------

    def _lead(self, entry: Entry, column: int) -> str:
        return " " * column + ("" if entry.level == LEVELS["L3"] else "- ")

    def _written(self, entry: Entry, column: int, comment: str) -> list[str]:
        lines = list(entry_lines(entry, self._lead(entry, column)))
        lines[0] += comment
        return [line + self._break for line in lines]

    def put_in_place(self, span: _Span, entry: Entry) -> None:
        """Write an entry over the lines of the one that it replaces."""
        lines = self._written(entry, span.column, self._comment(span))
        if not LINE_BREAK.search(self._lines[span.last]):  # the file ended here without a line break
            lines[-1] = lines[-1].removesuffix(self._break)
        self._lines[span.first : span.last + 1] = lines

    def _comment(self, span: _Span) -> str:
        rest = LINE_BREAK.sub("", self._lines[span.last][span.end_column :]).rstrip()
        return rest if COMMENT.fullmatch(rest) else ""

    def cut(self, entry: Entry) -> str:
        """Take an entry's lines out, and its device's where it was the only one. Returns the comment behind it."""
        level = f"L{entry.level}"
        spans = self._spans(level, entry.device)
        span = spans[entry.key]
        comment = self._comment(span)
        first = span.first
        if level == "L3" and len(spans) == 1:
            first = next(key.start_mark.line for key, _ in self._levels[level][1].value if key.value == entry.device)
        del self._lines[first : span.last + 1]
        return comment

    def append(self, entry: Entry, comment: str) -> None:
        """Put an entry at the end of its level, at L3 of its device."""
        level = f"L{entry.level}"
        if level not in self._levels:
            self._insert(len(self._lines), [f"{level}:{self._break}"])
            at, self._levels[level] = len(self._lines), (yaml.ScalarNode("", level), yaml.ScalarNode("", ""))
        else:
            at = self._after_key(level)
        spans = self._spans(level, entry.device)
        if spans:
            last = max(spans.values(), key=lambda span: span.last)
            self._insert(last.last + 1, self._written(entry, last.column, comment))
        elif level == "L3":
            column, at = self._device_place(at)
            head = f"{' ' * column}{scalar(entry.device)}:{self._break}"
            self._insert(at, [head, *self._written(entry, column + INDENT, comment)])
        else:
            self._insert(at, self._written(entry, INDENT, comment))

    def _after_key(self, level: str) -> int:
        """The line behind a level's key; an empty pair of brackets beside it goes."""
        key, value = self._levels[level]
        line = key.start_mark.line
        if not isinstance(value, yaml.ScalarNode) and not value.value:
            if value.end_mark.line != line:
                raise EditError(f"{level} stands in brackets: write one entry to a line.")
            text = self._lines[line]
            self._lines[line] = text[: value.start_mark.column].rstrip(" ") + text[value.end_mark.column :]
        elif isinstance(value, yaml.ScalarNode) and value.value:  # ~ or null
            text = self._lines[value.start_mark.line]
            self._lines[line] = text[: value.start_mark.column].rstrip(" ") + text[value.end_mark.column :]
        return line + 1

    def _device_place(self, at: int) -> tuple[int, int]:
        """The column of L3's devices, and the line behind the last one's entries."""
        node = self._levels["L3"][1]
        if isinstance(node, yaml.ScalarNode) or not node.value:
            return INDENT, at
        key, value = node.value[-1]
        return key.start_mark.column, max(_end(key), _end(value))[0] + 1

    def _insert(self, at: int, lines: list[str]) -> None:
        if at == len(self._lines) and self._lines and not LINE_BREAK.search(self._lines[-1]):
            self._lines[-1] += self._break
        self._lines[at:at] = lines


def _split(text: str) -> Iterator[str]:
    """Lines with their ends, as YAML counts lines."""
    start = 0
    for found in LINE_BREAK.finditer(text):
        yield text[start : found.end()]
        start = found.end()
    if start < len(text):
        yield text[start:]


def _name_of(item: Any) -> yaml.ScalarNode:
    return item.value[0][0] if isinstance(item, yaml.MappingNode) else item


def _end(node: Any) -> tuple[int, int]:
    """Line and column where a node's text ends. A block's own mark lies further on, so its parts are asked."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        return max(_end(part) for pair in node.value for part in pair)
    if isinstance(node, yaml.SequenceNode) and not node.flow_style:
        return max(map(_end, node.value))
    return node.end_mark.line, node.end_mark.column
