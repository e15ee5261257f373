"""A downstream's side of an upload: its meta, its files, and how it posts them."""

import json
import uuid
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.relay.downstream import Downstream

JUNIT = b"""<?xml version="1.0"?>
<testsuites><testsuite name="pytest" tests="3" failures="1">
<testcase classname="TestFooPRIVATEUSE1" name="test_a_npu_float32" file="test_foo.py" time="0.5"/>
<testcase classname="TestFooPRIVATEUSE1" name="test_b_npu_float32" file="test_foo.py" time="0.1">
<failure message="boom">Traceback: AssertionError: boom</failure></testcase>
<testcase classname="TestFooPRIVATEUSE1" name="test_c_npu" file="test_foo.py">
<skipped type="pytest.skip" message="Only runs on cuda"/></testcase>
</testsuite></testsuites>
"""


def junit(*cases: str) -> bytes:
    """A JUnit file of these `<testcase>` elements."""
    return f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>".encode()


def passing(name: str) -> str:
    return f'<testcase classname="TestFoo" name="{name}" file="test_foo.py" time="0.1"/>'


def failing(name: str) -> str:
    return passing(name).removesuffix("/>") + '><failure message="no">no</failure></testcase>'


def ended(name: str, how: str, message: str = "no") -> str:
    """A test that ended as `how` says: passed, failed, skipped."""
    child = {"passed": "", "failed": f'<failure message="{message}">{message}</failure>'}
    child["skipped"] = f'<skipped type="pytest.skip" message="{message}"/>'
    return f"{passing(name).removesuffix('/>')}>{child[how]}</testcase>"


def reported(made: Downstream, *cases: str, **meta: Any) -> Any:
    """The report of a run that ended with these cases, parsed: each call is another run, unless `run_id` says which."""
    from apps.core.clock import now
    from apps.results.models import Report
    from apps.results.parsing import parse

    made.run_id = str(meta.pop("run_id", int(made.run_id) + 1_000))
    name = received(upload(made, junit(*cases), report_key=uuid.uuid4().hex, **meta))
    report = Report.objects.get(public_id=name)
    assert parse(report_pk=report.pk, clock=now) == "ready"
    report.refresh_from_db()
    return report


def meta_of(made: Downstream, **changes: Any) -> dict[str, Any]:
    """What the run of a nightly says about its report; keywords change it, None removes."""
    meta = {"run_id": made.run_id, "run_attempt": 1, "workflow": "CI", "job_name": "build", "check_run_id": "456"}
    return {name: value for name, value in (meta | changes).items() if value is not None}


def upload(
    made: Downstream, *files: bytes | tuple[str, bytes], meta: Any = None, token: Any = None, **changes: Any
) -> Any:
    """Post an upload. `files` are bytes, or pairs of name and bytes; `meta` replaces the whole of it; `token` '' sends
    none. Returns the response."""
    said = meta_of(made, **changes) if meta is None else meta
    parts = [one if isinstance(one, tuple) else ("report.xml", one) for one in files or (JUNIT,)]
    body: dict[str, Any] = {"file": [SimpleUploadedFile(name, content) for name, content in parts]}
    if said != "":
        body["meta"] = said if isinstance(said, str) else json.dumps(said)
    headers = {"Authorization": f"Bearer {made.token() if token is None else token}"} if token != "" else {}
    return made.client.post("/api/v1/reports/", body, headers=headers)


def received(response: Any) -> str:
    """The report's id, of an upload that was taken as new."""
    body = response.json()
    assert (response.status_code, body) == (
        202,
        {"id": body.get("id"), "receipt": f"{settings.BASE_URL}/reports/{body.get('id')}/", "status": "received"},
    )
    return str(body["id"])
