from django.apps import AppConfig


class ChecksConfig(AppConfig):
    name = "apps.checks"

    def ready(self) -> None:
        from apps.checks import tasks, topics
        from apps.core.wakeups import register
        from apps.gate.topics import BREAKER_CHANGED, GATE_CHANGED
        from apps.platforms.topics import LISTING_FOR_CHECKS
        from apps.relay.topics import DELIVERY_FOR_CHECKS, JOB_FOR_CHECKS

        # Each locks the commit that it looks at.
        register(JOB_FOR_CHECKS, tasks.look_at_jobs, singly=True)
        register(DELIVERY_FOR_CHECKS, tasks.look_at_deliveries, singly=True)
        register(LISTING_FOR_CHECKS, tasks.look_at_repositories, singly=True)
        register(BREAKER_CHANGED, tasks.look_at_breakers, singly=True)
        register(GATE_CHANGED, tasks.look_at_commits, singly=True)
        register(topics.CHECK_PENDING, tasks.enqueue_checks)
        register(topics.RERUN_PENDING, tasks.enqueue_reruns)
