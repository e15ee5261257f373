"""Where a job counts in figures, over where its conclusion alone would put it: the one definition, in SQL.

In this order: a later attempt took its place (superseding.py); a newer push cancelled it; it was silent while the hub
was out; a maintainer declared what it is meant to be (declared.py).
"""

from apps.relay.enums import Bucket, Declared, Flag
from apps.relay.superseding import SUPERSEDED, superseded_sql

# ruff: noqa: S608  statements are put together from constants of this file

BY_ATTEMPT, BY_PUSH = "attempt", "push"
INFORMATIONAL, UNEXPECTED = "informational", "unexpected"

# Cancelled after a newer commit of its pull request, or of its ref, had come. Without one nobody knows why.
_BY_PUSH = f"""({{job}}.bucket = '{Bucket.CANCELLED.value}' AND (EXISTS (
    SELECT 1 FROM relay_dispatch x JOIN relay_delivery d ON d.id = x.delivery_id
        JOIN relay_delivery n ON n.pr_number = d.pr_number
    WHERE x.id = {{job}}.dispatch_id AND d.event = 'pull_request' AND n.event = 'pull_request'
        AND n.head_sha NOT IN ('', d.head_sha)
        AND n.received_at > d.received_at AND n.received_at <= {{job}}.completed_at
) OR EXISTS (
    SELECT 1 FROM relay_dispatch x JOIN relay_delivery d ON d.id = x.delivery_id
        JOIN relay_delivery n ON n.received_at > d.received_at AND n.received_at <= {{job}}.completed_at
    WHERE x.id = {{job}}.dispatch_id AND d.event = 'push' AND n.event = 'push'
        AND d.ref <> '' AND n.ref = d.ref AND n.head_sha NOT IN ('', d.head_sha)
)))"""

# What is contradicted stays so: a declaration is about ends that are true.
_OWN = f"""COALESCE((
    SELECT CASE WHEN o.outcome = '{Declared.INFORMATIONAL.value}' THEN '{INFORMATIONAL}'
        WHEN {{job}}.bucket IN ('{Bucket.IN_PROGRESS.value}', '{Bucket.CONTRADICTED.value}') THEN {{job}}.bucket
        WHEN {{job}}.bucket = o.outcome THEN '{Bucket.SUCCESS.value}' ELSE '{UNEXPECTED}' END
    FROM relay_declaredoutcome o
    WHERE o.repository_id = {{job}}.repository_id AND o.withdrawn_at IS NULL
        AND md5(o.workflow) = md5({{job}}.workflow) AND md5(o.job_name) = md5({{job}}.job_name)
        AND o.starts_at <= {{job}}.first_seen_at AND {{job}}.first_seen_at < o.ends_at
), {{job}}.bucket)"""


def own_bucket_sql(job: str) -> str:
    """Over a row of relay_job with this alias: its bucket, or what a declaration makes of it."""
    return _OWN.format(job=job)


def cancelled_by_push_sql(job: str) -> str:
    """A boolean over a row of relay_job: whether a newer push is why it was cancelled."""
    return _BY_PUSH.format(job=job)


def superseded_by_sql(job: str) -> str:
    """Over a row of relay_job: `attempt`, `push`, or null where nothing took its place."""
    return f"CASE WHEN {superseded_sql(job)} THEN '{BY_ATTEMPT}' WHEN {cancelled_by_push_sql(job)} THEN '{BY_PUSH}' END"


def counts_as_sql(job: str) -> str:
    """Over a row of relay_job: the bucket of the figures in which it stands."""
    return (
        f"CASE WHEN ({superseded_by_sql(job)}) IS NOT NULL THEN '{SUPERSEDED}' "
        f"WHEN '{Flag.UNHEARD.value}' = ANY({job}.flags) THEN '{Flag.UNHEARD.value}' ELSE {own_bucket_sql(job)} END"
    )
