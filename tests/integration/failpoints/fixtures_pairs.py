"""Ordered pairs of points: the process dies at the first, its successor at the second.

Pairs come in chains of lives: in ``a b c`` the pairs are ``a b`` and ``b c``, and no life is spent
twice. All promises are judged at the end of each chain.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain, combinations, pairwise

from tests.integration.failpoints.fixtures_crashes import HERE

Pair = tuple[str, str]
Chain = Sequence[str]
LENGTH = 15
"""Lives of a chain: few enough to find the guilty pair again by shorter chains."""


def pairs_of(lives: Chain) -> Sequence[Pair]:
    """Return the ordered pairs that a chain goes through."""
    return list(pairwise(lives))


def all_chains(length: int = LENGTH) -> Sequence[Chain]:
    """Return chains that go through every ordered pair once, a point after itself included.

    They are cut from a de Bruijn sequence of order two, which is its points' Lyndon words in order.
    """
    ring = list(chain.from_iterable(_words_from(HERE.index(point)) for point in HERE))
    closed = [*ring, ring[0]]
    step = length - 1
    return [closed[begin : begin + length] for begin in range(0, len(ring), step)]


def sample(seed: int, count: int) -> Sequence[Chain]:
    """Return chains by seed that kill at every point once."""
    shuffled = random.Random(seed).sample(HERE, len(HERE))
    size = -(-len(shuffled) // count)
    return [shuffled[begin : begin + size] for begin in range(0, len(shuffled), size)]


def _words_from(first: int) -> Sequence[str]:
    later = combinations(HERE[first:], 2)
    return [HERE[first], *chain.from_iterable(pair for pair in later if pair[0] == HERE[first])]
