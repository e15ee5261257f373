"""The demo's platforms are openly fictional, and their allowlist is in upstream's format."""

from collections import Counter

import yaml

from apps.simulator.characters import CHARACTERS, allowlist_text, by_repository
from apps.simulator.directory import FIRST_OWNER_ID, FIRST_REPOSITORY_ID


def test_every_name_says_that_it_is_a_demo() -> None:
    for character in CHARACTERS:
        assert character.owner.endswith("-demo")
        assert character.about.startswith("Fictional.")
        assert all(login.startswith("demo-") for login in character.oncalls)


def test_ids_are_distinct_and_no_real_ones() -> None:
    repositories = [c.repository_id for c in CHARACTERS]
    owners = [c.owner_id for c in CHARACTERS]
    assert len({*repositories, *owners}) == 2 * len(CHARACTERS)
    assert min(repositories) > FIRST_REPOSITORY_ID
    assert min(owners) > FIRST_OWNER_ID


def test_every_level_and_every_behaviour_has_its_platform() -> None:
    assert Counter(c.level for c in CHARACTERS) == {"L4": 1, "L3": 2, "L2": 10, "L1": 1}
    assert len({c.name for c in CHARACTERS}) == len({c.full_name for c in CHARACTERS}) == len(CHARACTERS)
    behaviours = ("death_rate", "lie_rate", "silent_days", "green_rerun_rate", "sweep", "bad_days")
    for behaviour in (*behaviours, "replay_rate", "renamed_to"):
        assert sum(bool(getattr(c, behaviour)) for c in CHARACTERS) == 1, behaviour
    assert [c.name for c in CHARACTERS if c.ci == "buildkite"] == ["Onyx Dataflow"]
    assert [c.name for c in CHARACTERS if c.is_nightly_only] == ["Vesper Edge Module"]
    assert [c.name for c in CHARACTERS if len({j.name for j in c.jobs}) < len(c.jobs)] == ["Lattice Systolic"]


def test_found_by_repository_without_case() -> None:
    assert by_repository("KESTREL-demo/Torch-Kestrel") is CHARACTERS[0]
    assert by_repository("kestrel-demo/other") is None


def test_allowlist_text() -> None:
    text = allowlist_text()
    assert "fictional" in text.splitlines()[0]
    assert yaml.safe_load(text) == {
        "L1": [{"pallas-demo/torch-pallas": "demo-pallas-lead"}],
        "L2": [
            {"fen-demo/torch-fen": "demo-fen-oncall"},
            {"quarry-demo/torch-quarry": "demo-quarry-oncall"},
            {"lumen-demo/torch-lumen": "demo-lumen-oncall"},
            {"tarn-demo/torch-tarn": "demo-tarn-oncall"},
            {"cascade-demo/torch-cascade": "demo-cascade-lead"},
            {"onyx-demo/torch-onyx": "demo-onyx-oncall"},
            {"lattice-demo/torch-lattice": "demo-lattice-oncall"},
            {"sable-demo/torch-sable": "demo-sable-oncall"},
            {"rook-demo/torch-rook": "demo-rook-oncall"},
            {"vesper-demo/torch-vesper": {"oncalls": "demo-vesper-oncall", "events": ["nightly"]}},
        ],
        "L3": {
            "kestrel": {"kestrel-demo/torch-kestrel": "demo-kestrel-lead, demo-kestrel-oncall"},
            "wren": {"wren-demo/torch-wren": "demo-wren-oncall"},
        },
        "L4": [{"meridian-demo/torch-meridian": "demo-meridian-lead, demo-meridian-oncall"}],
    }
