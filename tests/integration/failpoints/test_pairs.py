"""Whoever dies at one point, and whose successor dies at another, breaks no promise either."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from tests.integration.failpoints.fixtures_crashes import HERE, run
from tests.integration.failpoints.fixtures_ground import Ground
from tests.integration.failpoints.fixtures_pairs import Chain, all_chains, pairs_of, sample

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos]

SEED, COUNT = 4, 3


@pytest.mark.parametrize("lives", sample(SEED, COUNT), ids=" then ".join)
def test_processes_that_die_at_one_point_after_another_break_no_promise(
    ground: Ground, lives: Chain
) -> None:
    assert run(ground, lives) > 0


def test_the_sample_dies_at_every_point_once() -> None:
    assert Counter(point for lives in sample(SEED, COUNT) for point in lives) == Counter(HERE)


def test_all_chains_go_through_every_ordered_pair_once() -> None:
    times = Counter(pair for lives in all_chains() for pair in pairs_of(lives))
    assert times == Counter(product(HERE, HERE))
