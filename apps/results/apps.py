from django.apps import AppConfig


class ResultsConfig(AppConfig):
    name = "apps.results"

    def ready(self) -> None:
        from apps.core.wakeups import register
        from apps.relay.topics import JOB_CHANGED
        from apps.results import tasks

        # Lazy: a burst of callbacks touches the same days again and again, and one count sees them all.
        register(JOB_CHANGED, tasks.enqueue_counts, lazy=True)
