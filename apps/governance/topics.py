"""Wake-up topics of governance. Keys are primary keys as text."""

NOTICE_PENDING = "notice_pending"
