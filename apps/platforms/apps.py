from django.apps import AppConfig


class PlatformsConfig(AppConfig):
    name = "apps.platforms"

    def ready(self) -> None:
        from apps.core.wakeups import register
        from apps.platforms import tasks, topics

        register(topics.REPOSITORY_UNPINNED, tasks.enqueue_pinning)
        register(topics.REPOSITORY_RENAMED, tasks.enqueue_names)
