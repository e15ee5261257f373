"""The fictional platforms of the demo: who they are, and how their CI behaves. apps/simulator/plan.py acts it out.

None of them exists. Every name carries `demo`, so that a page with them on it is never taken for news.
"""

from dataclasses import dataclass

import yaml


@dataclass(frozen=True)
class JobShape:
    """One job of a character's workflow. `seconds`: shortest and longest run; `tests`: how many it counts (0: none);
    `leg`: which leg of a matrix it is, where its name does not say so. `uploads`: whether it sends its test report."""

    name: str
    seconds: tuple[float, float]
    tests: int = 0
    leg: str = ""
    uploads: bool = False


@dataclass(frozen=True)
class Character:
    """A fictional platform and its downstream repository.

    `kind`: what the thing is, in words. `device`: the word in `ciflow/crcr/<device>` labels. `queue_seconds`: shortest
    and longest wait for a machine. Times are those of the live demo, where a second stands for a minute.

    Rates are shares of one. `pass_rate` of first attempts that succeed; `rerun_rate` of attempts that did not, and
    `green_rerun_rate` of those that did, that are run again, up to `most_attempts`; a re-run passes with
    `rerun_pass_rate`. `skip_share` of tests are skipped. `death_rate` of jobs report their start and never their end.
    `lie_rate` of successes count failed tests, `forge_rate` of them failed by GitHub's record. `silent_days`: since
    then it answers nothing. `bad_days`: from and to how many days ago `bad_pass_rate` held. `ci`: whose tokens its jobs
    get, `github` or `buildkite`. `sweep`: jobs that a push to main starts besides, `sweep_rate` of the time.
    `replay_rate` of ends are sent again and misused (apps/simulator/replays.py). `renamed_to`: its repository's name
    since `renamed_days` ago. `events`: what its listing asks for; () is everything. `stray_days`: so many days ago its
    nightly run was about a commit that upstream does not know. `flaky_tests`: so many tests now and then pass only
    when they are tried again; the first of them is mended since `mended_days` ago.
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
    rerun_pass_rate: float = 0.75
    green_rerun_rate: float = 0.0
    most_attempts: int = 2
    skip_share: float = 0.04
    death_rate: float = 0.0
    lie_rate: float = 0.0
    forge_rate: float = 0.0
    silent_days: int | None = None
    bad_days: tuple[int, int] | None = None
    bad_pass_rate: float = 0.0
    sweep: tuple[JobShape, ...] = ()
    sweep_rate: float = 0.0
    workflow: str = "CI"
    ci: str = "github"
    replay_rate: float = 0.0
    renamed_to: str = ""
    renamed_days: int = 0
    events: tuple[str, ...] = ()
    stray_days: int = 0
    flaky_tests: int = 0
    mended_days: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """What its repository is called, and was."""
        return (self.full_name, self.renamed_to) if self.renamed_to else (self.full_name,)

    @property
    def is_nightly_only(self) -> bool:
        """Whether it takes part in nothing that is dispatched, and reports runs of its own."""
        return self.events == ("nightly",)

    @property
    def owner(self) -> str:
        return self.full_name.split("/")[0]


CHARACTERS: tuple[Character, ...] = (
    Character(
        full_name="kestrel-demo/torch-kestrel",
        name="Kestrel NPU",
        kind="NPU",
        device="kestrel",
        about="Fictional. Fast and steady: a large machine pool, nearly every job green; one bad week behind it.",
        level="L3",
        oncalls=("demo-kestrel-lead", "demo-kestrel-oncall"),
        repository_id=9_810_000_001,
        owner_id=9_710_000_001,
        jobs=(
            JobShape("build", (10, 18)),
            JobShape("test-ops", (14, 30), tests=4_200),
            JobShape("test-nn", (12, 26), tests=440, uploads=True),
        ),
        pass_rate=0.98,
        queue_seconds=(0.5, 3),
        bad_days=(12, 19),
        bad_pass_rate=0.6,
    ),
    Character(
        full_name="fen-demo/torch-fen",
        name="Fen Tensor Card",
        kind="tensor card",
        device="fen",
        about="Fictional. Slow: few machines, long queues, and runs that pass three hours; a longer skip list.",
        level="L2",
        oncalls=("demo-fen-oncall",),
        repository_id=9_810_000_002,
        owner_id=9_710_000_002,
        jobs=(
            JobShape("test-eager", (60, 200), tests=420, uploads=True),
            JobShape("test-distributed", (90, 230), tests=480),
        ),
        pass_rate=0.93,
        queue_seconds=(20, 90),
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
    Character(
        full_name="meridian-demo/torch-meridian",
        name="Meridian Core",
        kind="tensor processor",
        device="meridian",
        about="Fictional. Mature: its checks may block a merge, and it is rarely wrong.",
        level="L4",
        oncalls=("demo-meridian-lead", "demo-meridian-oncall"),
        repository_id=9_810_000_004,
        owner_id=9_710_000_004,
        jobs=(
            JobShape("build", (10, 16)),
            JobShape("test-ops", (18, 34), tests=4_350),
            JobShape("test-compile", (20, 38), tests=460, uploads=True),
        ),
        pass_rate=0.99,
        queue_seconds=(0.3, 1.5),
        rerun_rate=0.9,
        skip_share=0.02,
    ),
    Character(
        full_name="wren-demo/torch-wren",
        name="Wren Graph Unit",
        kind="graph processor",
        device="wren",
        about="Fictional. Flaky: run the same commit again, and the answer is another.",
        level="L3",
        oncalls=("demo-wren-oncall",),
        repository_id=9_810_000_005,
        owner_id=9_710_000_005,
        jobs=(
            JobShape("test-ops", (14, 30), tests=3_900),
            JobShape("test-graph", (16, 40), tests=430, uploads=True),
        ),
        pass_rate=0.74,
        queue_seconds=(1, 5),
        rerun_rate=0.9,
        rerun_pass_rate=0.7,
        green_rerun_rate=0.15,
        most_attempts=4,
        flaky_tests=6,
        mended_days=16,
    ),
    Character(
        full_name="quarry-demo/torch-quarry",
        name="Quarry Matrix Engine",
        kind="matrix engine",
        device="quarry",
        about="Fictional. Dies mid-job: machines vanish, a start is reported and the end never comes.",
        level="L2",
        oncalls=("demo-quarry-oncall",),
        repository_id=9_810_000_006,
        owner_id=9_710_000_006,
        jobs=(
            JobShape("build", (12, 20)),
            JobShape("test", (20, 50), tests=2_200),
        ),
        pass_rate=0.95,
        queue_seconds=(1, 6),
        death_rate=0.15,
    ),
    Character(
        full_name="lumen-demo/torch-lumen",
        name="Lumen Photonic Card",
        kind="photonic accelerator",
        device="lumen",
        about="Fictional. Lies now and then: it reports success, and its own counts, or GitHub, say otherwise.",
        level="L2",
        oncalls=("demo-lumen-oncall",),
        repository_id=9_810_000_007,
        owner_id=9_710_000_007,
        jobs=(
            JobShape("test-ops", (12, 28), tests=3_350),
            JobShape("test-autograd", (12, 30), tests=410, uploads=True),
        ),
        pass_rate=0.97,
        queue_seconds=(1, 4),
        lie_rate=0.14,
        forge_rate=0.05,
    ),
    Character(
        full_name="tarn-demo/torch-tarn",
        name="Tarn Vector Array",
        kind="vector processor",
        device="tarn",
        about="Fictional. Silent: it gets every event, and for days it has answered none.",
        level="L2",
        oncalls=("demo-tarn-oncall",),
        repository_id=9_810_000_008,
        owner_id=9_710_000_008,
        jobs=(
            JobShape("build", (12, 22)),
            JobShape("test", (18, 45), tests=1_700),
        ),
        pass_rate=0.94,
        queue_seconds=(1, 8),
        silent_days=9,
    ),
    Character(
        full_name="cascade-demo/torch-cascade",
        name="Cascade Mesh",
        kind="mesh accelerator",
        device="cascade",
        about="Fictional. A flood: a push may start its whole matrix, more callbacks a minute than the hub takes.",
        level="L2",
        oncalls=("demo-cascade-lead",),
        repository_id=9_810_000_009,
        owner_id=9_710_000_009,
        jobs=(JobShape("test-quick", (10, 24), tests=900),),
        pass_rate=0.965,
        queue_seconds=(0.5, 2),
        sweep=tuple(JobShape(f"test-shard-{number:02}", (10, 20), tests=140) for number in range(1, 57)),
        sweep_rate=0.3,
    ),
    Character(
        full_name="onyx-demo/torch-onyx",
        name="Onyx Dataflow",
        kind="dataflow processor",
        device="onyx",
        about="Fictional. Builds on Buildkite: its tokens name a pipeline, which operators have mapped.",
        level="L2",
        oncalls=("demo-onyx-oncall",),
        repository_id=9_810_000_010,
        owner_id=9_710_000_010,
        jobs=(JobShape("test-ops", (14, 32), tests=2_050),),
        pass_rate=0.955,
        queue_seconds=(1, 6),
        ci="buildkite",
    ),
    Character(
        full_name="lattice-demo/torch-lattice",
        name="Lattice Systolic",
        kind="systolic array",
        device="lattice",
        about="Fictional. A matrix whose legs share one job name: only their check runs tell them apart.",
        level="L2",
        oncalls=("demo-lattice-oncall",),
        repository_id=9_810_000_011,
        owner_id=9_710_000_011,
        jobs=(
            JobShape("test", (12, 26), tests=1_250, leg="bf16"),
            JobShape("test", (14, 30), tests=1_250, leg="fp32"),
        ),
        pass_rate=0.95,
        queue_seconds=(1, 5),
    ),
    Character(
        full_name="sable-demo/torch-sable",
        name="Sable Inference Card",
        kind="inference card",
        device="sable",
        about="Fictional. Renamed: its repository has another name at GitHub now; the id, and its past, are the same.",
        level="L2",
        oncalls=("demo-sable-oncall",),
        repository_id=9_810_000_012,
        owner_id=9_710_000_012,
        jobs=(
            JobShape("build", (10, 18)),
            JobShape("test-ops", (14, 30), tests=2_400),
        ),
        pass_rate=0.96,
        queue_seconds=(1, 5),
        renamed_to="sable-demo/sable-backend",
        renamed_days=14,
    ),
    Character(
        full_name="rook-demo/torch-rook",
        name="Rook Sparse Unit",
        kind="sparse processor",
        device="rook",
        about="Fictional. Replays: its tokens come again, with the same body and another, and it answers strangers.",
        level="L2",
        oncalls=("demo-rook-oncall",),
        repository_id=9_810_000_013,
        owner_id=9_710_000_013,
        jobs=(JobShape("test-ops", (12, 28), tests=1_800),),
        pass_rate=0.94,
        queue_seconds=(1, 5),
        replay_rate=0.2,
    ),
    Character(
        full_name="vesper-demo/torch-vesper",
        name="Vesper Edge Module",
        kind="edge module",
        device="vesper",
        about="Fictional. Nightly only: it is listed for no pull request, and reports its own run of each night.",
        level="L2",
        oncalls=("demo-vesper-oncall",),
        repository_id=9_810_000_014,
        owner_id=9_710_000_014,
        jobs=(
            JobShape("nightly-ops", (30, 60), tests=5_200),
            JobShape("nightly-models", (25, 55), tests=360, uploads=True),
        ),
        pass_rate=0.9,
        queue_seconds=(1, 10),
        rerun_rate=0.3,
        workflow="Nightly",
        events=("nightly",),
        stray_days=5,
    ),
)


def by_repository(full_name: str) -> Character | None:
    """The character behind a repository's name (GitHub compares names without case), if it is one of ours."""
    return next((c for c in CHARACTERS if full_name.lower() in map(str.lower, c.names)), None)


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
            levels[level] = [{c.full_name: _listing(c)} for c in here]
    head = "# The demo's allowlist. Every platform on it is fictional.\n"
    return head + yaml.safe_dump(levels, sort_keys=False, default_flow_style=False)


def _listing(character: Character) -> object:
    """What stands behind a repository's name in the file."""
    if not character.events:
        return ", ".join(character.oncalls)
    return {"oncalls": ", ".join(character.oncalls), "events": list(character.events)}
