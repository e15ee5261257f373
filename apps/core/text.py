"""Text: what PostgreSQL can store, what people may be shown, what a link may look like."""

import re

# What a text column refuses: NUL, and halves of surrogate pairs.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# Controls, and characters that reorder or hide what stands beside them.
_HIDDEN = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
HIDDEN_IN_TEXT = re.compile(f"[{_HIDDEN}]")
HIDDEN_IN_LINE = re.compile(f"[{_HIDDEN}\\t\\n\\r]")
# Characters that every reader sees alike: other letters come percent-encoded, or in a host's own xn-- form.
URL = re.compile(r"https?://(?P<authority>[A-Za-z0-9.:\[\]-]+)(?:[/?#][!#-;=?-Z\[\]_a-z~]*)?", re.IGNORECASE)


def hidden_finding(pattern: re.Pattern[str], value: str) -> str | None:
    """What is wrong with a text that holds such a character."""
    found = pattern.search(value)
    return f"take out the character U+{ord(found[0]):04X}: it cannot be seen." if found else None


def storable(text: str, cap: int | None = None) -> str:
    """The text as PostgreSQL can store it, what it refuses replaced; of at most `cap` characters where given."""
    return UNSTORABLE.sub("\ufffd", text)[:cap]
