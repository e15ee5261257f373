"""Chance that can be had again."""

import random


def chance(*parts: object) -> random.Random:
    """A generator that the parts decide: the same parts give the same numbers on every machine."""
    return random.Random("/".join(map(str, parts)))
