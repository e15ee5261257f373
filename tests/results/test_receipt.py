"""A report's page and receipt: who may see it, what was uploaded, taking it down."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.core.wakeups import drain
from apps.results.models import Removal, Report, Upload, UploadPart
from tests.factories.listing import listed, member_of, user
from tests.factories.pages import Page
from tests.relay.downstream import Downstream, refusal
from tests.relay.test_callback import KESTREL
from tests.results.reporter import JUNIT, received, upload

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("storage_folder")]
SHA = hashlib.sha256(JUNIT).hexdigest()
WHY = "Holds a customer's name."


@pytest.fixture
def make(downstream: Callable[..., Downstream]) -> Callable[[int], Downstream]:
    def made(level: int) -> Downstream:
        found = downstream(KESTREL)
        listed({KESTREL: level})
        return found

    return made


def statuses(client: Client, name: str) -> list[int]:
    return [client.get(path).status_code for path in (f"/reports/{name}/", f"/api/v1/reports/{name}/")]


def test_from_l2_up_a_report_is_public_and_what_was_uploaded_is_not(make: Callable[[int], Downstream]) -> None:
    made = make(2)
    name = received(upload(made, ("<b>.xml", JUNIT), hardware="<script>"))
    assert statuses(Client(), name) == [200, 200]
    page = Page(Client().get(f"/reports/{name}/"))
    assert (page.heading, f"/reports/{name}/raw/{SHA}/" in page.links) == ("Report of build", False)
    assert page.facts["state"]["Shards"] == "1 of 1"
    assert "<script>" not in page.html.partition("<main")[2]
    assert Client().get(f"/reports/{name}/raw/{SHA}/").status_code == 302
    outsider = Client()
    outsider.force_login(user())
    assert outsider.get(f"/reports/{name}/raw/{SHA}/").status_code == 404


def test_below_l2_a_report_is_there_for_members_and_maintainers_alone(make: Callable[[int], Downstream]) -> None:
    made = make(1)
    name = received(upload(made))
    platform = Report.objects.get().platform
    other = listed({KESTREL: 1, "other/torch": 2})["other/torch"].platform
    seen = {}
    for who, person in {
        "outsider": user(),
        "another vendor": member_of(other),
        "operator": user(Role.OPERATOR),
        "member": member_of(platform),
        "maintainer": user(Role.MAINTAINER),
    }.items():
        client = Client()
        client.force_login(person)
        seen[who] = statuses(client, name)
    assert statuses(Client(), name) == [404, 404]
    assert seen == {
        "outsider": [404, 404],
        "another vendor": [404, 404],
        "operator": [404, 404],
        "member": [200, 200],
        "maintainer": [200, 200],
    }


def test_what_came_at_l1_stays_private_and_what_was_public_stays_so(make: Callable[[int], Downstream]) -> None:
    made = make(1)
    private = received(upload(made, report_key="1"))
    listed({KESTREL: 2})
    public = received(upload(made, report_key="2"))
    listed({KESTREL: 1})
    assert (statuses(Client(), private), statuses(Client(), public)) == ([404, 404], [200, 200])


def test_a_member_saves_what_was_uploaded_and_no_browser_ever_shows_it(make: Callable[[int], Downstream]) -> None:
    made = make(2)
    html = b"<html><script>alert(1)</script></html>"
    name = received(upload(made, ("ä.html", html)))
    client = Client()
    client.force_login(member_of(Report.objects.get().platform))
    sha = UploadPart.objects.get().sha256
    assert f"/reports/{name}/raw/{sha}/" in Page(client.get(f"/reports/{name}/")).links
    answer = client.get(f"/reports/{name}/raw/{sha}/")
    assert b"".join(answer.streaming_content) == html  # type: ignore[attr-defined]
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Disposition"].startswith("attachment;")
    assert "X" not in answer.headers
    assert client.get(f"/reports/{name}/raw/{'0' * 64}/").status_code == 404
    assert client.get(f"/reports/{name}/raw/%00/").status_code == 404


def take_down(name: str, reason: str = WHY, role: Role = Role.MAINTAINER) -> Any:
    client = Client()
    client.force_login(user(role))
    assert "removed for good" in Page(client.get(f"/reports/{name}/remove/")).text
    return client.post(f"/reports/{name}/remove/", {"reason": reason})


@pytest.mark.parametrize("role", [Role.MAINTAINER, Role.OPERATOR])
def test_a_report_that_is_taken_down_leaves_a_tombstone(
    make: Callable[[int], Downstream], storage_folder: Path, role: Role
) -> None:
    made = make(2)
    name = received(upload(made))
    assert take_down(name, role=role).status_code == 302
    drain()
    assert [path for path in storage_folder.rglob("*") if path.is_file()] == []
    assert (Upload.objects.count(), UploadPart.objects.count()) == (0, 0)
    removal = Removal.objects.get()
    assert (removal.reason, removal.digests, removal.actor_kind) == (WHY, [SHA], "user")
    event = Event.objects.get(action="report.removed")
    assert (event.seq, event.subject_id, event.is_decision) == (removal.event_seq, name, True)
    body = Client().get(f"/api/v1/reports/{name}/").json()
    assert (body["state"], body["reason"], body["counts"], body["files"]) == ("removed", WHY, None, [])
    page = Page(Client().get(f"/reports/{name}/"))
    assert "This report was taken down" in page.text
    assert page.facts["state"]["Taken down"].endswith(f"decision #{event.seq}")


def test_neither_the_report_nor_its_bytes_are_taken_again(make: Callable[[int], Downstream]) -> None:
    made = make(2)
    name = received(upload(made))
    take_down(name)
    assert refusal(upload(made)) == (409, "report_removed", "report_key")
    again = upload(made, report_key="another")
    assert refusal(again) == (409, "report_removed", "file")
    assert WHY in again.json()["detail"]
    assert take_down_again(name) == "It was taken down already."


def take_down_again(name: str) -> str:
    client = Client()
    client.force_login(user(Role.MAINTAINER))
    html = client.post(f"/reports/{name}/remove/", {"reason": "twice"}).content.decode()
    return "It was taken down already." if "It was taken down already." in html else html


def test_bytes_that_another_report_has_too_stay(make: Callable[[int], Downstream], storage_folder: Path) -> None:
    made = make(2)
    name = received(upload(made, report_key="1"))
    received(upload(made, report_key="2"))
    take_down(name)
    drain()
    assert [path.name for path in storage_folder.rglob("*") if path.is_file()] == [SHA]


def test_a_take_down_needs_a_reason_and_a_role(make: Callable[[int], Downstream]) -> None:
    name = received(upload(make(2)))
    assert take_down(name, reason=" ").status_code == 200
    client = Client()
    client.force_login(member_of(Report.objects.get().platform))
    assert client.post(f"/reports/{name}/remove/", {"reason": WHY}).status_code == 403
    assert Report.objects.get().state == "received"


def test_the_page_asks_again_and_is_told_when_nothing_changed(make: Callable[[int], Downstream]) -> None:
    name = received(upload(make(2)))
    headers = {"HX-Request": "true", "HX-Target": "receipt"}
    first = Client().get(f"/reports/{name}/", headers=headers)
    tag = {"If-None-Match": first.headers["ETag"]}
    assert Client().get(f"/reports/{name}/", headers=headers | tag).status_code == 304
    Report.objects.update(progress=40)
    assert Client().get(f"/reports/{name}/", headers=headers | tag).status_code == 200


@pytest.mark.parametrize("shards", [1, 3])
def test_a_receipt_costs_the_same_however_much_there_is(
    make: Callable[[int], Downstream], shards: int, django_assert_num_queries: Any
) -> None:
    made = make(2)
    names = {
        received(upload(made, b"<a/>", b"<b/>", report_key="k", shard=shard, shards=3))
        for shard in range(1, shards + 1)
    }
    name = names.pop()
    with django_assert_num_queries(3):
        assert Client().get(f"/api/v1/reports/{name}/").status_code == 200
    with django_assert_num_queries(5):
        assert Client().get(f"/reports/{name}/").status_code == 200
