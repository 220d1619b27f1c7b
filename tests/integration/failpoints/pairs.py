"""Ordered pairs of points: the process dies at the first, its successor at the second."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product

from tests.integration.failpoints.crashes import HERE

Pair = tuple[str, str]


def all_pairs() -> Sequence[Pair]:
    """Return every ordered pair, a point after itself included."""
    return list(product(HERE, HERE))


def sample(seed: int, count: int) -> Sequence[Pair]:
    """Return pairs by seed in which every point stands about equally often."""
    chance, pairs = random.Random(seed), list[Pair]()
    while len(pairs) < count:
        firsts, seconds = (chance.sample(HERE, len(HERE)) for _ in range(2))
        pairs += zip(firsts, seconds, strict=True)
    return pairs[:count]
