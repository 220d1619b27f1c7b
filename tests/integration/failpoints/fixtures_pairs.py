"""Ordered pairs of points: the process is killed at the first, its successor at the second.

Pairs are parts of chains of lives: in ``a b c`` the pairs are ``a b`` and ``b c``, and the life
``b`` serves both. All promises are verified at the end of each chain.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain, combinations, pairwise

from tests.integration.failpoints.fixtures_crashes import KILL_POINTS

Pair = tuple[str, str]
Chain = Sequence[str]
LENGTH = 15
"""Lives per chain: few enough to find a failing pair again with shorter chains."""


def pairs_of(lives: Chain) -> Sequence[Pair]:
    """Return the ordered pairs that a chain goes through."""
    return list(pairwise(lives))


def all_chains(length: int = LENGTH) -> Sequence[Chain]:
    """Return chains that go through every ordered pair once, a point after itself included.

    They are cut from a de Bruijn sequence of order two, which is its points' Lyndon words in order.
    """
    ring = list(chain.from_iterable(_words_from(KILL_POINTS.index(point)) for point in KILL_POINTS))
    closed = [*ring, ring[0]]
    step = length - 1
    return [closed[begin : begin + length] for begin in range(0, len(ring), step)]


def sample(seed: int, count: int) -> Sequence[Chain]:
    """Return chains by seed that kill at every point once."""
    shuffled = random.Random(seed).sample(KILL_POINTS, len(KILL_POINTS))
    size = -(-len(shuffled) // count)
    return [shuffled[begin : begin + size] for begin in range(0, len(shuffled), size)]


def _words_from(first: int) -> Sequence[str]:
    later = combinations(KILL_POINTS[first:], 2)
    return [
        KILL_POINTS[first],
        *chain.from_iterable(pair for pair in later if pair[0] == KILL_POINTS[first]),
    ]
