from django.apps import AppConfig


class AppealsConfig(AppConfig):
    name = "apps.appeals"

    def ready(self) -> None:
        from apps.appeals import selectors
        from apps.audit import notes

        notes.register(selectors.notes_of_decision)
