"""`POST /api/v1/reports/`: what is taken, what is refused, and what of it is safe when the answer goes out."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client, override_settings

from apps.core.clock import now
from apps.core.models import Wakeup
from apps.relay.models import Rejection
from apps.results import leases, quotas, uploads
from apps.results.incoming import STALE_AFTER, forget_stale
from apps.results.models import Report, Upload, UploadPart
from tests.factories.listing import listed
from tests.relay.downstream import HEAD_SHA, Downstream, refusal
from tests.relay.test_callback import KESTREL, dispatch
from tests.results.reporter import JUNIT, meta_of, received, upload

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("storage_folder")]
SHA = hashlib.sha256(JUNIT).hexdigest()


@pytest.fixture
def kestrel(downstream: Callable[..., Downstream], client: Client) -> Downstream:
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    return made


def stored(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_upload_is_stored_by_what_it_holds_before_it_is_answered(kestrel: Downstream, storage_folder: Path) -> None:
    name = received(upload(kestrel, ("out.xml", JUNIT), torch_version="2.10", hardware="N1 × 8"))
    report = Report.objects.get(public_id=name)
    assert stored(storage_folder) == {f"raw/{SHA[:2]}/{SHA}": JUNIT}
    assert (report.variant, report.report_key) == ("default", f"run {kestrel.run_id}.1 / CI / build / 456")
    assert (report.state, report.wanted, report.revision, report.counts) == ("received", 1, 0, None)
    assert (report.torch_version, report.hardware, report.level, report.flags) == ("2.10", "N1 × 8", 2, [])
    sent = Upload.objects.get()
    assert (sent.shard, sent.bytes, sent.job_name, sent.check_run_id, sent.job) == (1, len(JUNIT), "build", "456", None)
    assert list(UploadPart.objects.values_list("name", "sha256", "bytes")) == [("out.xml", SHA, len(JUNIT))]
    assert list(Wakeup.objects.filter(topic="report_received").values_list("key", flat=True)) == [str(report.pk)]
    assert list(settings.INCOMING_DIR.iterdir()) == []


def test_the_same_bytes_again_are_a_duplicate_and_change_nothing(kestrel: Downstream) -> None:
    name = received(upload(kestrel))
    again = upload(kestrel)
    assert (again.status_code, again.json()["id"], again.json()["status"]) == (202, name, "duplicate")
    assert (Upload.objects.count(), Report.objects.get().wanted) == (1, 1)


def test_other_bytes_for_the_same_shard_are_a_conflict_that_is_counted(kestrel: Downstream) -> None:
    received(upload(kestrel))
    assert refusal(upload(kestrel, b"<testsuites/>")) == (409, "report_conflict", "report_key")
    assert list(Rejection.objects.values_list("code", "repository__full_name")) == [("report_conflict", KESTREL)]
    assert Upload.objects.count() == 1


def test_shards_of_one_key_are_one_report(kestrel: Downstream) -> None:
    key: dict[str, Any] = {"report_key": "nightly 7", "shards": 3}
    first = received(upload(kestrel, b"<a/>", shard=1, job_name="test (1)", **key))
    assert received(upload(kestrel, b"<b/>", shard=3, job_name="test (3)", **key)) == first
    assert refusal(upload(kestrel, b"<c/>", shard=2, **key | {"shards": 4})) == (409, "report_conflict", "shards")
    body = kestrel.client.get(f"/api/v1/reports/{first}/").json()
    assert body == {
        "id": first,
        "variant": "default",
        "state": "received",
        "progress": 0,
        "counts": None,
        "files": [],
        "flags": [],
        "shards": {"declared": 3, "missing": [2]},
        "quarantined": None,
        "raw_removed_at": None,
        "reason": "",
    }


def test_a_variant_is_a_report_of_its_own(kestrel: Downstream) -> None:
    first = received(upload(kestrel, report_key="k"))
    assert received(upload(kestrel, report_key="k", variant="inductor")) != first


def test_several_files_of_one_upload_share_equal_bytes(kestrel: Downstream, storage_folder: Path) -> None:
    received(upload(kestrel, ("a.xml", JUNIT), ("b.xml", JUNIT), ("c.xml", b"<c/>")))
    assert len(stored(storage_folder)) == 2
    assert list(UploadPart.objects.order_by("position").values_list("position", "name")) == [
        (0, "a.xml"),
        (1, "b.xml"),
        (2, "c.xml"),
    ]


def test_commit_and_pull_request_come_from_our_delivery_never_from_the_meta(kestrel: Downstream) -> None:
    dispatch(kestrel.client)
    name = received(upload(kestrel, delivery_id="d-1", event_type="pull_request", head_sha="ab" * 20))
    report = Report.objects.get(public_id=name)
    assert (report.head_sha, report.event, report.flags) == (HEAD_SHA, "pull_request", [])
    assert report.dispatch is not None
    assert report.dispatch.delivery.pr_number == 184233


def test_a_delivery_that_was_never_sent_there_is_refused_as_for_callbacks(kestrel: Downstream) -> None:
    assert refusal(upload(kestrel, delivery_id="d-404", event_type="push")) == (403, "never_dispatched", "delivery_id")
    assert refusal(upload(kestrel, event_type="push")) == (400, "malformed", "delivery_id")


def test_a_nightly_names_its_commit_itself_and_that_is_flagged(kestrel: Downstream) -> None:
    received(upload(kestrel, event_type="nightly", delivery_id="cd" * 20))
    assert Report.objects.values_list("head_sha", "event", "flags").get() == ("cd" * 20, "nightly", ["claimed_commit"])


def test_an_unlisted_repository_is_answered_ignored_and_nothing_is_read(
    downstream: Callable[..., Downstream], storage_folder: Path
) -> None:
    made = downstream("nobody/torch")
    answer = upload(made)
    assert (answer.status_code, answer.json()) == (200, {"status": "ignored"})
    assert (Report.objects.count(), stored(storage_folder)) == (0, {})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"run_id": "1"}, (403, "claims_contradict", "run_id")),
        ({"run_attempt": 2}, (403, "claims_contradict", "run_attempt")),
        ({"run_id": None}, (400, "malformed", "run_id")),
        ({"job_name": None}, (400, "malformed", "job_name")),
        ({"job_name": "x" * 301}, (400, "malformed", "job_name")),
        ({"variant": "v" * 101}, (400, "malformed", "variant")),
        ({"variant": "a\nb"}, (400, "malformed", "variant")),
        ({"report_key": "k" * 201}, (400, "malformed", "report_key")),
        ({"report_key": "a\0b"}, (400, "malformed", "report_key")),
        ({"shard": 0}, (400, "malformed", "shard")),
        ({"shard": 2}, (400, "malformed", "shard")),
        ({"shards": 1001}, (400, "malformed", "shards")),
        ({"shards": 1.5}, (400, "malformed", "shards")),
        ({"head_sha": "abc"}, (400, "malformed", "head_sha")),
        ({"event_type": "release"}, (400, "malformed", "event_type")),
    ],
)
def test_a_meta_that_does_not_fit_is_refused_by_field(
    kestrel: Downstream, storage_folder: Path, changes: dict[str, Any], expected: tuple[int, str, str]
) -> None:
    assert refusal(upload(kestrel, **changes)) == expected
    assert (stored(storage_folder), list(settings.INCOMING_DIR.iterdir())) == ({}, [])


@pytest.mark.parametrize(
    "meta",
    ["", "[]", "{", "\ud800", "null", '{"run_id": NaN}', "[" * 5_000, "x" * 20_000, '{"run_id": "\\ud800"}'],
    ids=["none", "list", "cut", "surrogate", "null", "nan", "deep", "long", "half"],
)
def test_a_meta_that_is_none_is_refused_and_never_a_fault(kestrel: Downstream, meta: str) -> None:
    answer = upload(kestrel, meta=meta.encode("utf-8", "replace").decode())
    assert (answer.status_code, answer.json()["field"]) in [(400, "meta"), (413, "meta"), (400, "run_id")]


BOUNDARY = "multipart/form-data; boundary=b"


@pytest.mark.parametrize(
    ("raw", "content_type", "expected"),
    [
        (b"{}", "application/json", (400, "malformed", "Content-Type")),
        (b"--b", "multipart/form-data", (400, "malformed", None)),
        (b"--b\r\nContent-Disposition: form-data; name=", BOUNDARY, (400, "malformed", "meta")),
        (
            b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nhi\r\n--b--',
            BOUNDARY,
            (400, "malformed", "file"),
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="evil"; filename="a"\r\n\r\nhi\r\n--b--',
            BOUNDARY,
            (400, "malformed", "file"),
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n'
            b"Content-Transfer-Encoding: base64\r\n\r\n!!!!!\r\n--b--",
            BOUNDARY,
            (400, "malformed", None),
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="meta"; filename="m"\r\n\r\n' + b"x" * 20_000 + b"\r\n--b--",
            BOUNDARY,
            (413, "too_large", "meta"),
        ),
    ],
    ids=["json", "no boundary", "cut", "plain field", "other field", "bad base64", "long meta"],
)
def test_a_body_that_is_no_upload_is_refused_and_leaves_nothing(
    kestrel: Downstream, raw: bytes, content_type: str, expected: tuple[int, str, str | None]
) -> None:
    answer = kestrel.client.post(
        "/api/v1/reports/", raw, content_type=content_type, headers={"Authorization": f"Bearer {kestrel.token()}"}
    )
    assert refusal(answer) == expected
    assert not settings.INCOMING_DIR.exists() or list(settings.INCOMING_DIR.iterdir()) == []


def test_meta_may_come_as_a_file(kestrel: Downstream) -> None:
    meta = json.dumps(meta_of(kestrel)).encode()
    raw = b"".join(
        b'--b\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n\r\n%s\r\n' % part
        for part in ((b"meta", b"m.json", meta), (b"file", b"r.xml", JUNIT))
    )
    answer = kestrel.client.post(
        "/api/v1/reports",
        raw + b"--b--\r\n",
        content_type=BOUNDARY,
        headers={"Authorization": f"Bearer {kestrel.token()}"},
    )
    received(answer)


def test_an_upload_without_a_file_is_refused(kestrel: Downstream) -> None:
    answer = kestrel.client.post(
        "/api/v1/reports/",
        {"meta": json.dumps(meta_of(kestrel))},
        headers={"Authorization": f"Bearer {kestrel.token()}"},
    )
    assert refusal(answer) == (400, "malformed", "file")


def test_tokens_are_asked_for_as_by_the_callbacks_door(kestrel: Downstream) -> None:
    assert refusal(upload(kestrel, token="")) == (401, "token_missing", None)
    assert refusal(upload(kestrel, token="nonsense"))[:2] == (401, "token_invalid")
    assert refusal(upload(kestrel, token=kestrel.token(repository_id="999999"))) == (
        403,
        "identity_replaced",
        "repository_id",
    )
    assert sorted(Rejection.objects.values_list("code", flat=True)) == [
        "identity_replaced",
        "token_invalid",
        "token_missing",
    ]


def test_a_token_that_spoke_in_a_callback_may_bring_a_report(kestrel: Downstream) -> None:
    dispatch(kestrel.client)
    token = kestrel.token()
    assert kestrel.post(kestrel.body(), token=token).status_code == 200
    received(upload(kestrel, token=token, delivery_id="d-1"))


def test_an_upload_over_the_limit_is_refused_unread_or_on_the_way(
    kestrel: Downstream, monkeypatch: pytest.MonkeyPatch, storage_folder: Path
) -> None:
    monkeypatch.setattr("apps.results.incoming.UPLOAD_MAX_BYTES", 100)
    assert refusal(upload(kestrel)) == (413, "too_large", "file")
    monkeypatch.setattr(quotas, "UPLOAD_MAX_BYTES", -quotas.ENVELOPE_BYTES)
    assert refusal(upload(kestrel)) == (413, "too_large", "file")
    assert (stored(storage_folder), list(settings.INCOMING_DIR.iterdir())) == ({}, [])


def test_a_day_holds_so_many_bytes_of_a_repository_and_retries_are_free(
    kestrel: Downstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "DAY_MAX_BYTES", len(JUNIT) + 10)
    received(upload(kestrel, report_key="1"))
    refused = upload(kestrel, report_key="2")
    assert refusal(refused) == (429, "quota_used", "file")
    assert 0 < int(refused.headers["Retry-After"]) <= 86_401
    assert upload(kestrel, report_key="1").json()["status"] == "duplicate"
    received(upload(kestrel, b"<a/>", report_key="3"))
    assert Report.objects.count() == 2


def test_so_many_uploads_a_minute(kestrel: Downstream, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.core.limits import Limit

    monkeypatch.setattr(quotas, "RATE", Limit("report", 2, "uploads of this repository"))
    assert [upload(kestrel).status_code for _ in range(3)] == [202, 202, 429]


def test_a_storage_that_fails_is_said_and_the_identical_upload_later_succeeds(
    kestrel: Downstream, storage_folder: Path
) -> None:
    storage_folder.parent.mkdir(exist_ok=True)
    storage_folder.write_bytes(b"a file where a folder should be")
    refused = upload(kestrel)
    assert (refusal(refused), refused.headers["Retry-After"]) == ((503, "unavailable", None), "60")
    assert Report.objects.count() == 0
    storage_folder.unlink()
    received(upload(kestrel))


def test_under_a_new_owner_a_report_is_held_until_that_one_is_accepted(kestrel: Downstream) -> None:
    name = received(upload(kestrel, token=kestrel.token(repository_owner_id="77")))
    assert kestrel.client.get(f"/reports/{name}/").status_code == 404
    report = Report.objects.get()
    assert (report.is_held, report.held_owner_id) == (True, 77)
    assert report.repository is not None
    report.repository.github_owner_id = 77
    report.repository.save()
    assert kestrel.client.get(f"/reports/{name}/").status_code == 200


@override_settings(MODE="observer", HUD_BOT_KEY="key")
def test_in_observer_mode_a_delivery_of_another_relay_is_a_claim(kestrel: Downstream) -> None:
    received(upload(kestrel, delivery_id="theirs", event_type="push", head_sha="ab" * 20))
    assert Report.objects.values_list("delivery_id", "head_sha", "flags").get() == (
        "theirs",
        "ab" * 20,
        ["claimed_commit"],
    )


def test_what_a_dead_server_left_of_an_upload_goes_after_a_day(kestrel: Downstream) -> None:
    received(upload(kestrel))
    left = settings.INCOMING_DIR / "dead.upload"
    left.write_bytes(b"half")
    assert (forget_stale(now=now()), left.exists()) == (0, True)
    assert (forget_stale(now=now() + STALE_AFTER * 2), left.exists()) == (1, False)


def test_an_upload_has_so_many_files(kestrel: Downstream) -> None:
    received(upload(kestrel, *[b"<a/>"] * quotas.PARTS_MAX))
    assert refusal(upload(kestrel, *[b"<a/>"] * (quotas.PARTS_MAX + 1), report_key="k"))[:2] == (400, "malformed")


def test_more_that_comes_while_a_worker_reads_leaves_it_to_that_worker(kestrel: Downstream) -> None:
    key: dict[str, Any] = {"report_key": "k", "shards": 2}
    received(upload(kestrel, shard=1, **key))
    lease = leases.take(report_pk=Report.objects.get().pk, now=now())
    received(upload(kestrel, b"<a/>", shard=2, **key))
    assert lease is not None
    assert leases.held(lease).values_list("state", "wanted").get() == ("parsing", 2)


def test_a_files_name_is_one_line_of_printable_text(kestrel: Downstream) -> None:
    meta = json.dumps(meta_of(kestrel)).encode()
    name = "C:\\x\\../a\0b\u202e\x1b.xml".encode()
    raw = b"".join(
        b'--b\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n' % part
        for part in ((b"meta", b"", meta), (b"file", b'; filename="' + name + b'"', JUNIT))
    )
    headers = {"Authorization": f"Bearer {kestrel.token()}"}
    received(kestrel.client.post("/api/v1/reports/", raw + b"--b--", content_type=BOUNDARY, headers=headers))
    assert UploadPart.objects.get().name == "ab.xml"
