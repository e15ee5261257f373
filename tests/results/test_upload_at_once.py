"""Uploads that come at the same time: none is lost, none is there twice."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client

from apps.results.models import Report, Upload, UploadPart
from tests.factories.listing import listed
from tests.live import ClonedDatabase
from tests.relay.downstream import Downstream
from tests.relay.test_callback import KESTREL
from tests.results.reporter import meta_of

ALL = 20


def test_twenty_uploads_at_once_are_twenty_reports_and_their_retries_nothing(
    cloned_database: ClonedDatabase, downstream: Callable[..., Downstream], storage_folder: Path
) -> None:
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    made.github.add_repository(KESTREL)

    def post(number: int, **changes: object) -> tuple[int, str, str]:
        meta = json.dumps(meta_of(made, **changes))
        try:
            answer = Client().post(
                "/api/v1/reports/",
                {"meta": meta, "file": SimpleUploadedFile("r.xml", b"<a>%d</a>" % (number // 2))},
                headers={"Authorization": f"Bearer {made.token()}"},
            )
            body = answer.json()
            return answer.status_code, body["status"], body["id"]
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: post(n, report_key=str(n % ALL)), range(ALL)))
        again = list(pool.map(lambda n: post(n, report_key=str(n % ALL)), range(ALL)))
    assert {answer[:2] for answer in answers} == {(202, "received")}
    assert again == [(202, "duplicate", name) for _, _, name in answers]
    assert (len({name for _, _, name in answers}), Report.objects.count(), Upload.objects.count()) == (ALL, ALL, ALL)
    # Every two hold the same bytes, stored once.
    files = sorted(path.name for path in storage_folder.rglob("*") if path.is_file())
    assert files == sorted(set(UploadPart.objects.values_list("sha256", flat=True)))
    assert len(files) == ALL // 2

    with ThreadPoolExecutor(8) as pool:
        shards = list(pool.map(lambda n: post(n, report_key="one", shard=n + 1, shards=ALL), range(ALL)))
    assert {answer[:2] for answer in shards} == {(202, "received")}
    assert len({name for _, _, name in shards}) == 1
    assert Report.objects.get(report_key="one").wanted == ALL
