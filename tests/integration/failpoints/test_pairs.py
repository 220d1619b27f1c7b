"""Whoever dies at one point, and whose successor dies at another, breaks no promise either."""

from __future__ import annotations

import pytest

from tests.integration.failpoints.crashes import HERE, run
from tests.integration.failpoints.ground import Ground
from tests.integration.failpoints.pairs import Pair, all_pairs, sample

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos]

SEED, COUNT = 4, 12


@pytest.mark.parametrize("pair", sample(SEED, COUNT), ids=" then ".join)
def test_a_process_that_dies_at_one_point_and_then_at_another_breaks_no_promise(
    ground: Ground, pair: Pair
) -> None:
    assert run(ground, pair) > 0


def test_all_pairs_are_of_every_point_with_every_point_in_both_orders() -> None:
    pairs = set(all_pairs())
    assert len(pairs) == len(HERE) ** 2
    assert {tuple(reversed(pair)) for pair in pairs} == pairs
