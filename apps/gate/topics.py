"""Wake-up topics of the gate."""

# Key: a commit's sha. What the gate says of it has changed; heard by checks, which stand above.
GATE_CHANGED = "gate_changed"
# Key: a repository's primary key. Its breaker has opened or closed; heard by checks.
BREAKER_CHANGED = "breaker_changed"
# Key: the sequence number of the event of the log that says so; heard by governance, which writes e-mails.
BREAKER_SAID = "breaker_said"
# Key: a commit's sha. Somebody decided something that its verdict may depend on: the gate is to say it anew.
GATE_ASKED = "gate_asked"
