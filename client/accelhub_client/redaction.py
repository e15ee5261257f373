"""Secrets are taken out of what tests wrote, before anything leaves the machine. Names of tests stay as they are: they
are what a result is about."""

import codecs
import html
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from xml.sax.saxutils import escape

from accelhub_client.exits import Stop

STARS = "***"
# Attributes of JUnit XML and members of a report log that say which test it is, or what became of it.
KEPT_ATTRIBUTES = frozenset({"classname", "name", "file", "line", "time", "timestamp"})
KEPT_MEMBERS = frozenset({"nodeid", "location", "keywords", "outcome", "when", "$report_type"})
# What a CI step itself holds: taken out by value.
OWN_SECRETS = (
    "ACCELHUB_TOKEN",
    "ACCELHUB_API_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "BUILDKITE_AGENT_ACCESS_TOKEN",
)
_OWN_SECRET_MIN = 8  # characters; a shorter value stands in many a harmless word
_CHUNK = 1 << 20
_PIECE_MAX = 64 << 20  # bytes of one text that are looked at as one; a longer one is cut at a line's end


@dataclass(frozen=True)
class Pattern:
    """What is taken out, and what stands there instead.

    `hints` are for those whose characters are the same in XML and JSON as they are meant: without one of them there is
    no match, so nobody has to look. Without hints every text is looked at.
    """

    name: str
    expression: "re.Pattern[str]"
    hints: tuple[str, ...] = ()
    instead: str = STARS

    def may_match(self, text: str) -> bool:
        return not self.hints or any(hint in text for hint in self.hints)

    def spares(self, spelled: str) -> bool:
        """Whether nothing of a piece of a file is taken out, whatever stands around it."""
        return bool(self.hints) and not (self.may_match(spelled) and self.expression.search(spelled))


def _default(name: str, expression: str, *hints: str, instead: str = STARS) -> Pattern:
    return Pattern(name, re.compile(expression), hints, instead)


DEFAULTS = (
    _default("GitHub token", r"gh[pousr]_[A-Za-z0-9]{30,255}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _default("GitHub fine-grained token", r"github_pat_[A-Za-z0-9_]{30,255}", "github_pat_"),
    _default("JSON web token", r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}", "eyJ"),
    _default(
        "private key",
        r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
        "PRIVATE KEY-----",
    ),
    _default("AWS access key", r"A(?:KIA|SIA)[A-Z0-9]{16}", "AKIA", "ASIA"),
    _default("Google API key", r"AIza[\w-]{35}", "AIza"),
    _default("Hugging Face token", r"hf_[A-Za-z0-9]{30,}", "hf_"),
    _default("Buildkite token", r"bk(?:ua|pt|ct|aj)_[A-Za-z0-9]{20,}", "bkua_", "bkpt_", "bkct_", "bkaj_"),
    _default("Slack token", r"xox[abeprs]-[A-Za-z0-9-]{10,}", "xox"),
    _default("bearer token", r"earer [\w.~+/-]{20,}=*", "earer ", instead=f"earer {STARS}"),
    _default("password in an address", r"://[^\s/:@]{1,200}:[^\s/@]{1,200}@", "://", instead=f"://{STARS}@"),
)

# A tag to its end, quotes included. Each repetition begins with a quote: no text takes more than one way through.
_TAG = re.compile(r"<[^<>\"']*(?:(?:\"[^\"<]*\"|'[^'<]*')[^<>\"']*)*>")
_ATTRIBUTE = re.compile(r"([\w:.-]+)(\s*=\s*)(\"[^\"]*\"|'[^']*')")
# Tags with nothing in them to look at, and no more than white space between them: most of a report.
_ELEMENTS = "testsuites?|testcase|properties|property|skipped|error|failure|rerun|system-out|system-err"
_BARE_TAGS = re.compile(
    rf'(?:<(?:/(?:{_ELEMENTS})|(?:{_ELEMENTS})(?:\s+(?:{"|".join(sorted(KEPT_ATTRIBUTES))})="[^"<]*")*\s*/?)>\s*)+'
)
_SECTIONS = {"<![CDATA[": "]]>", "<!--": "-->", "<?": "?>"}
_QUOTED = {'"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


@dataclass
class Redactor:
    """Takes secrets out. `counts`: how many of which pattern were found so far."""

    patterns: tuple[Pattern, ...]
    counts: "Counter[str]" = field(default_factory=Counter)

    def cleaned(self, source: BinaryIO) -> Iterator[bytes]:
        """The bytes of a report, JUnit XML or a report log, without what the patterns match. Where nothing matches,
        damaged or not, they are the bytes that came."""
        first = source.read(_CHUNK)
        encoding, errors = _encoding(first)
        decoder = codecs.getincrementaldecoder(encoding)(errors)
        is_log = first.lstrip()[:1] == b"{"
        rest, chunk = "", first
        while chunk:
            rest += decoder.decode(chunk)
            cleaned, rest = self._lines(rest) if is_log else self._xml(rest, is_end=False)
            yield cleaned.encode(encoding, errors)
            if len(rest) > _PIECE_MAX:
                cut = rest.rfind("\n") + 1 or len(rest)
                yield self._ended(rest[:cut], is_log).encode(encoding, errors)
                rest = rest[cut:]
            chunk = source.read(_CHUNK)
        yield self._ended(rest, is_log).encode(encoding, errors)
        yield decoder.getstate()[0]  # of a character that was cut off

    def _ended(self, text: str, is_log: bool) -> str:
        return self._line(text) if is_log else self._xml(text, is_end=True)[0]

    def plain(self, text: str) -> str:
        """Text without what the patterns match."""
        for pattern in self.patterns:
            if pattern.may_match(text):
                text, count = pattern.expression.subn(pattern.instead, text)
                if count:
                    self.counts[pattern.name] += count
        return text

    # --- JUnit XML ------------------------------------------------------------------------------------------------

    def _xml(self, text: str, is_end: bool) -> tuple[str, str]:
        """Text as far as its parts are whole, cleaned, and the rest; at the end everything."""
        out: list[str] = []
        at = 0
        if not is_end and all(pattern.spares(text) for pattern in self.patterns):
            at = _last_whole(text)
            return text[:at], text[at:]
        while at < len(text):
            start = text.find("<", at)
            if start != at:
                if start < 0 and not is_end:
                    break
                stop = len(text) if start < 0 else start
                out.append(self._escaped(text[at:stop]))
                at = stop
                continue
            end = self._markup(text, at, is_end, out)
            if end == at:
                break
            at = end
        return "".join(out), text[at:]

    def _markup(self, text: str, at: int, is_end: bool, out: list[str]) -> int:
        """Clean the tag or section that begins here. Returns where it ends: here, where it is not whole yet."""
        for opening, closing in _SECTIONS.items():
            if text.startswith(opening, at):
                end = text.find(closing, at + len(opening))
                if end < 0 and not is_end:
                    return at
                stop = len(text) if end < 0 else end
                out.append(opening + self.plain(text[at + len(opening) : stop]))
                return stop
        bare = _BARE_TAGS.match(text, at)
        tag = bare or _TAG.match(text, at)
        if tag:
            out.append(tag[0] if bare else self._tag(tag[0]))
            return tag.end()
        following = text.find("<", at + 1)
        if following < 0 and not is_end:
            return at
        stop = len(text) if following < 0 else following
        out.append("<" + self._escaped(text[at + 1 : stop]))
        return stop

    def _tag(self, tag: str) -> str:
        """A tag, cleaned: what stands outside of its attributes too, since in a damaged file that may be anything."""
        out, at = [], 0
        for found in _ATTRIBUTE.finditer(tag):
            out += [self.plain(tag[at : found.start()]), self._attribute(found)]
            at = found.end()
        return "".join(out) + self.plain(tag[at:])

    def _attribute(self, found: "re.Match[str]") -> str:
        name, equals, quoted = found.groups()
        value = quoted[1:-1]
        if name in KEPT_ATTRIBUTES:
            return found[0]
        cleaned = self._escaped(value, _QUOTED)
        return found[0] if cleaned == value else f'{name}{equals}"{cleaned}"'

    def _escaped(self, text: str, also: Mapping[str, str] = {}) -> str:
        """Text of XML, cleaned as what it means and not as how it is spelled."""
        meant = html.unescape(text) if "&" in text else text
        cleaned = self.plain(meant)
        return text if cleaned == meant else escape(cleaned, dict(also))

    # --- report logs ----------------------------------------------------------------------------------------------

    def _lines(self, text: str) -> tuple[str, str]:
        whole, newline, rest = text.rpartition("\n")
        return "".join(self._line(line) + newline for line in whole.split("\n")) if newline else "", rest

    def _line(self, line: str) -> str:
        if self._spared(line):
            return line
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return self.plain(line)
        before = sum(self.counts.values())
        cleaned = self._value(value)
        return line if sum(self.counts.values()) == before else json.dumps(cleaned)

    def _spared(self, line: str) -> bool:
        """Whether no pattern can match: without a backslash, JSON spells text as it is."""
        return "\\" not in line and all(pattern.spares(line) for pattern in self.patterns)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.plain(value)
        if isinstance(value, list):
            return [self._value(one) for one in value]
        if isinstance(value, dict):
            return {key: one if key in KEPT_MEMBERS else self._value(one) for key, one in value.items()}
        return value


def redactor(expressions: list[str], environment: Mapping[str, str]) -> Redactor:
    """A redactor of these regular expressions, the defaults, and the step's own secrets. Raises Stop `usage`."""
    own = {environment.get(name, "") for name in OWN_SECRETS}
    values = sorted(value for value in own if len(value) >= _OWN_SECRET_MIN)
    return Redactor(
        (
            *(_declared(expression) for expression in expressions),
            *(Pattern("secret of this step", re.compile(re.escape(value)), (value,)) for value in values),
            *DEFAULTS,
        )
    )


def _declared(expression: str) -> Pattern:
    try:
        compiled = re.compile(expression)
    except re.error as error:
        raise Stop("usage", f"--redact {expression}: is no regular expression of Python: {error}.") from None
    if compiled.search(""):
        raise Stop("usage", f"--redact {expression}: matches nothing at all, so everywhere. Say what it must contain.")
    return Pattern(f"--redact {expression}", compiled)


def _last_whole(text: str) -> int:
    """Where the last tag begins, or the section that has not ended."""
    open_sections = (text.rfind(opening) for opening, end in _SECTIONS.items() if text.rfind(opening) > text.rfind(end))
    return max(0, min(text.rfind("<"), *open_sections, len(text)))


def _encoding(start: bytes) -> tuple[str, str]:
    """How a file is spelled. What is no UTF-8 goes through it unchanged; the patterns' own characters are ASCII."""
    if start.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le", "surrogatepass"
    if start.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be", "surrogatepass"
    return "utf-8", "surrogateescape"
