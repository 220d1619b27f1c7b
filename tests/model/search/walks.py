"""Seeded random walks through a configuration that is too large for a search.

After its last fault a walk continues without faults until nothing is left to do.
"""

from __future__ import annotations

import random
from typing import Final

from tests.model.search.search import Judge, Violation
from tests.model.worlds.universe import Universe
from tests.model.worlds.world import World

STEPS: Final = 150
"""The number of steps with faults; most walks are quiet by then."""

FAULT_CHANCE: Final = 0.1
"""The probability that a drawn fault happens."""


def walk(universe: Universe, walks: int, seed: int) -> Violation | None:
    """Walk this number of times; return the first world that is wrong, with the way to it."""
    chance, judge = random.Random(seed), Judge(universe)
    found = (_walk_once(universe, judge, chance) for _ in range(walks))
    return next(filter(None, found), None)


def _walk_once(universe: Universe, judge: Judge, chance: random.Random) -> Violation | None:
    path = [universe.start()]
    while True:
        world = path[-1]
        steps, calm = universe.following(world)
        broken = judge.wrong(world, quiet=calm == world)
        if broken is not None:
            return Violation(broken=broken, path=tuple(path))
        moving = [step.world for step in steps if step.world != world]
        if moving and len(path) < STEPS:
            path.append(_drawn(world, moving, chance))
        elif calm == world:
            return None
        else:
            path.append(calm)


def _drawn(world: World, following: list[World], chance: random.Random) -> World:
    """Draw the next world; faults are rare, so that other steps happen between them."""
    while True:
        drawn = chance.choice(following)
        fault = drawn.left != world.left or drawn.standby != world.standby
        if not fault or chance.random() < FAULT_CHANCE:
            return drawn
