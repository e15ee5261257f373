"""The rules of check runs, as tables and pure functions."""

import re

import pytest

from accelhub.env import BASE_DIR
from apps.checks.policy import MOST_SUMMARY, MOST_TITLE, Leg, cause_of, wanted_of
from apps.relay.checknames import CONCLUSIONS, device_of
from apps.relay.enums import Bucket
from apps.relay.policy import WORST


def leg(bucket: Bucket, **values: object) -> Leg:
    given: dict[str, object] = {
        "job_pk": 1,
        "bucket": bucket,
        "conclusion": "skipped",
        "run_id": "7",
        "run_attempt": 1,
        "pr_number": 3,
        "failed": None,
        "total": None,
        "counts": "not reported",
        "remarks": (),
    }
    return Leg(**(given | values))  # type: ignore[arg-type]


def test_every_bucket_of_an_ended_job_has_its_conclusion() -> None:
    assert set(Bucket) - set(CONCLUSIONS) == {Bucket.IN_PROGRESS}


def test_the_protocols_page_prints_the_table() -> None:
    section = (BASE_DIR / "docs" / "protocol.md").read_text().partition("## Check runs")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([a-z ]+) \| `([a-z_]+)` \|$", section, re.MULTILINE)
    assert rows == [(bucket.label, conclusion.value) for bucket, conclusion in CONCLUSIONS.items()]


@pytest.mark.parametrize(
    ("of", "says"),
    [
        (leg(Bucket.SUCCESS), "Passed"),
        (leg(Bucket.FAILURE), "Failed"),
        (leg(Bucket.FAILURE, failed=0, total=9), "Failed"),
        (leg(Bucket.FAILURE, failed=1_200, total=9_000), "1,200 of 9,000 tests failed"),
        (leg(Bucket.CONTRADICTED, failed=2), "It says success, and reports 2 failed tests"),
        (leg(Bucket.CONTRADICTED), "It says success, and another record says otherwise"),
        (leg(Bucket.TIMED_OUT), "Timed out"),
        (leg(Bucket.CANCELLED), "Cancelled"),
        (leg(Bucket.IN_PROGRESS), "Running"),
        (leg(Bucket.NEUTRAL), "Ended as skipped"),
    ],
)
def test_the_cause_comes_first(of: Leg, says: str) -> None:
    assert cause_of(of) == says
    wanted = wanted_of([of], order=WORST, full_name="a/b", level=4, name="crcr/a/b/CI")
    assert (wanted.title, wanted.summary.partition("\n")[0]) == (says, f"**{says}.**")


def test_remarks_are_said() -> None:
    made = leg(Bucket.TIMED_OUT, remarks=("the start was never reported",))
    wanted = wanted_of([made], order=WORST, full_name="a/b", level=3, name="n")
    assert "| Remarks | the start was never reported |" in wanted.summary


def test_githubs_limits_on_text_hold() -> None:
    made = leg(Bucket.NEUTRAL, conclusion="x" * 70_000, remarks=("y" * 70_000,))
    wanted = wanted_of([made], order=WORST, full_name="a/b", level=4, name="n")
    assert (len(wanted.title), len(wanted.summary)) == (MOST_TITLE, MOST_SUMMARY)


@pytest.mark.parametrize(
    ("label", "device"),
    [
        ("ciflow/crcr/npu", "npu"),
        ("CIFlow/CRCR/NPU", "npu"),
        ("ciflow/crcr/a b/c", "a b/c"),
        ("ciflow/crcr/", None),
        ("ciflow/trunk", None),
        ("npu", None),
        ("", None),
    ],
)
def test_which_device_a_label_asks_for(label: str, device: str | None) -> None:
    assert device_of(label) == device
