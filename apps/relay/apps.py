from django.apps import AppConfig


class RelayConfig(AppConfig):
    name = "apps.relay"

    def ready(self) -> None:
        from apps.core.wakeups import register
        from apps.relay import tasks, tasks_adoption, tasks_upstream, topics

        register(topics.DELIVERY_RECEIVED, tasks.fan_out_deliveries)
        register(topics.DISPATCH_PENDING, tasks.enqueue_dispatches)
        register(topics.FORWARD_PENDING, tasks_adoption.enqueue_forwards)
        register(topics.GRAPH_PENDING, tasks_upstream.enqueue_graph)
