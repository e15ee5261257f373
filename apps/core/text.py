"""Text that people read: what may stand in it, and what a link may look like."""

import re

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
