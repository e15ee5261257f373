"""A bundle counts again from itself alone, whatever became of the hub's rows; and says so when it was changed."""

import copy
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client

from apps.levels.bundle import BundleError, compared, evaluation_of, hash_of, packed, parsed, unpacked
from apps.levels.models import EvidenceBundle, Promotion
from apps.levels.promoting import newest_bundle
from apps.platforms.models import LevelInterval
from apps.relay.models import Dispatch, Job
from apps.results.models import DayFigures
from tests.factories.promotions import promotion, proven

pytestmark = pytest.mark.django_db


def command(*args: str) -> str:
    out = StringIO()
    call_command("bundle", *args, stdout=out)
    return out.getvalue()


@pytest.fixture
def bundle() -> EvidenceBundle:
    return newest_bundle(promotion())


def test_the_command_counts_every_figure_from_the_bundle_alone(bundle: EvidenceBundle, tmp_path: Path) -> None:
    """The live rows are corrected and deleted first."""
    public_id, saved = str(bundle.promotion.public_id), tmp_path / "evidence.json"
    command("save", public_id, str(saved))
    before = command("verify", public_id)
    Job.objects.filter(job_name="build").update(bucket="failure", conclusion="failure")
    Job.objects.filter(job_name="test-ops").delete()
    Dispatch.objects.all().update(state="given_up", sent_at=None)
    DayFigures.objects.all().delete()
    LevelInterval.objects.filter(ended_at=None).update(started_at=bundle.frozen_at)
    after = command("verify", "--file", str(saved), "--sha256", bundle.sha256)
    assert after == before == command("verify", public_id)
    assert after.splitlines() == [
        "L3.rise.tenure_days: stated 42.0 days, counted 42.0 days: same".replace(
            "42.0 days", compared(bundle.opened())[0].stated["shown"]
        ),
        "L3.rise.data_days: stated 16 days, counted 16 days: same",
        "L3.rise.e2e_seconds_p50: stated 11 min, counted 11 min: same",
        "L3.rise.overrun_rate: stated 0 %, counted 0 %: same",
        "L3.rise.avg_queue_seconds: stated 1 min, counted 1 min: same",
        "L3.rise.timeout_rate: stated 0 %, counted 0 %: same",
        "L3.rise.pass_rate: stated 100 %, counted 100 %: same",
        "L3.rise.answer_rate: stated 100 %, counted 100 %: same",
        "L3.rise.runs: stated 28, counted 28: same",
        f"Every figure follows from the bundle's own rows. SHA-256 {bundle.sha256}",
    ]


def test_a_figure_that_its_rows_do_not_give_is_named(bundle: EvidenceBundle, tmp_path: Path) -> None:
    content = bundle.opened()
    changed = copy.deepcopy(content)
    place = changed["jobs"]["columns"].index("bucket")
    for row in changed["jobs"]["rows"][-10:]:
        row[place] = "failure"
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(changed))
    with pytest.raises(CommandError, match="1 figures are not what the bundle's own rows give"):
        command("verify", "--file", str(file))
    with pytest.raises(CommandError, match="it is another bundle, or was changed"):
        command("verify", "--file", str(file), "--sha256", bundle.sha256)
    assert [one.criterion for one in compared(changed) if not one.is_same] == ["L3.rise.pass_rate"]


def test_its_hash_is_that_of_its_bytes(bundle: EvidenceBundle, client: Client) -> None:
    import hashlib

    answer = client.get(f"/promotions/{bundle.promotion.public_id}/evidence/1.json")
    assert answer.status_code == 200
    assert hashlib.sha256(answer.content).hexdigest() == bundle.sha256 == hash_of(parsed(answer.content))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "cut short"),
        (b"nothing", "no compressed bundle"),
    ],
)
def test_bytes_that_are_no_bundle_are_named(content: bytes, says: str) -> None:
    with pytest.raises(BundleError, match=says):
        unpacked(content)


def test_a_bundle_cut_short_is_named(bundle: EvidenceBundle) -> None:
    whole = bytes(bundle.content)
    for length in (len(whole) // 2, len(whole) - 1):
        with pytest.raises(BundleError, match="cut short"):
            unpacked(whole[:length])


@pytest.mark.parametrize("text", [b"[]", b"{", b'{"format": 2}', b'{"format": 1, "formulas": 99}'])
def test_another_format_is_named(text: bytes) -> None:
    with pytest.raises(BundleError):
        parsed(text)


@pytest.mark.parametrize("part", ["jobs", "policy", "facts", "tenure", "window", "waivers", "frozen_at"])
def test_a_bundle_without_a_part_is_named(bundle: EvidenceBundle, part: str) -> None:
    content = bundle.opened()
    values: list[Any] = [None, [], "x"]
    for value in values:
        broken: dict[str, Any] = content | {part: value}
        if part == "waivers" and not value:
            continue  # nothing is waived either way
        with pytest.raises(BundleError):
            evaluation_of(broken)
    del content[part]
    with pytest.raises(BundleError):
        evaluation_of(content)


def test_postgresql_refuses_to_change_it(bundle: EvidenceBundle) -> None:
    acts = [
        lambda: EvidenceBundle.objects.update(content=packed({"format": 1})),
        lambda: EvidenceBundle.objects.all()._raw_delete("default"),
    ]
    for act in acts:
        with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
            act()
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        with pytest.raises(IntegrityError, match="never changed"):
            cursor.execute("TRUNCATE levels_evidencebundle CASCADE")


def test_an_unknown_promotion_is_named() -> None:
    for name in ("nonsense", "00000000-0000-0000-0000-000000000000"):
        with pytest.raises(CommandError, match=name):
            command("verify", name)
    assert not Promotion.objects.exists()


def test_what_was_shown_by_evidence_counts_in_it_too() -> None:
    made = promotion(proven(level=3))
    content = newest_bundle(made).opened()
    assert evaluation_of(content).verdict.value == "met"
    assert content["replay"]["pull_requests"] == len({head["pr"] for head in content["replay"]["heads"]})
    assert evaluation_of(content | {"evidence": []}).verdict.value == "no result"
    assert evaluation_of(content | {"replay": None}).verdict.value == "no result"
