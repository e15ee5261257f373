"""The SQL behind metrics.Counted: days of repositories, counted from their jobs and written in one statement.

A job belongs to the UTC day on which the hub first saw it, a run to the day of its first job. Which jobs are superseded
is defined in apps/relay/superseding.py. A run with an end that the hub inferred has no known end.
"""

from apps.relay.superseding import NOT_HELD, superseded_sql
from apps.results.metrics import BUCKETS, COUNTS, ENDED

# ruff: noqa: S608  statements are put together from constants of this file; values are always parameters

# A start that was heard after the end says nothing about when the job began.
# Queue time is the hub's: from GitHub's acceptance of the dispatch to the first callback. An answer from inside the
# dispatch queued for no time. Where the webhook came late, by an outage of the hub, no time that begins with it is the
# downstream's.
_QUEUE = (
    "CASE WHEN d.is_late OR 'late_start' = ANY(j.flags) THEN NULL "
    "WHEN j.run_attempt = 1 AND j.start_seen_at IS NOT NULL AND x.sent_at IS NOT NULL "
    "THEN GREATEST(0, EXTRACT(EPOCH FROM j.start_seen_at - x.sent_at)) "
    # Nothing of the hub's own to measure from: the relay's measure, of a job that the relay dispatched.
    "WHEN j.run_attempt = 1 AND j.dispatch_id IS NULL THEN j.relay_queue_seconds END"
)

_NOT_HELD = NOT_HELD.format(job="relay_job")

_CURRENT = "COUNT(*) FILTER (WHERE NOT superseded AND {})"
_TIMED = "bucket <> 'timed_out' AND completed_at IS NOT NULL AND start_seen_at IS NOT NULL"
_SUMS = {
    **{bucket: _CURRENT.format(f"bucket = '{bucket}' AND NOT unheard") for bucket in (*ENDED, "in_progress")},
    "superseded": "COUNT(*) FILTER (WHERE superseded)",
    "unheard": _CURRENT.format("unheard"),
    "first_ended": "COUNT(*) FILTER (WHERE run_attempt = 1 AND status = 'completed' AND NOT unheard)",
    "first_success": "COUNT(*) FILTER (WHERE run_attempt = 1 AND bucket = 'success')",
    "timed": _CURRENT.format(_TIMED),
    "overrun": _CURRENT.format(f"{_TIMED} AND completed_at - start_seen_at > make_interval(secs => %(overrun)s)"),
    "queued": "COUNT(queue)",
    "queue_seconds": "COALESCE(SUM(queue), 0)",
    "last_callback_at": "MAX(GREATEST(first_seen_at, start_heard_at, completed_at))",
}
_COLUMNS = (*_SUMS, "runs")
assert set(_SUMS) == {*BUCKETS, *COUNTS, "last_callback_at"}

# One count of a day at a time: the later one reads what the earlier one has not seen. In order, so that none waits
# for another in a circle.
LOCK = """
SELECT pg_advisory_xact_lock((repository_id %% 2147483648)::int, day - date '2000-01-01')
FROM (SELECT * FROM unnest(%(repositories)s::bigint[], %(days)s::date[]) AS of(repository_id, day) ORDER BY 1, 2) AS day
"""

# A run of a day brings its other jobs with it, whenever they were seen: they say to which day the run belongs. OFFSET 0
# keeps each LATERAL a walk through its index: the planner cannot know how few jobs a day has, and would read the whole
# table.
COUNT = f"""
WITH day AS (
    SELECT repository_id, day, day::timestamp AT TIME ZONE 'UTC' AS began,
        (day + 1)::timestamp AT TIME ZONE 'UTC' AS ended
    FROM unnest(%(repositories)s::bigint[], %(days)s::date[]) AS of(repository_id, day)
), seen AS (
    SELECT DISTINCT day.repository_id, j.delivery_id, j.run_id
    FROM day, LATERAL (
        SELECT delivery_id, run_id FROM relay_job WHERE repository_id = day.repository_id AND {_NOT_HELD}
            AND first_seen_at >= day.began AND first_seen_at < day.ended OFFSET 0
    ) AS j
), job AS MATERIALIZED (
    SELECT j.repository_id, (j.first_seen_at AT TIME ZONE 'UTC')::date AS day,
        CASE WHEN j.event_type = 'periodic' THEN 'nightly' ELSE j.event_type END AS scope,
        j.delivery_id, j.run_id, j.status, j.bucket, j.run_attempt, j.start_seen_at AS start_heard_at, j.first_seen_at,
        CASE WHEN NOT 'late_start' = ANY(j.flags) THEN j.start_seen_at END AS start_seen_at,
        CASE WHEN NOT 'inferred' = ANY(j.flags) THEN j.completed_at END AS completed_at,
        'unheard' = ANY(j.flags) AS unheard,
        {_QUEUE} AS queue, COALESCE(d.is_late, false) AS is_late,
        {superseded_sql("j")} AS superseded
    FROM seen, LATERAL (
        SELECT * FROM relay_job WHERE repository_id = seen.repository_id AND {_NOT_HELD}
            AND md5(delivery_id) = md5(seen.delivery_id) AND run_id = seen.run_id OFFSET 0
    ) AS j LEFT JOIN relay_dispatch x ON x.id = j.dispatch_id LEFT JOIN relay_delivery d ON d.id = x.delivery_id
), run AS (
    SELECT repository_id, MIN(day) AS day, scope, (
        COALESCE(MAX(queue), 0) + EXTRACT(EPOCH FROM MAX(completed_at) - MIN(COALESCE(start_seen_at, first_seen_at)))
    )::int AS seconds
    FROM job WHERE run_attempt = 1
    GROUP BY repository_id, delivery_id, run_id, scope
    HAVING BOOL_AND(completed_at IS NOT NULL) AND BOOL_OR(start_seen_at IS NOT NULL) AND NOT BOOL_OR(is_late)
), runs AS MATERIALIZED (
    SELECT repository_id, day, scope, ARRAY_AGG(seconds ORDER BY seconds) AS seconds FROM run GROUP BY 1, 2, 3
), counted AS MATERIALIZED (
    SELECT repository_id, day, scope, {", ".join(f"{sql} AS {name}" for name, sql in _SUMS.items())}
    FROM job JOIN day USING (repository_id, day)
    GROUP BY 1, 2, 3
), gone AS (
    DELETE FROM results_dayfigures f USING day WHERE f.repository_id = day.repository_id AND f.day = day.day
        AND (f.repository_id, f.day, f.scope) NOT IN (SELECT repository_id, day, scope FROM counted)
)
INSERT INTO results_dayfigures (repository_id, day, scope, {", ".join(_COLUMNS)}, counted_at)
SELECT repository_id, day, scope, {", ".join(_SUMS)}, COALESCE(runs.seconds, ARRAY[]::int[]), %(now)s
FROM counted LEFT JOIN runs USING (repository_id, day, scope)
ON CONFLICT (repository_id, scope, day) DO UPDATE SET counted_at = excluded.counted_at,
    {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)}
"""
