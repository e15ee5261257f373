"""A repository that blocks: its check runs carry what the gate says of its part. Pure; /policy/ prints CARRIED.

So a required check is red exactly where the gate blocks, and a hub that waits or does not know freezes no merge.
"""

from dataclasses import replace

from apps.checks.enums import CheckStatus
from apps.checks.policy import MOST_SUMMARY, MOST_TITLE, CheckRule, Wanted
from apps.gate.enums import Effect, Kind
from apps.gate.selectors import PartTold
from apps.relay.enums import Conclusion

CARRIED: tuple[CheckRule, ...] = (
    CheckRule("the part passes", "success"),
    CheckRule("the part passes by a row of the policy, as after a wait that is over", "neutral, with that record"),
    CheckRule("the part is overridden, or its breaker is open", "neutral, with an alarm"),
    CheckRule("what the part says is not known", "neutral, with an alarm"),
    CheckRule("the part blocks", "failure, or as its own job ended red"),
    CheckRule("the part is awaited", "in progress; a job that ended red already says so"),
    CheckRule("the part never came, once nothing is awaited", "as the part, under the names that it bore last"),
)
_RED = (Conclusion.FAILURE, Conclusion.TIMED_OUT, Conclusion.CANCELLED)
_LET_PASS = (Kind.OVERRIDDEN, Kind.INFORMATIONAL)


def is_alarming(part: PartTold) -> bool:
    """Whether a blocking check ends as neutral for a reason that somebody has to know of."""
    return part.effect is Effect.UNKNOWN or part.leading.type in _LET_PASS


def carrying(wanted: Wanted, part: PartTold) -> Wanted:
    """What a check run is to say of its jobs, given what the gate says of its repository's part."""
    status, conclusion = _state(wanted, part)
    if (status, conclusion) == (wanted.status, wanted.conclusion):
        return wanted
    title = part.leading.sentence
    summary = f"**{title}**\n\nWhat the gate says of the repository's part. Its own jobs: {wanted.summary}"
    return replace(
        wanted,
        status=status,
        conclusion=conclusion,
        title=title[:MOST_TITLE],
        summary=summary[:MOST_SUMMARY],
    )


def _state(wanted: Wanted, part: PartTold) -> tuple[CheckStatus, str]:
    is_red = wanted.conclusion in _RED
    match part.effect:
        case Effect.BLOCKS:
            return CheckStatus.COMPLETED, wanted.conclusion if is_red else Conclusion.FAILURE.value
        case Effect.WAITS:
            if is_red:
                return CheckStatus.COMPLETED, wanted.conclusion
            return CheckStatus.IN_PROGRESS, ""
        case Effect.UNKNOWN:
            return CheckStatus.COMPLETED, Conclusion.NEUTRAL.value
    # Passing with a record is no success: some outcome was neither.
    is_recorded = is_alarming(part) or any(one.outcome for one in part.requirements)
    return CheckStatus.COMPLETED, (Conclusion.NEUTRAL if is_recorded else Conclusion.SUCCESS).value
