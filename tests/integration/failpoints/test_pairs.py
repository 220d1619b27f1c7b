"""A process that is killed at one point, and its successor at another, break no promise."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from tests.integration.failpoints.fixtures_crashes import KILL_POINTS, run
from tests.integration.failpoints.fixtures_environment import CrashEnvironment
from tests.integration.failpoints.fixtures_pairs import Chain, all_chains, pairs_of, sample

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos, pytest.mark.deep]

SEED, COUNT = 4, 3


@pytest.mark.parametrize("lives", sample(SEED, COUNT), ids=" then ".join)
def test_processes_that_are_killed_at_one_point_after_another_break_no_promise(
    environment: CrashEnvironment, lives: Chain
) -> None:
    assert run(environment, lives) > 0


def test_the_sample_kills_at_every_point_once() -> None:
    assert Counter(point for lives in sample(SEED, COUNT) for point in lives) == Counter(
        KILL_POINTS
    )


def test_all_chains_go_through_every_ordered_pair_once() -> None:
    times = Counter(pair for lives in all_chains() for pair in pairs_of(lives))
    assert times == Counter(product(KILL_POINTS, KILL_POINTS))
