from django.apps import AppConfig


class GovernanceConfig(AppConfig):
    name = "apps.governance"

    def ready(self) -> None:
        from apps.core.wakeups import register
        from apps.governance import tasks, topics

        register(topics.NOTICE_PENDING, tasks.enqueue_notices)
