"""One OIDC token sent with several bodies at once: PostgreSQL lets one of them through."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import connection
from django.test import Client

from apps.relay.models import Callback, Job, Rejection
from tests.factories.listing import listed
from tests.relay.downstream import Downstream
from tests.relay.test_provenance import KESTREL, send


def test_two_bodies_with_one_token_at_once_are_one_callback(
    cloned_database: None, downstream: Callable[..., Downstream], client: Client, empty_redis: None
) -> None:
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    send(client)
    token = made.token()

    def post(name: str) -> int:
        try:
            response = Client().post(
                "/github/callback",
                made.body(job_name=name),
                content_type="application/json",
                headers={"Authorization": f"Bearer {token}"},
            )
            return int(response.status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(post, [f"job {n}" for n in range(8)]))
    assert statuses == [200] + [409] * 7
    assert (Job.objects.count(), Callback.objects.count()) == (1, 1)
    assert list(Rejection.objects.values_list("code", "count")) == [("token_reused", 7)]
