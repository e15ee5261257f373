from django.apps import AppConfig


class GateConfig(AppConfig):
    name = "apps.gate"

    def ready(self) -> None:
        from apps.core.wakeups import follow, register
        from apps.gate import tasks
        from apps.gate.topics import GATE_ASKED
        from apps.platforms.topics import BLOCKING_CHANGED
        from apps.relay.topics import BASE_KNOWN, JOB_CHANGED
        from apps.results.topics import REPORT_READY

        register(GATE_ASKED, tasks.heed_asked)
        register(BASE_KNOWN, tasks.heed_asked)
        register(BLOCKING_CHANGED, tasks.heed_blocking)
        follow(JOB_CHANGED, tasks.heed_changed_jobs)
        follow(REPORT_READY, tasks.heed_ready_reports)
