"""The fictional platforms of the demo: who they are, how fast their CI is, and how often it passes.

None of them exists. Every name carries `demo`, so that a page with them on it is never taken for news.
"""

from dataclasses import dataclass

import yaml


@dataclass(frozen=True)
class JobShape:
    """One job of a character's workflow. `seconds`: shortest and longest run; `tests`: how many it counts (0: none)."""

    name: str
    seconds: tuple[float, float]
    tests: int = 0


@dataclass(frozen=True)
class Character:
    """A fictional platform and its downstream repository.

    `kind`: what the thing is, in words. `device`: the word in `ciflow/crcr/<device>` labels. Rates are shares of
    one: `pass_rate` of jobs that succeed, `rerun_rate` of the failed ones that are run again, `skip_share` of tests
    that are skipped. `queue_seconds`: shortest and longest wait for a machine.
    """

    full_name: str
    name: str
    kind: str
    device: str
    about: str
    level: str
    oncalls: tuple[str, ...]
    repository_id: int
    owner_id: int
    jobs: tuple[JobShape, ...]
    pass_rate: float
    queue_seconds: tuple[float, float]
    rerun_rate: float = 0.5
    skip_share: float = 0.04
    workflow: str = "CI"

    @property
    def owner(self) -> str:
        return self.full_name.split("/")[0]


CHARACTERS: tuple[Character, ...] = (
    Character(
        full_name="kestrel-demo/torch-kestrel",
        name="Kestrel NPU",
        kind="NPU",
        device="kestrel",
        about="Fictional. Fast and steady: a large machine pool, nearly every job green.",
        level="L3",
        oncalls=("demo-kestrel-lead", "demo-kestrel-oncall"),
        repository_id=9_810_000_001,
        owner_id=9_710_000_001,
        jobs=(
            JobShape("build", (10, 18)),
            JobShape("test-ops", (14, 30), tests=4_200),
            JobShape("test-nn", (12, 26), tests=2_650),
        ),
        pass_rate=0.98,
        queue_seconds=(0.5, 3),
    ),
    Character(
        full_name="fen-demo/torch-fen",
        name="Fen Tensor Card",
        kind="tensor card",
        device="fen",
        about="Fictional. Slower machines, one job in fourteen red, and a longer skip list.",
        level="L2",
        oncalls=("demo-fen-oncall",),
        repository_id=9_810_000_002,
        owner_id=9_710_000_002,
        jobs=(
            JobShape("test-eager", (25, 60), tests=3_100),
            JobShape("test-distributed", (30, 60), tests=480),
        ),
        pass_rate=0.93,
        queue_seconds=(2, 12),
        skip_share=0.11,
        workflow="Upstream CI",
    ),
    Character(
        full_name="pallas-demo/torch-pallas",
        name="Pallas One",
        kind="training accelerator",
        device="pallas",
        about="Fictional. New here: it receives events, and its answers are not shown yet.",
        level="L1",
        oncalls=("demo-pallas-lead",),
        repository_id=9_810_000_003,
        owner_id=9_710_000_003,
        jobs=(JobShape("smoke", (15, 40), tests=310),),
        pass_rate=0.96,
        queue_seconds=(1, 6),
    ),
)


def by_repository(full_name: str) -> Character | None:
    """The character behind a repository's name (GitHub compares names without case), if it is one of ours."""
    return next((c for c in CHARACTERS if c.full_name.lower() == full_name.lower()), None)


def allowlist_text() -> str:
    """The demo's allowlist file, in the format upstream's relay reads."""
    levels: dict[str, object] = {}
    for level in ("L1", "L2", "L3", "L4"):
        here = [c for c in CHARACTERS if c.level == level]
        if level == "L3":
            devices: dict[str, dict[str, str]] = {}
            for c in here:
                devices.setdefault(c.device, {})[c.full_name] = ", ".join(c.oncalls)
            levels[level] = devices
        else:
            levels[level] = [{c.full_name: ", ".join(c.oncalls)} for c in here]
    head = "# The demo's allowlist. Every platform on it is fictional.\n"
    return head + yaml.safe_dump(levels, sort_keys=False, default_flow_style=False)
