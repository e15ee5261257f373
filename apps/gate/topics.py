"""Wake-up topics of the gate."""

# Key: a commit's sha. What the gate says of it has changed; heard by checks, which stand above.
GATE_CHANGED = "gate_changed"
# Key: a repository's primary key. Its breaker has opened or closed; heard by checks.
BREAKER_CHANGED = "breaker_changed"
# Key: a commit's sha. Somebody decided something that its verdict may depend on: the gate is to say it anew.
GATE_ASKED = "gate_asked"
