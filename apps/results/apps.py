from django.apps import AppConfig


class ResultsConfig(AppConfig):
    name = "apps.results"

    def ready(self) -> None:
        from apps.core.wakeups import register
        from apps.relay.topics import JOB_CHANGED
        from apps.results import removal, tasks_reports
        from apps.results.topics import FILE_UNWANTED, REPORT_READY, REPORT_RECEIVED

        # Lazy: a burst of callbacks touches the same days again and again, and one count sees them all.
        register(JOB_CHANGED, tasks_reports.heed_changed_jobs, lazy=True)
        register(REPORT_RECEIVED, tasks_reports.enqueue_parses)
        register(REPORT_READY, tasks_reports.judge_ready)
        register(FILE_UNWANTED, removal.forget_files, singly=True)
