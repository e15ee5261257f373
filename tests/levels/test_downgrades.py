"""A temporary downgrade: at once, decided by a deadline, undone in one step, and no other way leads to L3 or L4."""

import ast
import datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from apps.accounts.models import Organisation, User
from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.workdays import deadline
from apps.levels.downgrades import confirm_downgrade, downgrade, follow_downgrades, undo_downgrade
from apps.levels.models import Downgrade, WayBack
from apps.platforms.models import LevelInterval
from apps.platforms.policy import LEVELS
from apps.platforms.restoring import restore_level
from apps.platforms.services import change_level
from tests.factories.listing import TESTS, listed, user
from tests.factories.pages import Page
from tests.levels.falling import DAY, NAME, Scene, scene
from tests.levels.test_notices import told

pytestmark = pytest.mark.django_db
APPS = Path(__file__).parents[2] / "apps"


@pytest.fixture
def zephyr() -> Scene:
    return scene(4)


def taken_down(found: Scene, level: int = 2, **values: Any) -> Downgrade:
    given: dict[str, Any] = {"reason": "it blocks what it should not", "by": found.ada, "now": now()}
    return downgrade(repository=found.fresh(), level=level, **(given | values))


def undo(made: Downgrade, by: User, **values: Any) -> Event:
    return undo_downgrade(downgrade=made, reason="repaired", by=by, now=now(), **values)


def refusal(verb: Any, *args: Any, **values: Any) -> str:
    with pytest.raises(Problem) as refused:
        verb(*args, **values)
    return refused.value.code


def test_it_takes_effect_at_once_and_says_until_when(zephyr: Scene) -> None:
    made = taken_down(zephyr)
    assert (zephyr.fresh().level, made.level_from, made.level_to, made.state) == (2, 4, 2, "open")
    assert made.deadline_at == deadline(made.at, 2, "")
    event = Event.objects.get(action="downgrade.made")
    assert body_of(event)["summary"] == "zephyr/torch taken down from L4 to L2 for a while"
    assert body_of(event)["evidence"] == {"decision": made.event_seq}
    assert told("downgrade.made") == ["ada", "zoe"]


def test_one_step_leads_back_to_exactly_the_level_before(zephyr: Scene) -> None:
    made = taken_down(zephyr)
    undo(made, user(Role.MAINTAINER, username="bert"))
    repository = zephyr.fresh()
    assert (repository.level, Downgrade.objects.get().state, Downgrade.objects.get().ended_by) == (4, "undone", "bert")
    newest = Event.objects.filter(action="repository.level_changed").latest("seq")
    assert body_of(newest)["evidence"] == {"undoes": made.event_seq, "downgrade": str(made.public_id)}
    assert LevelInterval.objects.get(repository=repository, ended_at=None).level == 4
    assert told("downgrade.undone") == ["ada", "zoe"]


def test_it_is_undone_once(zephyr: Scene) -> None:
    made = taken_down(zephyr)
    undo(made, zephyr.ada)
    change_level(repository=zephyr.fresh(), level=2, reason="down for good", actor=TESTS, now=now())
    assert refusal(undo, made, zephyr.ada) == "downgrade_stale"
    assert zephyr.fresh().level == 2


def test_a_formal_one_leads_back_by_its_way_back_only(zephyr: Scene) -> None:
    made = taken_down(zephyr)
    confirm_downgrade(downgrade=made, reason="it stays so", by=zephyr.ada, now=now())
    assert (Downgrade.objects.get().state, zephyr.fresh().level) == ("confirmed", 2)
    assert refusal(undo, made, zephyr.ada) == "downgrade_stale"
    assert list(WayBack.objects.values_list("level", flat=True)) == [3]
    assert told("downgrade.confirmed") == ["ada", "zoe"]


def test_a_level_changed_in_another_way_overtakes_it(zephyr: Scene) -> None:
    made = taken_down(zephyr)
    listed({NAME: 3})
    for verb in (undo_downgrade, confirm_downgrade):
        assert refusal(verb, downgrade=made, reason="x", by=zephyr.ada, now=now()) == "level_stale"
    assert (follow_downgrades(now=now()), Downgrade.objects.get().state, zephyr.fresh().level) == (1, "superseded", 3)
    assert Event.objects.filter(action="downgrade.superseded").count() == 1


def test_back_and_down_again_in_another_way_is_not_undone_by_it(zephyr: Scene) -> None:
    made = taken_down(zephyr)
    listed({NAME: 4})
    listed({NAME: 2})
    assert refusal(undo, made, zephyr.ada) == "level_stale"
    assert zephyr.fresh().level == 2


def test_what_is_overdue_is_told_to_maintainers_once_and_can_still_be_undone(zephyr: Scene, client: Client) -> None:
    made = taken_down(zephyr, now=now() - 20 * DAY)
    assert follow_downgrades(now=made.deadline_at - datetime.timedelta(seconds=1)) == 0
    assert [follow_downgrades(now=now()), follow_downgrades(now=now())] == [1, 0]
    assert told("downgrade.overdue") == ["ada"]
    assert "Overdue" in Page(client.get(f"/downgrades/{made.public_id}/")).text
    assert client.get(f"/api/v1/downgrades/{made.public_id}/").json()["is_overdue"] is True
    undo(made, zephyr.ada)
    assert zephyr.fresh().level == 4


def test_nobody_takes_down_or_undoes_their_own(zephyr: Scene) -> None:
    works = Organisation.objects.create(slug="zephyr-works", name="Zephyr Works", created_at=now())
    User.objects.filter(pk=zephyr.zoe.pk).update(organisation=works)
    colleague = user(Role.MAINTAINER, organisation=works)
    assert refusal(taken_down, zephyr, by=colleague) == "recusal"
    made = taken_down(zephyr)
    for verb in (undo_downgrade, confirm_downgrade):
        assert refusal(verb, downgrade=made, reason="ours", by=colleague, now=now()) == "recusal"
    assert (zephyr.fresh().level, Downgrade.objects.get().state) == (2, "open")


def test_what_cannot_be_taken_down_for_a_while_is_refused(zephyr: Scene) -> None:
    assert refusal(taken_down, zephyr, level=4) == "malformed"
    assert refusal(taken_down, zephyr, reason=" ") == "malformed"
    assert refusal(taken_down, zephyr, expected_level=3) == "level_stale"
    assert refusal(taken_down, zephyr, level=3) == "level_transition"  # no device is known
    assert (zephyr.fresh().level, Downgrade.objects.count()) == (4, 0)
    assert taken_down(zephyr, level=3, device="npu").level_to == 3
    assert refusal(taken_down, zephyr) == "already_downgraded"
    assert zephyr.fresh().level == 3
    below = listed({NAME: 3, "lark/torch": 2})["lark/torch"]
    refused = refusal(downgrade, repository=below, level=1, reason="x", by=zephyr.ada, now=now())
    assert refused == "level_transition"


def test_postgresql_keeps_it_above_l2_and_going_down(zephyr: Scene) -> None:
    given = {"reason": "x", "by_label": "ada", "at": now(), "deadline_at": now() + DAY, "event_seq": 1}
    for level_from, level_to in ((2, 1), (4, 4)):
        with pytest.raises(IntegrityError, match="levels_downgrade_goes_down"), transaction.atomic():
            Downgrade.objects.create(repository=zephyr.repository, level_from=level_from, level_to=level_to, **given)


@pytest.mark.parametrize("target", [3, 4])
def test_no_other_way_leads_to_l3_or_l4(zephyr: Scene, client: Client, target: int) -> None:
    """Service, page, API and admin, beside an open downgrade and after one that is over. No command changes a level
    but the import of upstream's file."""
    made = taken_down(zephyr)
    admin = user(Role.ADMIN, username="root")
    client.force_login(admin)
    repository = zephyr.fresh()

    def tried() -> None:
        code = LEVELS[target].code
        assert (
            refusal(
                change_level,
                repository=zephyr.fresh(),
                level=target,
                reason="up",
                actor=TESTS,
                now=now(),
                device="npu",
            )
            == "level_transition"
        )
        lowered = LevelInterval.objects.get(repository=repository, ended_at=None)
        for seq in (0, lowered.event_seq + 1):
            refused = refusal(
                restore_level, repository=repository, lowered_seq=seq, reason="up", evidence={}, actor=TESTS, now=now()
            )
            assert refused == "level_stale"
        page = {"level": target, "expected_level": 2, "reason": "up", "device": "npu"}
        assert client.post(f"/repositories/{NAME}/level/", page).status_code in (200, 409)
        body = {"level": code, "reason": "up", "device": "npu"}
        for verb in ("level", "downgrade"):
            answer = client.post(f"/api/v1/repositories/{NAME}/{verb}/", body, content_type="application/json")
            assert (answer.status_code, answer.json()["code"]) == (409, "level_transition")
        assert client.post(f"/repositories/{NAME}/downgrade/", page).status_code == 404
        assert client.post(f"/admin/platforms/repository/{repository.pk}/change/", {"level": target}).status_code == 403
        assert zephyr.fresh().level == 2

    commands = [path.read_text(encoding="utf-8") for path in APPS.rglob("management/commands/*.py")]
    assert [text for text in commands if "change_level" in text or "downgrade" in text] == []
    tried()
    confirm_downgrade(downgrade=made, reason="for good", by=zephyr.ada, now=now())
    tried()
    answer = client.post(
        f"/api/v1/downgrades/{made.public_id}/undo/", {"reason": "up"}, content_type="application/json"
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "downgrade_stale")


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("restore_level", {"platforms/restoring.py", "levels/downgrades.py"}),
        ("put_back_level", {"platforms/services.py", "platforms/restoring.py"}),
    ],
)
def test_the_narrow_way_back_has_one_caller(name: str, files: set[str]) -> None:
    found = set()
    for path in APPS.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {
            getattr(node, "id", None) or getattr(node, "name", None) or getattr(node, "attr", None)
            for node in ast.walk(tree)
        }
        if name in names:
            found.add(str(path.relative_to(APPS)))
    assert found == files


def test_maintainers_take_down_and_undo_on_the_pages(zephyr: Scene, client: Client) -> None:
    form = f"/repositories/{NAME}/downgrade/"
    client.force_login(zephyr.zoe)
    assert client.post(form, {"level": 2, "reason": "x", "expected_level": 4}).status_code == 403
    client.force_login(zephyr.ada)
    assert form in client.get("/platforms/zephyr-torch/").content.decode()
    assert 'name="expected_level" value="4"' in client.get(form).content.decode()
    assert client.post(form, {"level": 2, "reason": "x", "expected_level": 3}).status_code == 409
    hostile = "<script>alert(1)</script>"
    assert client.post(form, {"level": 2, "reason": hostile, "expected_level": 4}).status_code == 302
    made = Downgrade.objects.get()
    page = f"/downgrades/{made.public_id}/"
    for address in (page, "/downgrades/", "/platforms/zephyr-torch/"):
        shown = client.get(address)
        assert (hostile in shown.content.decode(), hostile in Page(shown).text) == (False, True)
    client.force_login(zephyr.zoe)
    assert client.post(page, {"act": "undo", "reason": "mine"}).status_code == 403
    client.force_login(zephyr.ada)
    assert client.post(page, {"act": "x"}).status_code == 404
    assert client.post(page, {"act": "undo", "reason": ""}).status_code == 200
    assert zephyr.fresh().level == 2
    assert client.post(page, {"act": "undo", "reason": "repaired"}).status_code == 302
    assert zephyr.fresh().level == 4
    assert client.post(page, {"act": "confirm", "reason": "late"}).status_code == 409


def test_programs_take_down_read_and_undo(zephyr: Scene, client: Client) -> None:
    client.force_login(zephyr.ada)

    def post(path: str, **body: Any) -> Any:
        return client.post(f"/api/v1/{path}", body, content_type="application/json")

    answer = post(f"repositories/{NAME}/downgrade/", level="L2", reason="=1+1", expected_level="L4")
    made = answer.json()
    assert (answer.status_code, made["level_from"], made["level_to"], made["state"]) == (200, "L4", "L2", "open")
    assert client.get("/api/v1/downgrades/?state=open&platform=zephyr-torch").json()["results"] == [made]
    assert client.get("/api/v1/downgrades/?state=x").status_code == 400
    assert "'=1+1" in client.get("/api/v1/downgrades/?format=csv").content.decode()
    assert post(f"downgrades/{made['id']}/nothing/", reason="x").status_code == 404
    answer = post(f"downgrades/{made['id']}/undo/", reason="repaired")
    assert (answer.status_code, answer.json()["state"], answer.json()["ended_why"]) == (200, "undone", "repaired")
    assert zephyr.fresh().level == 4


@pytest.mark.usefixtures("upstream")
def test_where_a_file_decides_nothing_is_taken_down_at_once(zephyr: Scene) -> None:
    assert refusal(taken_down, zephyr) == "allowlist_elsewhere"
    assert (zephyr.fresh().level, Downgrade.objects.count()) == (4, 0)


@pytest.mark.parametrize("rows", [1, 3])
def test_the_list_costs_the_same_for_more_rows(client: Client, rows: int, django_assert_num_queries: Any) -> None:
    names = [f"v{number}/torch" for number in range(rows)]
    ada = user(Role.MAINTAINER)
    for repository in listed(dict.fromkeys(names, 4)).values():
        downgrade(repository=repository, level=2, reason="x", by=ada, now=now())
    with django_assert_num_queries(2):
        client.get("/downgrades/")
    with django_assert_num_queries(1):
        client.get("/api/v1/downgrades/")
