"""Wake-up topics of the relay. Keys are primary keys as text."""

DELIVERY_RECEIVED = "delivery_received"
DISPATCH_PENDING = "dispatch_pending"
FORWARD_PENDING = "forward_pending"
# One key for all: the task looks at whatever is due.
GRAPH_PENDING = "graph_pending"
# Key: the head of a pull request whose merge base has become known; heard by the gate, which stands above.
BASE_KNOWN = "base_known"
# Key: `<repository pk>:<UTC day on which the job was first seen>`. Mostly written by store.py, inside its statements.
JOB_CHANGED = "job_changed"
# Key: `<job pk>:<its revision>`, so that each change has its own. Written by store.py, where there are check runs.
JOB_FOR_CHECKS = "job_for_checks"
DELIVERY_FOR_CHECKS = "delivery_for_checks"
