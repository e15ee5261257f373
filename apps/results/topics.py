"""Wake-up topics of results. Keys are primary keys as text, unless they say otherwise."""

REPORT_RECEIVED = "report_received"
# Its outcomes, findings and counts stand, or it was taken down; for the rooms above.
REPORT_READY = "report_ready"
# Key: a name in the storage that some row may have stopped naming.
FILE_UNWANTED = "file_unwanted"
