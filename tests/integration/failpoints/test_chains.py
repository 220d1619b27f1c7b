"""A process that is killed at any failpoint breaks no promise: every point once, in chains."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tests.integration.failpoints.fixtures_crashes import KILL_POINTS, run
from tests.integration.failpoints.fixtures_environment import CrashEnvironment

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos, pytest.mark.deep]

SEED, CHAINS = 4, 3
SHUFFLED = random.Random(SEED).sample(KILL_POINTS, len(KILL_POINTS))


@pytest.mark.parametrize("lives", [SHUFFLED[n::CHAINS] for n in range(CHAINS)], ids=" then ".join)
def test_processes_that_are_killed_at_one_point_after_another_break_no_promise(
    environment: CrashEnvironment, lives: Sequence[str]
) -> None:
    assert run(environment, lives) > 0
