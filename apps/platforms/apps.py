from django.apps import AppConfig


class PlatformsConfig(AppConfig):
    name = "apps.platforms"

    def ready(self) -> None:
        from apps.audit import notes
        from apps.core.wakeups import register
        from apps.platforms import edits, tasks, topics

        register(topics.REPOSITORY_UNPINNED, tasks.enqueue_pinning)
        register(topics.EDIT_PENDING, tasks.enqueue_edits)
        notes.register(edits.notes_of_decision)
        register(topics.SYNC_WANTED, tasks.enqueue_sync)
        register(topics.REPOSITORY_RENAMED, tasks.enqueue_names)
