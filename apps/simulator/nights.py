"""Nightly runs: a downstream's own, about a commit of upstream's main, reported once at their end."""

from apps.simulator.chance import chance
from apps.simulator.characters import Character
from apps.simulator.plan import Job, plan


def plan_night(
    character: Character,
    *,
    night: str,
    commit: str,
    seed: int,
    is_stray: bool = False,
    pace: float = 1.0,
    days_ago: float = 0.0,
) -> list[Job]:
    """Every job of one night, which `night` names among all others. `commit` is upstream's newest; a stray run is about
    one that upstream has not. `pace` multiplies all times."""
    if is_stray:
        commit = f"{chance(seed, character.full_name, 'stray', night).getrandbits(160):040x}"
    payload = {"event_type": "nightly", "delivery_id": commit, "payload": {"head_sha": commit}}
    return plan(character, payload, seed=seed, pace=pace, days_ago=days_ago, night=night)
