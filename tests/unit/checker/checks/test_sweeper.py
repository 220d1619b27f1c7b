from __future__ import annotations

import pytest

from checker.checks.sweeper import LOCK_BUSY_SECONDS, SLICE_HALVES, SWEEP_SECONDS, Sweeper
from outbox.errors import CursorMoved
from tests.unit.checker.checks.fixtures_fakes import FreeLocks


class CountedSweep:
    """A sweep that passes a given number of halves; None: another sweep is faster."""

    def __init__(self, looked: int | None) -> None:
        self._looked = looked

    async def sweep(self, limit: int) -> int:
        if self._looked is None:
            raise CursorMoved
        return self._looked


@pytest.mark.parametrize(
    ("looked", "seconds"),
    [(SLICE_HALVES, 0.0), (SLICE_HALVES - 1, SWEEP_SECONDS), (None, SWEEP_SECONDS)],
    ids=["a full slice", "all passed", "overtaken"],
)
async def test_the_next_sweep_follows_at_once_after_a_full_slice_only(
    looked: int | None, seconds: float
) -> None:
    assert await Sweeper(CountedSweep(looked), FreeLocks()).step() == seconds


async def test_a_sweep_waits_while_another_checker_has_the_lock() -> None:
    assert await Sweeper(CountedSweep(0), FreeLocks(0)).step() == LOCK_BUSY_SECONDS
