"""`manage.py allowlist import`: the hub's listing becomes what the file says, or nothing changes at all."""

import hashlib
import io
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Model

from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.models import Wakeup
from apps.platforms.models import LevelInterval, Platform, Repository
from tests.factories.listing import listed

pytestmark = pytest.mark.django_db

EVERY_FORM = """\
L1:
  - acme/torch-one
  - acme/torch-two: alice, bob
L2:
  - acme/torch-three: [carol]
  - acme/torch-four:
      oncalls: dave
      events: [nightly]
L3:
  npu:
    Acme/Torch-Five: alice
    acme/torch-six:
  xpu:
    acme/torch-seven:
      events: [push]
L4:
  - acme/torch-eight
"""
BOTH = ["nightly", "pull_request"]


def run(tmp_path: Path, text: str | bytes, *options: str) -> list[str]:
    """The lines that an import of this file prints."""
    file = tmp_path / "allowlist.yml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return run_on(str(file), *options)


def run_on(name: str, *options: str) -> list[str]:
    out = io.StringIO()
    call_command("allowlist", "import", name, *options, stdout=out)
    return out.getvalue().splitlines()


def everything() -> dict[str, list[dict[str, Any]]]:
    models: list[type[Model]] = [Platform, Repository, LevelInterval, Event, Wakeup]
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in models}


def standings() -> dict[str, tuple[int, str, list[str], list[str]]]:
    return {
        repository.full_name: (repository.level, repository.device, repository.oncalls, repository.events)
        for repository in Repository.objects.all()
    }


def test_every_form_of_an_entry_becomes_a_row(tmp_path: Path) -> None:
    assert run(tmp_path, EVERY_FORM) == [
        "acme/torch-one listed at L1 (#1)",
        "acme/torch-two listed at L1 (#2)",
        "acme/torch-three listed at L2 (#3)",
        "acme/torch-four listed at L2 (#4)",
        "Acme/Torch-Five listed at L3 (#5)",
        "acme/torch-six listed at L3 (#6)",
        "acme/torch-seven listed at L3 (#7)",
        "acme/torch-eight listed at L4 (#8)",
        "8 entries read, 8 changed",
    ]
    assert standings() == {
        "acme/torch-one": (1, "", [], BOTH),
        "acme/torch-two": (1, "", ["alice", "bob"], BOTH),
        "acme/torch-three": (2, "", ["carol"], BOTH),
        "acme/torch-four": (2, "", ["dave"], ["nightly"]),
        "Acme/Torch-Five": (3, "npu", ["alice"], BOTH),
        "acme/torch-six": (3, "npu", [], BOTH),
        "acme/torch-seven": (3, "xpu", [], ["pull_request"]),
        "acme/torch-eight": (4, "", [], BOTH),
    }


def test_each_new_repository_gets_a_platform_of_its_own(tmp_path: Path) -> None:
    # Three names, one slug.
    run(tmp_path, "L1:\n  - acme-x/torch\n  - acme/x-torch\n  - acme/x.torch\n  - acme/other\n")
    platforms = Platform.objects.order_by("pk").values_list("slug", "name", "kind", "repositories__full_name")
    assert list(platforms) == [
        ("acme-x-torch", "torch", "out_of_tree", "acme-x/torch"),
        ("acme-x-torch-2", "x-torch", "out_of_tree", "acme/x-torch"),
        ("acme-x-torch-3", "x.torch", "out_of_tree", "acme/x.torch"),
        ("acme-other", "other", "out_of_tree", "acme/other"),
    ]


def test_long_names_that_begin_alike_get_a_platform_each(tmp_path: Path) -> None:
    names = [f"acme/{'x' * 99}{letter}" for letter in "abc"]
    run(tmp_path, "L1:\n" + "".join(f"  - {name}\n" for name in names))
    slugs = list(Platform.objects.values_list("slug", flat=True))
    assert len(set(slugs)) == 3
    assert max(map(len, slugs)) <= 80


def test_each_change_is_an_external_decision_without_evidence(tmp_path: Path) -> None:
    text = "L3:\n  npu:\n    acme/torch: alice\n"
    run(tmp_path, text)
    repository = Repository.objects.get()
    body = body_of(Event.objects.get())
    assert body.pop("at") is not None
    assert body == {
        "format": 1,
        "seq": 1,
        "action": "repository.listed",
        "actor": {
            "kind": "command",
            "id": "allowlist import",
            "label": "operator, by manage.py allowlist import",
        },
        "subject": {"kind": "repository", "id": str(repository.public_id), "label": "acme/torch"},
        "summary": "acme/torch listed at L3",
        "before": {"level": "L0", "device": "", "oncalls": [], "events": []},
        "after": {"level": "L3", "device": "npu", "oncalls": ["alice"], "events": BOTH},
        "reason": "external change: allowlist allowlist.yml",
        "evidence": {
            "bundle": "none",
            "source": "allowlist.yml",
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            "line": 3,
        },
        "is_decision": True,
    }


def test_every_listed_repository_that_is_not_pinned_is_to_be_asked_about(tmp_path: Path) -> None:
    run(tmp_path, "L1:\n  - acme/one\nL4:\n  - acme/two\n")
    assert set(Wakeup.objects.filter(topic="repository_unpinned").values_list("topic", "key")) == {
        ("repository_unpinned", str(repository.pk)) for repository in Repository.objects.all()
    }


def test_the_same_file_again_changes_nothing_and_writes_no_event(tmp_path: Path) -> None:
    run(tmp_path, EVERY_FORM)
    before = everything()
    assert run(tmp_path, EVERY_FORM) == ["8 entries read, 0 changed"]
    assert everything() == before


def test_what_the_file_says_otherwise_changes_and_what_it_leaves_out_is_unlisted(tmp_path: Path) -> None:
    run(tmp_path, EVERY_FORM)
    lines = run(
        tmp_path,
        "L1:\n  - acme/torch-three: [carol]\nL3:\n  npu:\n    acme/torch-one:\n"
        "    Acme/Torch-Five: bob\n    acme/torch-six:\n      events: [nightly]\n  tpu:\n    acme/torch-seven:\n"
        "L4:\n  - acme/torch-two: alice, bob\n",
    )
    assert lines == [
        "acme/torch-three lowered from L2 to L1 (#9)",
        "acme/torch-one raised from L1 to L3 (#10)",
        "Acme/Torch-Five: oncalls changed (#11)",
        "acme/torch-six: events changed (#12)",
        "acme/torch-seven: device and events changed (#13)",
        "acme/torch-two raised from L1 to L4 (#14)",
        "acme/torch-four taken off the allowlist, from L2 (#15)",
        "acme/torch-eight taken off the allowlist, from L4 (#16)",
        "6 entries read, 8 changed",
    ]
    assert standings() == {
        "acme/torch-one": (3, "npu", [], BOTH),
        "acme/torch-two": (4, "", ["alice", "bob"], BOTH),
        "acme/torch-three": (1, "", ["carol"], BOTH),
        "acme/torch-four": (0, "", ["dave"], ["nightly"]),
        "Acme/Torch-Five": (3, "npu", ["bob"], BOTH),
        "acme/torch-six": (3, "npu", [], ["nightly"]),
        "acme/torch-seven": (3, "tpu", [], BOTH),
        "acme/torch-eight": (0, "", [], BOTH),
    }
    actions = {"repository.level_changed": [9, 10, 14, 15, 16], "repository.details_changed": [11, 12, 13]}
    for action, seqs in actions.items():
        assert list(Event.objects.filter(action=action).order_by("seq").values_list("seq", flat=True)) == seqs


def test_a_repository_is_found_again_in_any_case_of_letters(tmp_path: Path) -> None:
    known = listed({"Acme/Torch": 1})["Acme/Torch"]
    assert run(tmp_path, "L2:\n  - acme/TORCH\n") == [
        "Acme/Torch raised from L1 to L2 (#2)",
        "1 entries read, 1 changed",
    ]
    assert list(Repository.objects.values_list("pk", "full_name", "level")) == [(known.pk, "Acme/Torch", 2)]


def test_a_device_stays_known_where_the_file_does_not_speak_of_it(tmp_path: Path) -> None:
    listed({"acme/torch": (3, {"device": "npu"})})
    run(tmp_path, "L2:\n  - acme/torch\n")
    assert standings() == {"acme/torch": (2, "npu", [], BOTH)}


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("", "line 1, column 1: the file is empty — write at least one level key, such as `L1:`"),
        ("L1:\n  - acme/new\n  - acme\n", "line 3, column 5: "),
        ("L1:\n  - acme/new\nL7:\n", "line 3, column 1: 'L7' is not a level — write L1, L2, L3 or L4"),
        ("L1:\n  - acme/torch\nL2:\n  - ACME/torch\n", "line 4, column 5: "),
        ("L1:\n\t- acme/new\n", "line 2, column 1: a tab stands where YAML takes only spaces — write spaces"),
    ],
)
def test_a_bad_file_is_refused_whole_with_its_place(tmp_path: Path, text: str, finding: str) -> None:
    listed({"acme/torch": 2, "acme/other": 4})
    before = everything()
    with pytest.raises(CommandError) as caught:
        run(tmp_path, text)
    first, second = str(caught.value).splitlines()
    assert first == f"{tmp_path}/allowlist.yml is refused, nothing changed."
    assert second.startswith(finding)
    assert everything() == before


def test_all_problems_of_a_file_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as caught:
        run(tmp_path, "L1:\n  - one\n  - two\nL9:\n")
    places = [line.split(":")[0] for line in str(caught.value).splitlines()[1:]]
    assert places == ["line 2, column 5", "line 3, column 5", "line 4, column 1"]


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as caught:
        run(tmp_path, b"L1:\n  - acme/torch: \xe9va\n")
    assert str(caught.value) == f"{tmp_path}/allowlist.yml: byte 20 is not UTF-8. Save the file as UTF-8."


@pytest.mark.parametrize(("name", "words"), [("missing.yml", "No such file or directory"), (".", "Is a directory")])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(CommandError) as caught:
        run_on(f"{tmp_path}/{name}")
    assert str(caught.value) == f"{tmp_path}/{name}: {words}."


def test_a_dry_run_shows_the_changes_and_makes_none(tmp_path: Path) -> None:
    listed({"acme/torch": 1, "acme/other": 4})
    before = everything()
    assert run(tmp_path, "L2:\n  - acme/torch\n  - acme/new\n", "--dry-run") == [
        "acme/torch raised from L1 to L2",
        "acme/new listed at L2",
        "acme/other taken off the allowlist, from L4",
        "2 entries read, 3 would change",
    ]
    assert everything() == before


def test_the_file_may_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfL1:\n  - acme/torch\n")))
    assert run_on("-") == ["acme/torch listed at L1 (#1)", "1 entries read, 1 changed"]
    assert body_of(Event.objects.get())["reason"] == "external change: allowlist standard input"


def test_the_demos_allowlist_is_one_too(tmp_path: Path) -> None:
    from apps.simulator.characters import CHARACTERS, allowlist_text

    run(tmp_path, allowlist_text())
    assert {name: level for name, (level, *_) in standings().items()} == {
        character.full_name: int(character.level[1]) for character in CHARACTERS
    }
