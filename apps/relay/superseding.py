"""Which legs of a job later attempts supersede: the one definition, in SQL.

Attempts supersede per job (same run, workflow and job name), never per run. The n legs of an attempt supersede n
earlier legs of their job that still stand: those without success first, and of the same kind the oldest first. So what
"re-run failed jobs" leaves out stays current. A leg that is held supersedes nothing, and nothing supersedes it.

Read as a queue: legs wait to be superseded, and each attempt takes as many as it has legs, before its own begin to
wait. What is left waiting follows from how many legs each attempt has (`legs`) and how many of them are without
success (`red`): `red_left` by summing up, from the last attempt backwards, what came in and was not taken; all that
stand are as many as the largest attempt has. Who is left are the youngest of either kind.
"""

from apps.relay.enums import Flag

# ruff: noqa: S608  statements are put together from constants of this file

# Where an earlier attempt counts that a later one took the place of.
SUPERSEDED = "superseded"

# What a new owner sends is held: it counts nowhere before somebody accepts that owner.
NOT_HELD = f"NOT '{Flag.HELD.value}' = ANY({{job}}.flags)"

_SAME_JOB = f"""l.repository_id = {{job}}.repository_id AND md5(l.delivery_id) = md5({{job}}.delivery_id)
    AND l.run_id = {{job}}.run_id AND md5(l.workflow) = md5({{job}}.workflow)
    AND md5(l.job_name) = md5({{job}}.job_name) AND {NOT_HELD.format(job="l")}"""

# Nearly every job has no later attempt: only the others are counted through.
_SUPERSEDED = f"""CASE WHEN NOT ({NOT_HELD}) OR NOT EXISTS (
    SELECT 1 FROM relay_job l WHERE {_SAME_JOB} AND l.run_attempt > {{job}}.run_attempt
) THEN FALSE ELSE (
    WITH leg AS (
        SELECT l.id, l.run_attempt, l.bucket <> 'success' AS is_red,
            MAX(l.run_attempt) OVER () = l.run_attempt AS is_last
        FROM relay_job l WHERE {_SAME_JOB}
    ), attempt AS (
        SELECT run_attempt, COUNT(*) AS legs,
            LAG(COUNT(*) FILTER (WHERE is_red), 1, 0::bigint) OVER (ORDER BY run_attempt) AS red_before
        FROM leg GROUP BY run_attempt
    ), flow AS (
        SELECT run_attempt, legs, SUM(red_before - legs) OVER (ORDER BY run_attempt DESC) AS red_waiting FROM attempt
    ), remaining AS (
        SELECT GREATEST(0, MAX(red_waiting)) AS red_left,
            MAX(legs) - (ARRAY_AGG(legs ORDER BY run_attempt DESC))[1] AS all_left
        FROM flow
    ), place AS (
        SELECT id, is_red, ROW_NUMBER() OVER (PARTITION BY is_red ORDER BY run_attempt DESC, id DESC) AS youngest
        FROM leg WHERE NOT is_last
    )
    SELECT place.youngest > CASE WHEN place.is_red THEN red_left ELSE all_left - red_left END
    FROM place, remaining WHERE place.id = {{job}}.id
) END"""


def superseded_sql(job: str) -> str:
    """A boolean expression over a row of relay_job with this alias: whether later attempts supersede it."""
    return _SUPERSEDED.format(job=job)
