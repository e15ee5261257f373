"""A field for the gate, made in bulk: repositories that block, heads of pull requests that each of them was sent, jobs
that ended, reports with red tests, and main's commits with reports that say what was green."""

import datetime
from typing import Any

from django.db import connection

# Main's commits, one an hour back from now.
COMMITS = 24 * 15
CASES = 600_000
JOBS_OF_A_HEAD = 3


def listed(names: list[str], level: int, *, since_days: int = 40) -> list[Any]:
    """Repositories at a level since so many days, beside nothing else."""
    from apps.audit.services import command_actor
    from apps.core.clock import now
    from apps.platforms.allowlist import parse
    from apps.platforms.models import Repository
    from apps.platforms.services import import_allowlist

    text = f"L{level}:\n" + "".join(f"- {name}: who\n" for name in names)
    at = now() - datetime.timedelta(days=since_days)
    import_allowlist(allowlist=parse(text), source="bench", sha256="0" * 64, actor=command_actor("bench"), now=at)
    return list(Repository.objects.filter(full_name__in=names).order_by("pk"))


def main_commits() -> list[str]:
    """Main, as the graph has it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO relay_commit (sha, parent_sha, position, placed_at) SELECT md5('c' || n) || '00000000', "
            "md5('c' || n - 1) || '00000000', n, now() - make_interval(hours => %s - n) FROM generate_series(1, %s) n "
            "ON CONFLICT DO NOTHING",
            [COMMITS, COMMITS],
        )
        cursor.execute("SELECT sha FROM relay_commit ORDER BY position")
        return [sha for (sha,) in cursor.fetchall()]


def heads(name: str, count: int, *, days: float, repositories: list[Any]) -> None:
    """So many pull requests of one head each over the last days; each repository was sent each, and its jobs ended, one
    in ten red; one in three of those green in a second attempt. `name` keeps apart several such fields."""
    keys = [repository.pk for repository in repositories]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO relay_delivery (delivery_id, event, action, state, received_at, body, pr_number, title, "
            "head_sha, ref, is_late) SELECT %s || n, 'pull_request', 'synchronize', 'fanned_out', "
            "now() - make_interval(secs => 90000 + n * %s), '', n, 'Change number ' || n, md5(%s || n) || '00000000', "
            "'x', false FROM generate_series(1, %s) n",
            [name, days * 86_400 / count, name, count],
        )
        cursor.execute(
            "INSERT INTO relay_mergebase (pr_number, head_sha, state, base_sha, due_at, attempts, error) "
            "SELECT d.pr_number, d.head_sha, 'known', md5('c' || greatest(1, %s - (extract(epoch FROM now() - "
            "d.received_at) / 3600)::int)) || '00000000', d.received_at, 0, '' FROM relay_delivery d "
            "WHERE d.delivery_id LIKE %s",
            [COMMITS, f"{name}%"],
        )
        cursor.execute(
            "INSERT INTO relay_dispatch (delivery_id, repository_id, state, created_at, changed_at, sent_at, attempts, "
            "attempts_allowed, error) SELECT d.id, r, 'sent', d.received_at, d.received_at, d.received_at, 1, 7, '' "
            "FROM relay_delivery d, unnest(%s::bigint[]) r WHERE d.delivery_id LIKE %s",
            [keys, f"{name}%"],
        )
        cursor.execute(
            "INSERT INTO relay_job (public_id, repository_id, dispatch_id, delivery_id, event_type, run_id, "
            "run_attempt, workflow, job_name, leg, check_run_id, url, artifact_url, head_sha, pr_number, status, "
            "conclusion, bucket, flags, first_seen_at, start_seen_at, completed_at, revision, joined_leg, provenance, "
            "verdict, github_said, lookups) "
            "SELECT gen_random_uuid(), x.repository_id, x.id, d.delivery_id, 'pull_request', x.id::text, a, 'CI', "
            "'job-' || n, '', '', '', '', d.head_sha, d.pr_number, 'completed', c.word, c.word, '{}', "
            "x.sent_at + make_interval(hours => a) - interval '50 min', "
            "x.sent_at + make_interval(hours => a) - interval '50 min', "
            "x.sent_at + make_interval(hours => a) - interval '20 min', 1, '', 'confirmed', 'verified', '', 0 "
            "FROM relay_dispatch x JOIN relay_delivery d ON d.id = x.delivery_id, generate_series(1, %s) n, "
            "generate_series(1, 2) a, "
            "LATERAL (SELECT x.repository_id * 3 + d.pr_number AS dice) e, "
            "LATERAL (SELECT CASE WHEN n = 1 AND a = 1 AND e.dice %% 10 = 0 THEN 'failure' ELSE 'success' END word) c "
            "WHERE d.delivery_id LIKE %s AND (a = 1 OR (n = 1 AND e.dice %% 30 = 0))",
            [JOBS_OF_A_HEAD, f"{name}%"],
        )


def reports(*, red: int, of_main: list[str], repositories: list[Any]) -> int:
    """A report of CASES tests for each red job, with so many red tests; and of main's commits, each sixth, with none.
    Returns how many there are."""
    from apps.core.clock import now
    from apps.relay.models import Job
    from apps.results import catalogue
    from apps.results.models import Finding, Report, Upload
    from apps.results.names.rules import words_of

    names = [("test_ops.py", f"TestOps{number // 100}", f"test_{number}") for number in range(red * 10)]
    tests = catalogue.identify(names, words_of("npu")).tests.tolist()
    failed = list(Job.objects.filter(bucket="failure", repository__in=repositories).order_by("pk"))
    moment = now()
    rows = [_report(job.repository, job.head_sha, job.run_id, job.completed_at, failed=red) for job in failed]
    for place, sha in enumerate(of_main):
        at = moment - datetime.timedelta(hours=COMMITS - place)
        if place % 6 == 0:
            rows += [_report(one, sha, f"m{place}", at, failed=0) for one in repositories]
    Report.objects.bulk_create(rows, batch_size=2_000)
    Upload.objects.bulk_create(
        [
            Upload(
                report=report,
                digest="0" * 64,
                bytes=1,
                run_id=job.run_id,
                run_attempt=1,
                job_name=job.job_name,
                job=job,
                claims={},
                tests=CASES,
                failing=red,
                is_whole=True,
                received_at=job.completed_at,
            )
            for job, report in zip(failed, rows, strict=False)
        ],
        batch_size=2_000,
    )
    Finding.objects.bulk_create(
        [
            Finding(
                report=report,
                test_id=tests[(number * 7 + at) % len(tests)],
                outcome="failed",
                fingerprint=number.to_bytes(16, "big"),
            )
            for number, (_, report) in enumerate(zip(failed, rows, strict=False))
            for at in range(red)
        ],
        batch_size=5_000,
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return len(rows)


def _report(repository: Any, sha: str, run: str, at: datetime.datetime, *, failed: int) -> Any:
    from apps.results.models import Report
    from apps.results.models_reports import OUTCOME_COUNTS

    counts = dict.fromkeys(OUTCOME_COUNTS, 0) | {"passed": CASES - failed, "failed": failed, "total": CASES}
    return Report(
        repository=repository,
        variant="default",
        report_key=f"{sha} {run}",
        head_sha=sha,
        run_id=run,
        run_attempt=1,
        job_name="job-1",
        level=repository.level,
        wanted=1,
        revision=1,
        state="ready",
        progress=100,
        received_at=at,
        changed_at=at,
        parsed_at=at,
        outcomes_name="none",
        **counts,
    )
