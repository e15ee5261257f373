"""The SQL behind metrics.Counted: one repository's day, read from its jobs.

A job belongs to the UTC day on which the hub first saw it, a run to the day of its first job. Which jobs are superseded
is defined in apps/relay/superseding.py. A run with an end that the hub inferred has no known end.
"""

from apps.relay.superseding import superseded_sql

# ruff: noqa: S608  statements are put together from constants of this file; values are always parameters

SUPERSEDED = superseded_sql("j")

_SCOPE = "CASE WHEN {0}.event_type = 'periodic' THEN 'nightly' ELSE {0}.event_type END"

# Queue time is the hub's: from GitHub's acceptance of the dispatch to the first callback. An answer from inside the
# dispatch queued for no time.
_QUEUE = (
    "CASE WHEN {0}.start_seen_at IS NOT NULL AND x.sent_at IS NOT NULL "
    "THEN GREATEST(0, EXTRACT(EPOCH FROM {0}.start_seen_at - x.sent_at)) END"
)

DAY = f"""
WITH job AS (
    SELECT {_SCOPE.format("j")} AS scope, j.status, j.bucket, j.run_attempt,
        j.start_seen_at, j.first_seen_at,
        CASE WHEN NOT 'inferred' = ANY(j.flags) THEN j.completed_at END AS completed_at,
        CASE WHEN j.run_attempt = 1 THEN {_QUEUE.format("j")} END AS queue,
        {SUPERSEDED} AS superseded
    FROM relay_job j LEFT JOIN relay_dispatch x ON x.id = j.dispatch_id
    WHERE j.repository_id = %(repository)s AND j.first_seen_at >= %(start)s AND j.first_seen_at < %(end)s
), run AS (
    SELECT {_SCOPE.format("r")} AS scope, (
        COALESCE(MAX({_QUEUE.format("r")}), 0)
        + EXTRACT(EPOCH FROM MAX(r.completed_at) - MIN(COALESCE(r.start_seen_at, r.first_seen_at)))
    )::int AS seconds
    FROM relay_job r LEFT JOIN relay_dispatch x ON x.id = r.dispatch_id
    WHERE r.repository_id = %(repository)s AND r.run_attempt = 1
        -- Jobs of one run may be first seen on several days. No run is seen over more than two.
        AND r.first_seen_at >= %(start)s - interval '2 days' AND r.first_seen_at < %(end)s + interval '2 days'
    GROUP BY r.delivery_id, r.run_id, 1
    HAVING MIN(r.first_seen_at) >= %(start)s AND MIN(r.first_seen_at) < %(end)s
        AND BOOL_AND(r.status = 'completed' AND NOT 'inferred' = ANY(r.flags))
        AND BOOL_OR(r.start_seen_at IS NOT NULL)
), runs AS (
    SELECT scope, ARRAY_AGG(seconds ORDER BY seconds) AS seconds FROM run GROUP BY scope
)
SELECT job.scope,
    COUNT(*) FILTER (WHERE NOT superseded AND bucket = 'success') AS success,
    COUNT(*) FILTER (WHERE NOT superseded AND bucket = 'failure') AS failure,
    COUNT(*) FILTER (WHERE NOT superseded AND bucket = 'timed_out') AS timed_out,
    COUNT(*) FILTER (WHERE NOT superseded AND bucket = 'cancelled') AS cancelled,
    COUNT(*) FILTER (WHERE NOT superseded AND bucket = 'contradicted') AS contradicted,
    COUNT(*) FILTER (WHERE NOT superseded AND bucket = 'neutral') AS neutral,
    COUNT(*) FILTER (WHERE NOT superseded AND bucket = 'in_progress') AS in_progress,
    COUNT(*) FILTER (WHERE superseded) AS superseded,
    COUNT(*) FILTER (WHERE run_attempt = 1 AND status = 'completed') AS first_ended,
    COUNT(*) FILTER (WHERE run_attempt = 1 AND bucket = 'success') AS first_success,
    COUNT(*) FILTER (WHERE NOT superseded AND bucket <> 'timed_out'
        AND completed_at IS NOT NULL AND start_seen_at IS NOT NULL) AS timed,
    COUNT(*) FILTER (WHERE NOT superseded AND bucket <> 'timed_out'
        AND completed_at - start_seen_at > make_interval(secs => %(overrun)s)) AS overrun,
    COUNT(queue) AS queued,
    COALESCE(SUM(queue), 0)::bigint AS queue_seconds,
    COALESCE(MIN(runs.seconds), ARRAY[]::int[]) AS runs,
    MAX(GREATEST(first_seen_at, start_seen_at, completed_at)) AS last_callback_at
FROM job LEFT JOIN runs ON runs.scope = job.scope
GROUP BY job.scope
"""
