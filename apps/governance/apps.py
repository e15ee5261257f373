from django.apps import AppConfig


class GovernanceConfig(AppConfig):
    name = "apps.governance"

    def ready(self) -> None:
        from apps.core.wakeups import register
        from apps.gate.topics import BREAKER_SAID
        from apps.governance import tasks, topics
        from apps.platforms import topics as platform_topics
        from apps.quarantine.topics import QUARANTINE_BROKEN

        register(topics.NOTICE_PENDING, tasks.enqueue_notices)
        register(platform_topics.DECISION_PUT_BACK, tasks.put_back_proposals)
        register(platform_topics.ALLOWLIST_ALARM, tasks.announce_alarms)
        register(QUARANTINE_BROKEN, tasks.announce_broken)
        register(BREAKER_SAID, tasks.announce_breakers)
