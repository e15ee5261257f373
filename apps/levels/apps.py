from django.apps import AppConfig


class LevelsConfig(AppConfig):
    name = "apps.levels"

    def ready(self) -> None:
        from apps.core.wakeups import follow
        from apps.levels import tasks
        from apps.platforms.topics import DECISION_PUT_BACK

        follow(DECISION_PUT_BACK, tasks.put_back_promotions)
