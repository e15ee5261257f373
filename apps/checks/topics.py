"""Wake-up topics of checks. Keys are primary keys as text."""

CHECK_PENDING = "check_pending"
RERUN_PENDING = "rerun_pending"
