from django.apps import AppConfig


class QuarantineConfig(AppConfig):
    name = "apps.quarantine"

    def ready(self) -> None:
        from apps.core.wakeups import follow
        from apps.quarantine import tasks
        from apps.results.topics import REPORT_READY

        follow(REPORT_READY, tasks.enqueue_reports)
