"""The SQL behind metrics.Counted: one repository's day, read from its jobs.

A job belongs to the UTC day on which the hub first saw it, a run to the day of its first job. A job is superseded when
the same run has a later attempt of the same workflow and job name: attempts supersede per job, never per run.
"""

# ruff: noqa: S608  statements are put together from constants of this file; values are always parameters

SUPERSEDED = """EXISTS (
    SELECT 1 FROM relay_job h WHERE h.repository_id = j.repository_id AND md5(h.delivery_id) = md5(j.delivery_id)
    AND h.run_id = j.run_id AND h.run_attempt > j.run_attempt
    AND md5(h.workflow) = md5(j.workflow) AND md5(h.job_name) = md5(j.job_name))"""

_SCOPE = "CASE WHEN {0}.event_type = 'periodic' THEN 'nightly' ELSE {0}.event_type END"

# Queue time is the hub's: from GitHub's acceptance of the dispatch to the first callback. An answer from inside the
# dispatch queued for no time.
_QUEUE = (
    "CASE WHEN {0}.start_seen_at IS NOT NULL AND x.sent_at IS NOT NULL "
    "THEN GREATEST(0, EXTRACT(EPOCH FROM {0}.start_seen_at - x.sent_at)) END"
)

# Read once for all counts. A run of the day brings its other jobs with it, whenever they were seen: they say what is
# superseded, and on which day the run belongs.
DAY = f"""
WITH job AS MATERIALIZED (
    SELECT j.delivery_id, j.run_id, {_SCOPE.format("j")} AS scope, j.status, j.bucket, j.run_attempt,
        j.start_seen_at, j.completed_at, j.first_seen_at,
        CASE WHEN j.run_attempt = 1 THEN {_QUEUE.format("j")} END AS queue,
        MAX(j.run_attempt) OVER (PARTITION BY j.delivery_id, j.run_id, j.workflow, j.job_name) > j.run_attempt
            AS superseded,
        j.first_seen_at >= %(start)s AND j.first_seen_at < %(end)s AS is_of_day
    FROM (
        SELECT DISTINCT delivery_id, run_id FROM relay_job
        WHERE repository_id = %(repository)s AND first_seen_at >= %(start)s AND first_seen_at < %(end)s
    ) AS seen
    JOIN relay_job j ON j.repository_id = %(repository)s AND md5(j.delivery_id) = md5(seen.delivery_id)
        AND j.run_id = seen.run_id
    LEFT JOIN relay_dispatch x ON x.id = j.dispatch_id
), run AS (
    SELECT scope, (
        COALESCE(MAX(queue), 0) + EXTRACT(EPOCH FROM MAX(completed_at) - MIN(COALESCE(start_seen_at, first_seen_at)))
    )::int AS seconds
    FROM job WHERE run_attempt = 1
    GROUP BY delivery_id, run_id, scope
    HAVING MIN(first_seen_at) >= %(start)s AND MIN(first_seen_at) < %(end)s AND BOOL_AND(status = 'completed')
        AND BOOL_OR(start_seen_at IS NOT NULL)
), runs AS MATERIALIZED (
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
WHERE is_of_day
GROUP BY job.scope
"""
