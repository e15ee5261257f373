"""JUnit XML in every dialect that pytest, unittest, Gradle's and Maven's kin write. One pass, bounded memory.

Source: docs/results.md, "JUnit XML". The parser is expat itself: entities are never expanded (their declarations are
taken out before it sees them), and what lies in output elements is never held. Numbers are counted from cases.
"""

import re
from collections.abc import Iterator
from xml.parsers import expat

from apps.results.formats.cases import RED, Case, Notes, Outcome, evidence_of
from apps.results.formats.chains import TEARDOWN
from apps.results.formats.dialects import (
    AGAIN,
    CHILDREN,
    SHORT,
    Child,
    by_words,
    meaning,
    plain_skip,
    seconds_of,
)
from apps.results.formats.limits import Limits
from apps.results.formats.texts import Excerpt, Source, xml_text

# Upstream's folders: …/python-pytest/<file>/<anything>.xml
_INVOKED = re.compile(r"(?:^|/)python-(?:pytest|unittest)/(.+)/[^/]+$")
_DECLARATION = re.compile(r"[\ufeff\s]*(?:<\?xml\s[^>]*\?>\s*)?")
_COUNT = re.compile(r"[0-9]{1,12}", re.ASCII)
_NO_ELEMENT, _UNCLOSED, _PARTIAL, _UNCLOSED_CDATA = 3, 5, 6, 20
_ENDS_EARLY = (_NO_ELEMENT, _UNCLOSED, _PARTIAL, _UNCLOSED_CDATA)
_BUFFER = 64 * 1024  # bytes of text
_REMEMBERED = 10_000  # texts that are held once for all cases of one file
WORD_MAX = 100  # characters of an unknown word
STRICT_XPASS = "[XPASS(strict)]"


_HEADER = ("tests", "failures", "errors", "skipped")


class _Stop(Exception):
    """Nothing more of this file is read; a note says why."""


class _Suite:
    """An open testsuite: what its header says, and what was counted since, suites within it included."""

    __slots__ = ("cases", "file", "header", "name", "red_cases", "reds", "skipped")

    def __init__(self, attributes: dict[str, str], outer: "_Suite | None") -> None:
        self.name: str = attributes.get("name") or (outer.name if outer else "")
        self.file: str = attributes.get("file") or (outer.file if outer else "")
        self.header = {key: int(said) for key in _HEADER if _COUNT.fullmatch(said := attributes.get(key, ""))}
        self.cases = self.skipped = 0
        # Some writers count elements, some cases: a case may hold a failure and an error.
        self.reds = self.red_cases = 0

    @property
    def red_header(self) -> int:
        return self.header.get("failures", 0) + self.header.get("errors", 0)


class _Part:
    """An element within a testcase: its attributes and its text, as far as kept."""

    __slots__ = ("attributes", "element", "text")

    def __init__(self, element: str, attributes: dict[str, str], limit: int) -> None:
        self.element, self.attributes, self.text = element, attributes, Excerpt(limit)


class _Found:
    """What the elements within a testcase have said so far."""

    __slots__ = ("again", "part", "rank", "reruns", "word")

    def __init__(self) -> None:
        self.rank = self.reruns = 0
        self.part: _Part | None = None
        self.again: _Part | None = None
        self.word = ""


def read(stream: Source, *, path: str, limits: Limits, notes: Notes) -> Iterator[Case]:
    """The cases of one file, as they stand in it. Whatever is wrong with it ends as a note, never as an exception.

    `path` is the file's name in its archive; where neither case nor suite names a test file, it may.
    """
    reader = _Reader(path, limits, notes)
    count = 0
    for text in _text(stream, notes):
        reader.feed(text)
        yield from reader.done
        count += len(reader.done)
        reader.done.clear()
        if reader.is_over:
            break
        if count > limits.cases:
            reader.stop("too_many_cases", f"At most {limits.cases} are read.")
            break
    reader.close()
    yield from reader.done


def _text(stream: Source, notes: Notes) -> Iterator[str]:
    """The file's text, without what stands before its first element: declaration and document type."""
    pieces = xml_text(stream, notes)
    first = next(pieces)
    start = _DECLARATION.match(first)
    assert start is not None  # it fits everything
    first = "\n" * start[0].count("\n") + first[start.end() :]  # so that a line keeps its number
    yield _without_doctype(first, notes) if "<!DOCTYPE" in first else first
    yield from pieces


def _without_doctype(text: str, notes: Notes) -> str:
    """The text after its document type declaration, whose entities nothing shall ever expand."""
    parser = expat.ParserCreate("utf-8")

    def declared(name: str, *_: object) -> None:
        notes.add("entities", f"The first: {name}.")

    def stop(*_: object) -> None:
        raise _Stop

    parser.EntityDeclHandler = declared
    parser.EndDoctypeDeclHandler = parser.StartElementHandler = stop
    try:
        parser.Parse(text)
    except expat.ExpatError:
        return text  # the parser of the whole file meets the same and says so
    except _Stop:
        pass
    data = text.encode()
    end = parser.CurrentByteIndex  # the declaration's closing bracket, or the first element
    if data[end : end + 1] != b">":
        return text
    return "\n" * data.count(b"\n", 0, end) + data[end + 1 :].decode()


class _Reader:
    """What expat calls. Cases that have ended lie in `done`; `is_over` says that nothing more can be read."""

    def __init__(self, path: str, limits: Limits, notes: Notes) -> None:
        self.done: list[Case] = []
        self.is_over = False
        self._limits, self._notes = limits, notes
        invoked = _INVOKED.search(path)
        self._has_suite = False
        self._suite = _Suite({"name": path.rpartition("/")[2], "file": invoked[1] if invoked else ""}, None)
        self._suites = [self._suite]
        self._case: dict[str, str] | None = None  # the attributes of the open testcase
        self._found: _Found | None = None
        self._is_suite_error = False
        self._depth = 0  # within the case
        self._levels = 0  # outside cases
        self._last_red = ("", "")
        self._held: list[str] = []
        # Sizes: of what is held, of what was parsed, and of the tag at its end that has not ended.
        self._held_size = self._fed = self._unfinished = 0
        # Texts that many cases share are held once.
        self._known: dict[str, str] = {}
        self._parser = parser = expat.ParserCreate("utf-8")
        # With it, an entity that nobody declared is skipped instead of ending the file.
        parser.UseForeignDTD(True)
        # A trace comes in one piece, not line by line.
        parser.buffer_text, parser.buffer_size = True, _BUFFER
        parser.SkippedEntityHandler = self._skipped_entity
        parser.StartDoctypeDeclHandler = self._late_doctype
        self._listen()

    def feed(self, text: str) -> None:
        """Parse a piece of the file, or keep it until there is as much as the tag that has not ended yet: expat reads
        such a tag from its start each time, which a tag of megabytes must not make it do for every piece.
        """
        self._held.append(text)
        self._held_size += len(text)
        if self._held_size < self._unfinished:
            return
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        text = self._taken()
        self._parse(text, is_last=False)
        self._fed += len(text) if text.isascii() else len(text.encode())
        self._unfinished = self._fed - self._parser.CurrentByteIndex
        if not self.is_over and self._unfinished > self._limits.token:
            self.stop("long_token", f"Line {self._parser.CurrentLineNumber}.")

    def _taken(self) -> str:
        """What was kept back."""
        text = "".join(self._held)
        self._held.clear()
        self._held_size = 0
        return text

    def close(self) -> None:
        """After the last piece: what was still open, and what its headers had promised."""
        if not self.is_over:
            self._parse(self._taken(), is_last=True)
        self.is_over = True
        cut_off = self._case or self._pending()
        if self._found and self._found.rank >= CHILDREN["error"].rank:
            self._finish()  # red, whatever the rest would have said
        elif cut_off is not None:
            self._notes.add("dropped", f"{cut_off.get('classname', '')} {cut_off.get('name', '')}")
        while len(self._suites) > 1:
            self._close_suite()
        if not self._has_suite and not self._notes.is_incomplete:
            self._notes.add("no_suite")

    def _parse(self, text: str, *, is_last: bool) -> None:
        try:
            self._parser.Parse(text, is_last)
        except _Stop:
            self.is_over = True
        except expat.ExpatError as error:
            self._parser.CharacterDataHandler = None  # hands on what is still in the buffer
            code = "truncated" if error.code in _ENDS_EARLY else "damaged"
            self.stop(code, f"Line {error.lineno}: {expat.ErrorString(error.code)}.")

    def stop(self, code: str, detail: str) -> None:
        """Read no further, and note why."""
        self._notes.add(code, detail)
        self.is_over = True

    def _listen(self) -> None:  # noqa: C901 -- one step a case is what it is about; calls would double its time
        """Tell expat whom to call. Nearly all of a report are cases that passed, or were skipped with a message: they
        are read here, in few steps and local variables. At the first sign of anything else the methods take over.
        """
        append, known, new = self.done.append, self._known.setdefault, tuple.__new__
        limit, passed = self._limits.seconds, Outcome.PASSED
        case: dict[str, str] | None = None
        skip: dict[str, str] | None = None
        is_in_skip = False

        def start(element: str, attributes: dict[str, str]) -> None:
            nonlocal case, skip, is_in_skip
            if self._case is not None:
                self._inside(element, attributes)
            elif case is None:
                if element == "testcase":
                    case = attributes
                else:
                    self._outside(element, attributes)
            elif element == "skipped" and skip is None and attributes.get("message"):
                skip, is_in_skip = attributes, True
            else:
                self._take_over(case, skip, int(is_in_skip))
                case, skip, is_in_skip = None, None, False
                self._inside(element, attributes)

        def end(element: str) -> None:
            nonlocal case, skip, is_in_skip
            if is_in_skip:
                is_in_skip = False
                return
            if case is None:
                self._end(element)
                return
            name, said = case.get("name"), case.get("time")
            try:
                seconds = float(said)  # type: ignore[arg-type]
            except (TypeError, ValueError):
                seconds = -1.0
            if not 0 <= seconds <= limit or not name or "status" in case or "result" in case:
                self._take_over(case, skip, 0)
                case = skip = None
                self._finish()
                return
            class_name, file, suite = case.get("classname", ""), case.get("file"), self._suite
            suite.cases += 1
            file = known(file, file) if file else suite.file
            if skip is None:
                outcome, message = passed, ""
            else:
                outcome, message = self._skipped(skip)
                suite.skipped += 1
                skip = None
            case = None
            append(new(Case, (file, known(class_name, class_name), name, outcome, seconds, message, "", 0, "")))

        def pending() -> dict[str, str] | None:
            return case

        self._pending = pending
        self._parser.StartElementHandler, self._parser.EndElementHandler = start, end

    def _take_over(self, case: dict[str, str], skip: dict[str, str] | None, depth: int) -> None:
        """Go on with a case that began in the plain way."""
        self._case, self._depth = case, depth
        if skip is not None:
            found = self._found = _Found()
            found.rank, found.part = CHILDREN["skipped"].rank, _Part("skipped", skip, 0)
            self._suite.skipped += 1

    def _end(self, element: str) -> None:
        """The end of an element that is not of the plain kind."""
        if self._depth:
            self._depth -= 1
            if not self._depth:
                self._parser.CharacterDataHandler = None
                if self._is_suite_error:
                    self._is_suite_error = False
                    self._finish()
        elif self._case is not None:
            self._finish()
        elif element != "testcase":
            self._levels -= 1
            if element in ("testsuite", "testsuites") and len(self._suites) > 1:
                self._close_suite(is_whole=True)

    def _outside(self, name: str, attributes: dict[str, str]) -> None:
        """An element that is no case and stands in none."""
        suite = self._suite
        if name in ("failure", "error") and self._has_suite:
            self._notes.add("suite_error", f"Suite {suite.name}.")
            self._is_suite_error = True
            self._case = {"name": suite.name}
            suite.cases -= 1  # no header counts it as a test
            self._inside(name, attributes)
            return
        self._levels += 1
        self._check_depth(self._levels)
        if name in ("testsuite", "testsuites"):
            self._has_suite = True
            self._suite = _Suite(attributes, suite)
            self._suites.append(self._suite)
            if not self._notes.started:
                self._notes.started = attributes.get("timestamp", "")

    def _inside(self, name: str, attributes: dict[str, str]) -> None:
        """An element within a case, or within one of its elements."""
        if name == "testcase" and not self._depth:
            self._notes.add("nested_case", attributes.get("name", ""))
            self._finish()
            self._case = attributes
            return
        self._depth += 1
        if self._depth > 1:
            self._check_depth(self._depth)
            if name in ("system-out", "system-err"):
                self._parser.CharacterDataHandler = None
            return
        found = self._found
        if found is None:
            found = self._found = _Found()
        child = CHILDREN.get(name)
        if child is None:
            found.word = found.word or name
        elif child is AGAIN:
            found.reruns += 1
            if found.again is None:
                found.again = self._part(name, attributes)
        elif child.rank:
            self._count(child)
            if child.rank > found.rank:
                found.rank = child.rank
                found.part = self._part(name, attributes)

    def _part(self, name: str, attributes: dict[str, str]) -> _Part:
        part = _Part(name, attributes, self._limits.trace)
        # A skip's text repeats its message.
        if name != "skipped" or not attributes.get("message"):
            self._parser.CharacterDataHandler = part.text.add
        return part

    def _count(self, child: Child) -> None:
        suite = self._suite
        if child.outcome is Outcome.SKIPPED:
            suite.skipped += 1
        else:
            suite.reds += 1

    def _check_depth(self, depth: int) -> None:
        if depth > self._limits.depth:
            self._notes.add("too_deep", f"Line {self._parser.CurrentLineNumber}.")
            raise _Stop

    def _finish(self) -> None:
        """The open testcase has ended, and is not of the plain kind."""
        attributes, found = self._case, self._found or _Found()
        assert attributes is not None
        self._case = self._found = None
        self._depth = 0
        suite = self._suite
        suite.cases += 1
        name = attributes.get("name")
        if not name:
            name = suite.name
            self._notes.add("unnamed", f"Line {self._parser.CurrentLineNumber}.")
        said = attributes.get("time")
        seconds = seconds_of(said, self._limits.seconds) if said else None
        if said and seconds is None:
            self._notes.add("time", f"The first: {said[:20]}.")
        file = attributes.get("file") or suite.file
        self._add(Case(file, attributes.get("classname", ""), name, Outcome.PASSED, seconds), found, attributes)

    def _add(self, case: Case, found: _Found, attributes: dict[str, str]) -> None:
        """A case of which something more is said than that it was."""
        message = trace = ""
        outcome = None
        if found.part is not None:
            message, trace = self._texts(found.part)
            outcome = self._meaning(found.part, message, trace)
        said, word = by_words(attributes)
        word = found.word or word
        if said in RED and outcome not in RED:
            outcome = said
            self._suite.reds += 1
        if outcome is None:
            outcome = Outcome.UNKNOWN if word else said or Outcome.PASSED
        if outcome is Outcome.UNKNOWN:
            self._notes.add("unknown_word", f"The first: {word}.")
        elif outcome in RED:
            self._count_red(case, message)
        elif found.again is not None:
            outcome = Outcome.FLAKY
            message, trace = self._texts(found.again)
        word = word if outcome is Outcome.UNKNOWN else ""
        self.done.append(
            case._replace(outcome=outcome, message=message, trace=trace, reruns=found.reruns, word=word[:WORD_MAX])
        )

    def _texts(self, part: _Part) -> tuple[str, str]:
        """Message and trace of a part, as far as kept."""
        text = str(part.text).strip()
        if part.text.is_cut:
            self._notes.add("cut")
        message = self._cut(part.attributes.get("message") or text.partition("\n")[0])
        return message, "" if part.element == "skipped" else text

    def _meaning(self, part: _Part, message: str, text: str) -> Outcome:
        if part.element == "skipped":
            return self._skip_of(part.attributes, message)
        return meaning(part.element, part.attributes.get("type", ""), message, text)

    def _skipped(self, attributes: dict[str, str]) -> tuple[Outcome, str]:
        """Outcome and message of a case that says nothing but that it was skipped."""
        message, kind = attributes["message"], attributes.get("type", "")
        if len(message) <= SHORT and len(kind) <= SHORT and message[0] != "{":
            return plain_skip(kind, message)
        return self._skip_of(attributes, message), self._cut(message)

    def _skip_of(self, attributes: dict[str, str], message: str) -> Outcome:
        if message.startswith("{") and (evidence := evidence_of(message)) and evidence.is_flaky:
            self._notes.add("flaky_evidence", f"The first: {evidence.red} red, {evidence.green} green.")
        return meaning("skipped", attributes.get("type", ""), message, "")

    def _cut(self, message: str) -> str:
        """A message as far as kept; those that many cases share are held once."""
        if len(message) > self._limits.message:
            self._notes.add("cut")
            message = message[: self._limits.message]
        return self._known.setdefault(message, message)

    def _count_red(self, case: Case, message: str) -> None:
        """Headers count a test and its teardown as one test, and as a failure and an error."""
        suite = self._suite
        suite.red_cases += 1
        if message.startswith(TEARDOWN) and self._last_red == (case.class_name, case.name):
            suite.cases -= 1
        self._last_red = (case.class_name, case.name)

    def _close_suite(self, *, is_whole: bool = False) -> None:
        """A suite has ended, or the file did before it: hold its header against what was counted."""
        suite = self._suites.pop()
        outer = self._suite = self._suites[-1]
        header = suite.header
        counted = {"tests": suite.cases, "skipped": suite.skipped}
        if is_whole:
            for key, count in counted.items():
                if header.get(key, count) != count:
                    self._notes.add("header", f"Suite {suite.name}: {key} {header[key]} said, {count} counted.")
        said = suite.red_header
        if is_whole and _has_red(header) and not suite.red_cases <= said <= suite.reds:
            self._notes.add("header", f"Suite {suite.name}: {said} failures and errors said, {suite.reds} counted.")
        lost = max(said - suite.reds, 0)
        if lost:
            self._notes.add("lost", f"Suite {suite.name}.", lost)
            message = f"The suite counts {said} failures and errors, the file holds {suite.reds}: {lost} lost."
            self.done.append(Case(suite.file, "", suite.name, Outcome.LOST, None, message))
        outer.cases += suite.cases
        outer.skipped += suite.skipped
        outer.reds += suite.reds + lost
        outer.red_cases += suite.red_cases

    def _skipped_entity(self, name: str, *_: object) -> None:
        self._notes.add("entities", f"The first: {name}.")

    def _late_doctype(self, *_: object) -> None:
        """A document type that does not stand at the file's start, where it would have been taken out."""
        self._notes.add("entities", "A document type is declared far from the file's start.")
        self._notes.add("damaged", "It is not read past that.")
        raise _Stop


def _has_red(header: dict[str, int]) -> bool:
    return "failures" in header or "errors" in header
