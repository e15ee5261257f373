"""Jobs of every kind on one day, and what they make of every figure: by our definitions and by upstream's, both
reckoned by hand. Minutes after noon; GitHub took each dispatch at its `sent`.

Which dispatch is what:
 A  a run with a re-run, a skip, a neutral end, a success that is contradicted, and two legs under one name
 B  cancelled by C, the newer push of the same pull request, which itself is cancelled and nobody knows why
 D  a job over three hours, and one that the hub ended for its silence
 E  the same silence, while the hub was out
 F  three jobs that a maintainer declared: as declared, not as declared, informational
 G  its webhook came late
 H  nobody answered
 I  a closed pull request, which asks for no answer
 J  still runs
 K  a job that failed by tests in quarantine alone
"""

from dataclasses import dataclass

PR_OF_B = 2


@dataclass(frozen=True)
class Sent:
    """One dispatch: `pr` None is a pull request of its own."""

    name: str
    sent: float = 0
    action: str = "synchronize"
    pr: int | None = None
    is_late: bool = False


@dataclass(frozen=True)
class Row:
    """One job. `reported` are the downstream's own times; `end` None: it still runs; `acknowledged`: by an oncall."""

    dispatch: str
    name: str
    start: float
    end: float | None
    conclusion: str = "success"
    bucket: str = ""
    attempt: int = 1
    leg: str = ""
    flags: tuple[str, ...] = ()
    reported: tuple[float, float | None] | None = None
    acknowledged: float | None = None


DISPATCHES = (
    Sent("A"),
    Sent("B", pr=PR_OF_B),
    Sent("C", sent=30, pr=PR_OF_B),
    Sent("D"),
    Sent("E"),
    Sent("F"),
    Sent("G", is_late=True),
    Sent("H"),
    Sent("I", action="closed"),
    Sent("J"),
    Sent("K"),
)

JOBS = (
    Row("A", "build", 10, 40, reported=(11, 39)),
    Row("A", "test", 20, 50, "failure", flags=("red_apart",), acknowledged=60),
    Row("A", "test", 100, 130, attempt=2),
    Row("A", "lint", 10, 10, "skipped", "neutral"),
    Row("A", "style", 10, 12, "neutral"),
    Row("A", "lie", 10, 30, bucket="contradicted"),
    Row("A", "ops", 10, 20, leg="a"),
    Row("A", "ops", 10, 30, "failure", leg="b"),
    Row("B", "build", 5, 35, "cancelled"),
    Row("C", "build", 40, 60, "cancelled"),
    Row("D", "slow", 1, 200),
    Row("D", "hung", 5, 365, "timed_out", flags=("inferred",), reported=(5, None), acknowledged=385),
    Row("E", "hung", 5, 365, "timed_out", flags=("inferred", "unheard"), reported=(5, None), acknowledged=366),
    Row("F", "meant to fail", 10, 20, "failure", acknowledged=21),
    Row("F", "meant to fail too", 10, 20),
    Row("F", "says nothing", 10, 20, "failure"),
    Row("G", "build", 10, 20),
    Row("J", "build", 5, None),
    Row("K", "flaky", 10, 30, "failure", flags=("red_apart",), acknowledged=75),
)

DECLARED = {"meant to fail": "failure", "meant to fail too": "failure", "says nothing": "informational"}

BUCKETS = {
    "success": 6,  # A build, A test again, A ops a, D slow, F meant to fail, G build
    "failure": 2,  # A ops b, K flaky
    "timed_out": 1,  # D hung
    "cancelled": 1,  # C build
    "contradicted": 1,  # A lie
    "neutral": 2,  # A lint, A style
    "unexpected": 1,  # F meant to fail too
    "in_progress": 1,  # J build
    "superseded": 2,  # A test, B build
    "unheard": 1,  # E hung
    "informational": 1,  # F says nothing
}
PARTS = {"superseded_by_push": 1, "as_declared": 1, "listed_apart": 1}

# By metric: (value, rows, numerator).
OURS = {
    # 6 + 2 + 1 + 1 + 1 + 2 + 1 ended.
    "pass_rate": (6 / 14, 14, 6),
    # The 6, and K flaky; not A's first test, whose place another attempt took.
    "adjusted_pass_rate": (7 / 14, 14, 7),
    # A: build, test, lint, style, lie, both ops; C; D: both; F: the first two; G; K. Green: A build, ops a; D slow; F,
    # G.
    "first_attempt_pass_rate": (5 / 14, 14, 5),
    "timeout_rate": (1 / 14, 14, 1),
    # The 14 without D hung, of which no run time is known; only D slow ran over three hours.
    "overrun_rate": (1 / 13, 13, 1),
    # A: 10 + 20 + 5 × 10 = 80; B 5; C 10; D 1 + 5; E 5; F 3 × 10; J 5; K 10: 151 minutes of 17 jobs.
    "avg_queue_seconds": (151 * 60 / 17, 17, None),
    # A: 20 + (50 - 10) = 60; C: 10 + 20 = 30; F: 10 + 10 = 20; K: 10 + 20 = 30 minutes.
    "e2e_seconds_p50": (30 * 60, 4, None),
    # All but I; of E and J nobody can say; H did not answer.
    "answer_rate": (7 / 8, 8, 7),
    "silence_count": (1, 8, 1),
    # A's first test after 10 minutes, D hung after 20, K flaky after 45; not E, which is unheard, nor F, as declared.
    "acknowledge_seconds_p50": (20 * 60, 3, None),
    # Those, A lie and A ops b are red.
    "acknowledged_rate": (3 / 5, 5, 3),
}

UPSTREAM = {
    # A: build, test again, lint, style, lie, one ops; B; C; D: both; E; F: three; G; K. Success as they say themselves:
    # A build, test, lie, ops; D slow; F meant to fail too; G.
    "pass_rate": (7 / 16, 16, 7),
    "adjusted_pass_rate": None,
    "first_attempt_pass_rate": None,
    # D hung and E hung.
    "timeout_rate": (2 / 16, 16, 2),
    "overrun_rate": (1 / 14, 14, 1),
    # A: 5 × 10 + 100 = 150; B 5; C 10; D 6; E 5; F 30; G 10; K 10: 226 minutes of 16 jobs.
    "avg_queue_seconds": (226 * 60 / 16, 16, None),
    # A: 100 + (130 - 10) = 220; B 35; C 30; D: 5 + (200 - 1) = 204; F 20; G 20; K 30 minutes. E never said that it
    # ended.
    "e2e_seconds_p50": (30 * 60, 7, None),
    "answer_rate": None,
    "silence_count": None,
    "acknowledge_seconds_p50": None,
    "acknowledged_rate": None,
}
