"""Wake-up topics of quarantines. Keys are numbers of events of the log as text."""

QUARANTINE_BROKEN = "quarantine_broken"
