"""The SQL behind metrics.Counted: days of repositories, counted from their jobs and written in one statement.

A job belongs to the UTC day on which the hub first saw it, a run to the day of its first job. Which jobs are superseded
is defined in apps/relay/superseding.py, where else a job counts in apps/relay/counted.py. A run with an end that the
hub inferred, or that a newer push cut short, has no known end. A dispatch belongs to the day on which GitHub took it.
"""

from apps.relay.counted import INFORMATIONAL, cancelled_by_push_sql, own_bucket_sql
from apps.relay.policy import RED, UNANSWERED
from apps.relay.superseding import NOT_HELD, superseded_sql
from apps.results.metrics import ANSWERS, BUCKETS, COUNTS, ENDED, UPSTREAM_COUNTS
from apps.results.upstream import MEANT, TEST_REPOSITORY

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

# As the relay measures it: of any attempt, since the one dispatch.
_UPSTREAM_QUEUE = (
    "CASE WHEN 'late_start' = ANY(j.flags) THEN NULL "
    "WHEN j.start_seen_at IS NOT NULL AND x.sent_at IS NOT NULL "
    "THEN GREATEST(0, EXTRACT(EPOCH FROM j.start_seen_at - x.sent_at)) "
    "WHEN j.dispatch_id IS NULL THEN j.relay_queue_seconds END"
)
_UPSTREAM_RUN = (
    "CASE WHEN 'late_start' = ANY(j.flags) THEN NULL WHEN j.start_seen_at IS NOT NULL "
    "THEN EXTRACT(EPOCH FROM j.completed_at - j.start_seen_at) ELSE j.relay_execution_seconds END"
)

_NOT_HELD = NOT_HELD.format(job="relay_job")

_CURRENT = "COUNT(*) FILTER (WHERE NOT superseded AND NOT by_push AND {})"
_RATED = f"bucket <> '{INFORMATIONAL}'"
_TIMED = f"{_RATED} AND said <> 'timed_out' AND completed_at IS NOT NULL AND start_seen_at IS NOT NULL"
_FIRST = f"COUNT(*) FILTER (WHERE run_attempt = 1 AND NOT by_push AND NOT unheard AND {_RATED} AND {{}})"
# An end that somebody has to look at, whatever took its place since; not one that is as declared.
_RED = ", ".join(f"'{bucket.value}'" for bucket in RED)
_IS_RED = f"said IN ({_RED}) AND bucket NOT IN ('success', '{INFORMATIONAL}') AND NOT unheard"
_SUMS = {
    **{
        bucket: _CURRENT.format(f"bucket = '{bucket}' AND NOT unheard")
        for bucket in (*ENDED, "in_progress", INFORMATIONAL)
    },
    "superseded": "COUNT(*) FILTER (WHERE superseded OR by_push)",
    "superseded_by_push": "COUNT(*) FILTER (WHERE by_push AND NOT superseded)",
    "as_declared": _CURRENT.format("bucket = 'success' AND said <> 'success' AND NOT unheard"),
    "listed_apart": _CURRENT.format("bucket = 'failure' AND red_apart AND NOT unheard"),
    "unheard": _CURRENT.format("unheard"),
    "first_ended": _FIRST.format("status = 'completed'"),
    "first_success": _FIRST.format("bucket = 'success'"),
    "timed": _CURRENT.format(_TIMED),
    "overrun": _CURRENT.format(f"{_TIMED} AND completed_at - start_seen_at > make_interval(secs => %(overrun)s)"),
    "queued": "COUNT(queue)",
    "queue_seconds": "COALESCE(SUM(queue), 0)",
    "red": f"COUNT(*) FILTER (WHERE {_IS_RED})",
    "last_callback_at": "MAX(GREATEST(first_seen_at, start_heard_at, completed_at))",
}
# What a maintainer's declaration does for us, upstream does for one repository by the names of its jobs.
_MEANT = " OR ".join(
    f"r.full_name = '{TEST_REPOSITORY}' AND u.job_name LIKE '{name.replace('%', '%%')}' AND u.conclusion = '{end}'"
    for name, end in MEANT.items()
)
_UPSTREAM = {
    "upstream_jobs": "COUNT(*)",
    "upstream_success": f"COUNT(*) FILTER (WHERE u.conclusion = 'success' OR {_MEANT})",
    "upstream_timed_out": f"COUNT(*) FILTER (WHERE u.conclusion = 'timed_out' AND NOT ({_MEANT}))",
    "upstream_genuine": "COUNT(*) FILTER (WHERE u.conclusion <> 'timed_out')",
    "upstream_overrun": "COUNT(*) FILTER (WHERE u.conclusion <> 'timed_out' AND u.upstream_seconds > %(overrun)s)",
    "upstream_queued": "COUNT(u.upstream_queue)",
    "upstream_queue_seconds": "COALESCE(SUM(u.upstream_queue), 0)",
}
_ANSWERS = {
    "sent": "COUNT(*)",
    "answered": "COUNT(*) FILTER (WHERE is_answered)",
    "undecided": "COUNT(*) FILTER (WHERE NOT is_answered AND is_open)",
}
assert set(_SUMS) | set(_ANSWERS) == {*BUCKETS, *COUNTS, "last_callback_at"}
assert set(_ANSWERS) == set(ANSWERS)
assert set(_UPSTREAM) == set(UPSTREAM_COUNTS)
# Counts of what a day has nothing of: all 0. It has no last callback.
_NUMBERS = (*(name for name in _SUMS if name != "last_callback_at"), *_ANSWERS, *_UPSTREAM)
_RUNS = ("runs", "upstream_runs")
_COLUMNS = ("last_callback_at", *_NUMBERS, *_RUNS, "acknowledged")
# Of each red end that an oncall acknowledged, the seconds until the first who did.
_ACKNOWLEDGED = f"""COALESCE(
    ARRAY_AGG(GREATEST(0, EXTRACT(EPOCH FROM acknowledged_at - ended_at))::int ORDER BY acknowledged_at - ended_at, id)
        FILTER (WHERE {_IS_RED} AND acknowledged_at IS NOT NULL), ARRAY[]::int[]
) AS acknowledged"""
_CLOSED = ", ".join(f"('{event}', '{action}')" for event, action in UNANSWERED)

# A job also tells on the day on which its dispatch went out, and on that to which its run belongs.
TOUCHED_DAYS = f"""
WITH day AS (
    SELECT * FROM unnest(%(repositories)s::bigint[], %(days)s::date[]) AS of(repository_id, day)
), seen AS MATERIALIZED (
    SELECT DISTINCT day.repository_id, j.delivery_id, j.run_id, j.dispatch_id FROM day, LATERAL (
        SELECT delivery_id, run_id, dispatch_id FROM relay_job
        WHERE repository_id = day.repository_id AND {_NOT_HELD}
            AND first_seen_at >= day.day::timestamp AT TIME ZONE 'UTC'
            AND first_seen_at < (day.day + 1)::timestamp AT TIME ZONE 'UTC' OFFSET 0
    ) AS j
)
SELECT repository_id, day FROM day UNION
SELECT seen.repository_id, (x.sent_at AT TIME ZONE 'UTC')::date FROM seen
    JOIN relay_dispatch x ON x.id = seen.dispatch_id WHERE x.sent_at IS NOT NULL
UNION SELECT seen.repository_id, (j.first_seen_at AT TIME ZONE 'UTC')::date FROM seen, LATERAL (
    SELECT first_seen_at FROM relay_job WHERE repository_id = seen.repository_id AND {_NOT_HELD}
        AND md5(delivery_id) = md5(seen.delivery_id) AND run_id = seen.run_id OFFSET 0
) AS j
"""

# One count of a day at a time: the later one reads what the earlier one has not seen. In order, so that none waits
# for another in a circle.
LOCK = """
SELECT pg_advisory_xact_lock((repository_id %% 2147483648)::int, day - date '2000-01-01')
FROM (SELECT * FROM unnest(%(repositories)s::bigint[], %(days)s::date[]) AS of(repository_id, day) ORDER BY 1, 2) AS day
"""

_OF_JOBS = ", ".join(f"{sql} AS {name}" for name, sql in _SUMS.items())
_OF_UPSTREAM = ", ".join(f"{sql} AS {name}" for name, sql in _UPSTREAM.items())
_OF_ANSWERS = ", ".join(f"{sql} AS {name}" for name, sql in _ANSWERS.items())

_DAYS = """day AS (
    SELECT repository_id, day, day::timestamp AT TIME ZONE 'UTC' AS began,
        (day + 1)::timestamp AT TIME ZONE 'UTC' AS ended
    FROM unnest(%(repositories)s::bigint[], %(days)s::date[]) AS of(repository_id, day)
)"""
# A run of a day brings its other jobs with it, whenever they were seen: they say to which day the run belongs. OFFSET 0
# keeps each LATERAL a walk through its index: the planner cannot know how few jobs a day has, and would read the whole
# table.
_DAYS_AND_JOBS = f"""{_DAYS}, seen AS (
    SELECT DISTINCT day.repository_id, j.delivery_id, j.run_id
    FROM day, LATERAL (
        SELECT delivery_id, run_id FROM relay_job WHERE repository_id = day.repository_id AND {_NOT_HELD}
            AND first_seen_at >= day.began AND first_seen_at < day.ended OFFSET 0
    ) AS j
), job AS MATERIALIZED (
    SELECT j.repository_id, (j.first_seen_at AT TIME ZONE 'UTC')::date AS day,
        CASE WHEN j.event_type = 'periodic' THEN 'nightly' ELSE j.event_type END AS scope,
        j.id, j.public_id, j.delivery_id, j.run_id, j.job_name, j.status, j.conclusion, j.bucket AS said,
        {own_bucket_sql("j")} AS bucket, j.run_attempt, j.start_seen_at AS start_heard_at, j.first_seen_at,
        j.reported_started_at, j.reported_completed_at, 'absurd_times' = ANY(j.flags) AS is_absurd,
        CASE WHEN NOT 'late_start' = ANY(j.flags) THEN j.start_seen_at END AS start_seen_at,
        CASE WHEN NOT 'inferred' = ANY(j.flags) THEN j.completed_at END AS completed_at,
        j.completed_at AS ended_at, CASE WHEN j.bucket IN ({_RED}) THEN (
            SELECT MIN(at) FROM relay_acknowledgement WHERE job_id = j.id
        ) END AS acknowledged_at,
        'unheard' = ANY(j.flags) AS unheard, 'red_apart' = ANY(j.flags) AS red_apart,
        {_QUEUE} AS queue, COALESCE(d.is_late, false) AS is_late,
        {_UPSTREAM_QUEUE} AS upstream_queue, {_UPSTREAM_RUN} AS upstream_seconds,
        {superseded_sql("j")} AS superseded, {cancelled_by_push_sql("j")} AS by_push
    FROM seen, LATERAL (
        SELECT * FROM relay_job WHERE repository_id = seen.repository_id AND {_NOT_HELD}
            AND md5(delivery_id) = md5(seen.delivery_id) AND run_id = seen.run_id OFFSET 0
    ) AS j LEFT JOIN relay_dispatch x ON x.id = j.dispatch_id LEFT JOIN relay_delivery d ON d.id = x.delivery_id
)"""
# The dispatches of these days that ask for an answer.
_DISPATCHES = f"""dispatch AS (
    SELECT x.repository_id, day.day, d.event AS scope, d.delivery_id AS delivery, EXISTS (
        SELECT 1 FROM relay_job WHERE dispatch_id = x.id AND status = 'completed'
            AND NOT 'inferred' = ANY(flags) AND {_NOT_HELD}
    ) AS is_answered, x.sent_at > %(silent_since)s OR EXISTS (
        SELECT 1 FROM relay_job WHERE dispatch_id = x.id AND status = 'in_progress'
    ) OR EXISTS (
        SELECT 1 FROM relay_job WHERE dispatch_id = x.id AND 'unheard' = ANY(flags)
    ) OR EXISTS (
        SELECT 1 FROM relay_huboutage o
        WHERE o.started_at <= x.sent_at + %(silent_limit)s AND o.ended_at >= x.sent_at
    ) AS is_open
    FROM day, LATERAL (
        SELECT id, delivery_id, repository_id, sent_at FROM relay_dispatch
        WHERE repository_id = day.repository_id AND state = 'sent'
            AND sent_at >= day.began AND sent_at < day.ended OFFSET 0
    ) AS x JOIN relay_delivery d ON d.id = x.delivery_id
    WHERE (d.event, d.action) NOT IN ({_CLOSED}) AND NOT EXISTS (
        SELECT 1 FROM platforms_levelinterval l WHERE l.repository_id = x.repository_id AND l.level < %(public_from)s
            AND l.started_at <= x.sent_at AND (l.ended_at IS NULL OR l.ended_at > x.sent_at)
    )
)"""

COUNT = f"""
WITH {_DAYS_AND_JOBS}, run AS (
    SELECT repository_id, MIN(day) AS day, scope, (
        COALESCE(MAX(queue), 0) + EXTRACT(EPOCH FROM MAX(completed_at) - MIN(COALESCE(start_seen_at, first_seen_at)))
    )::int AS seconds
    FROM job WHERE run_attempt = 1
    GROUP BY repository_id, delivery_id, run_id, scope
    HAVING BOOL_AND(completed_at IS NOT NULL AND NOT by_push) AND BOOL_OR(start_seen_at IS NOT NULL)
        AND NOT BOOL_OR(is_late)
), runs AS MATERIALIZED (
    SELECT repository_id, day, scope, ARRAY_AGG(seconds ORDER BY seconds) AS seconds FROM run GROUP BY 1, 2, 3
), counted AS MATERIALIZED (
    SELECT repository_id, day, scope, {_OF_JOBS}, {_ACKNOWLEDGED}
    FROM job JOIN day USING (repository_id, day)
    GROUP BY 1, 2, 3
), told AS (
    SELECT DISTINCT ON (repository_id, run_id, job_name) * FROM job
    WHERE status = 'completed' AND reported_started_at IS NOT NULL
    ORDER BY repository_id, run_id, job_name, run_attempt DESC, id
), upstream AS MATERIALIZED (
    SELECT u.repository_id, u.day, u.scope, {_OF_UPSTREAM}
    FROM told u JOIN day USING (repository_id, day) JOIN platforms_repository r ON r.id = u.repository_id
    GROUP BY 1, 2, 3
), upstream_run AS (
    SELECT repository_id, MIN(day) AS day, scope, (
        MAX(upstream_queue) + EXTRACT(EPOCH FROM MAX(reported_completed_at) - MIN(reported_started_at))
    )::int AS seconds
    FROM told WHERE NOT is_absurd GROUP BY repository_id, run_id, scope
), upstream_runs AS MATERIALIZED (
    SELECT repository_id, day, scope, ARRAY_AGG(seconds ORDER BY seconds) AS seconds
    FROM upstream_run WHERE seconds IS NOT NULL GROUP BY 1, 2, 3
), {_DISPATCHES}, answers AS MATERIALIZED (
    SELECT repository_id, day, scope, {_OF_ANSWERS}
    FROM dispatch GROUP BY 1, 2, 3
), told_of AS MATERIALIZED (
    SELECT repository_id, day, scope FROM counted UNION SELECT repository_id, day, scope FROM answers
), gone AS (
    DELETE FROM results_dayfigures f USING day WHERE f.repository_id = day.repository_id AND f.day = day.day
        AND (f.repository_id, f.day, f.scope) NOT IN (SELECT repository_id, day, scope FROM told_of)
)
INSERT INTO results_dayfigures (repository_id, day, scope, {", ".join(_COLUMNS)}, counted_at)
SELECT repository_id, day, scope, last_callback_at, {", ".join(f"COALESCE({name}, 0)" for name in _NUMBERS)},
    {", ".join(f"COALESCE({name}.seconds, ARRAY[]::int[])" for name in _RUNS)},
    COALESCE(acknowledged, ARRAY[]::int[]), %(now)s
FROM told_of LEFT JOIN counted USING (repository_id, day, scope) LEFT JOIN upstream USING (repository_id, day, scope)
    LEFT JOIN answers USING (repository_id, day, scope) LEFT JOIN runs USING (repository_id, day, scope)
    LEFT JOIN upstream_runs USING (repository_id, day, scope)
ON CONFLICT (repository_id, scope, day) DO UPDATE SET counted_at = excluded.counted_at,
    {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)}
"""

# What is behind the figures of one repository and scope: each job as it counts, and each dispatch. Jobs of other days
# come along where they belong to a run of these days.
_ASIDE = "EXISTS (SELECT 1 FROM results_setaside a WHERE a.job_id = job.id AND a.since <= %(now)s)"
JOB_COLUMNS = {
    "day": "day::text",
    "run": "delivery_id || ' ' || run_id",
    "job": "public_id::text",
    "name": "job_name",
    "attempt": "run_attempt",
    "status": "status",
    "said": "said",
    "bucket": "bucket",
    "superseded": "superseded::int",
    "by_push": "by_push::int",
    "unheard": "unheard::int",
    "red_apart": "red_apart::int",
    "late": "is_late::int",
    "first_seen_us": "(EXTRACT(EPOCH FROM first_seen_at) * 1000000)::bigint",
    "start_us": "(EXTRACT(EPOCH FROM start_seen_at) * 1000000)::bigint",
    "completed_us": "(EXTRACT(EPOCH FROM completed_at) * 1000000)::bigint",
    "ended_us": "(EXTRACT(EPOCH FROM ended_at) * 1000000)::bigint",
    "acknowledged_us": "(EXTRACT(EPOCH FROM acknowledged_at) * 1000000)::bigint",
    "queue_us": "(queue * 1000000)::bigint",
    "aside": f"({_ASIDE})::int",
}
DISPATCH_COLUMNS = {
    "day": "day::text",
    "delivery": "delivery",
    "answered": "is_answered::int",
    "open": "is_open::int",
}
JOB_ROWS = f"""
WITH {_DAYS_AND_JOBS}
SELECT {", ".join(JOB_COLUMNS.values())} FROM job WHERE scope = %(scope)s ORDER BY first_seen_at, id
"""
DISPATCH_ROWS = f"""
WITH {_DAYS}, {_DISPATCHES}
SELECT {", ".join(DISPATCH_COLUMNS.values())} FROM dispatch WHERE scope = %(scope)s ORDER BY day, delivery
"""
# Of these, the jobs that a decision set aside by now, with their repository before the columns.
SET_ASIDE_ROWS = f"""
WITH {_DAYS_AND_JOBS}
SELECT job.repository_id, {", ".join(JOB_COLUMNS.values())} FROM job JOIN day USING (repository_id, day)
WHERE scope = %(scope)s AND {_ASIDE}
"""
