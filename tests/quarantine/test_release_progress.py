"""How far a release is proven: reckoned by the sweep, told by pages and the API, filtered for whoever decides."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.platforms.models import Repository
from apps.quarantine import services, sweep
from apps.quarantine.enums import State, Verb
from apps.quarantine.models import Progress, Quarantine
from apps.quarantine.policy import HUB
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.pages import Page
from tests.factories.tests import catalogued
from tests.live import ClonedDatabase
from tests.quarantine.test_detection import DAY, on_main, quarantined, sha
from tests.quarantine.test_evidence import GREEN, HOUR, NOW, RED, came
from tests.quarantine.test_services import in_force, moved, proposed

pytestmark = pytest.mark.usefixtures("cloned_database", "storage_folder")
LIST = "/api/v1/quarantines/"


@pytest.fixture
def kestrel(cloned_database: ClonedDatabase, storage_folder: Path) -> Repository:
    return listed({"kestrel/torch": (2, {"oncalls": ["ada", "mona"]})})["kestrel/torch"]


def told(made: Quarantine) -> dict[str, Any]:
    body = Client().get(f"{LIST}{made.public_id}/").json()
    return {name: body[name] for name in body if name.startswith("release_") or name == "last_run_at"}


def stamp(moment: Any) -> str:
    return str(moment.isoformat()).replace("+00:00", "Z")


def test_every_sweep_keeps_what_is_needed_and_done(kestrel: Repository) -> None:
    on_main(*range(1, 9))
    made = quarantined(kestrel)
    assert set(told(made).values()) == {None}
    came(kestrel, RED, head_sha=sha(3), hour=4)
    for number in range(3):
        came(kestrel, GREEN, head_sha=sha(4 + number), hour=24 + 36 * number)
    at = NOW + 5 * DAY
    assert sweep.propose_releases(now=at) == 0
    assert told(made) == {
        "release_passes": 3,
        "release_passes_needed": HUB.leave_passes,
        "release_days": 3.0,
        "release_days_needed": 7.0,
        "release_missing": "17 more executed passes; passes spread over 4.0 more days",
        "release_reckoned_at": stamp(at),
        "last_run_at": stamp(NOW + 96 * HOUR),
    }
    came(kestrel, GREEN, head_sha=sha(7), hour=124)
    made = moved(made, "propose_release", at, reason="fixed", fix_sha=sha(5), fix_place=5)
    assert sweep.propose_releases(now=NOW + 6 * DAY) == 0
    assert Progress.objects.values_list("passes", "reds", "reckoned_at").get() == (3, 0, NOW + 6 * DAY)
    listed_row = Page(Client().get("/quarantines/")).text
    assert "3 of 20 passes, over 2.7 of 7 days" in listed_row
    page = Page(Client().get(f"/quarantines/{made.public_id}/"))
    facts, _, _ = page.text.partition("Proof that it may go")[2].partition("Reckoned")
    assert "3 of 20 needed, no red" in facts
    assert "17 more executed passes" in facts
    services.end(quarantine=made, verb=Verb.EXPIRE, reason="over", actor=TESTS, now=NOW + 7 * DAY)
    assert set(told(made).values()) == {None}
    assert "Proof that it may go" not in Page(Client().get(f"/quarantines/{made.public_id}/")).text


def test_what_was_reckoned_before_it_was_in_force_again_says_nothing(kestrel: Repository) -> None:
    on_main(*range(1, 5))
    made = quarantined(kestrel)
    assert sweep.propose_releases(now=NOW + DAY) == 0
    made = moved(made, "propose_release", NOW + DAY, reason="fixed")
    made = moved(made, "release", NOW + DAY, reason="enough", proof="20 of 20 passes, 0 red")
    made = moved(made, "reopen", NOW + 2 * DAY, reason="flaky again")
    made = moved(made, "put_in_force", NOW + 3 * DAY, is_bound=False)
    assert (made.state, Progress.objects.count(), told(made)["release_passes"]) == (State.IN_FORCE, 1, None)


def test_whoever_decides_finds_what_waits(kestrel: Repository) -> None:
    of = kestrel.platform
    held, asked, waits = (catalogued(f"test_{name}") for name in ("held", "asked", "waits"))
    in_force(of, held)
    moved(in_force(of, asked), "propose_release", reason="fixed")
    proposed(of, waits)
    proposed(None, catalogued("test_unclear"), said="gpu")
    found = {}
    for waiting in ("release", "start", "platform"):
        client = Client()
        client.force_login(user(Role.MAINTAINER))
        rows = client.get(LIST, {"waiting": waiting}).json()["results"]
        text = Page(client.get("/quarantines/", {"waiting": waiting})).text
        shown = [test.name for test in (held, asked, waits) if test.name in text]
        found[waiting] = [row["state"] for row in rows], shown
    assert found == {
        "release": (["release_proposed"], ["test_asked"]),
        "start": (["proposed"], ["test_waits"]),
        "platform": (["unclear"], []),
    }
    assert Client().get(LIST, {"waiting": "godot"}).json()["field"] == "waiting"


@pytest.mark.parametrize(("who", "seen"), [(Role.MAINTAINER, True), (None, False)])
def test_maintainers_see_on_the_list_what_awaits_them(kestrel: Repository, who: Role | None, seen: bool) -> None:
    moved(in_force(kestrel.platform, catalogued("test_asked")), "propose_release", reason="fixed")
    client = Client()
    client.force_login(user(who) if who else member_of(kestrel.platform))
    page = Page(client.get("/quarantines/"))
    assert ("1 waits to be released, or kept: a maintainer decides." in page.text) is seen
    assert ("?waiting=release" in page.links) is seen
    assert "name: a maintainer decides" not in page.text
