"""Sweep: halves past their first second without an op message join the check queue, once each."""

from __future__ import annotations

from typing import Final

from outbox.checks.check_round import SweepRound
from outbox.checks.ports import Sweep
from outbox.errors import CursorMoved

SLICE_HALVES: Final = 4000
"""Halves that one sweep passes at most; what is left is passed by the next."""


class Sweeper:
    """Runs sweeps; several checkers may, one at a time gets through."""

    def __init__(self, sweep: Sweep, *, slice_halves: int = SLICE_HALVES) -> None:
        self._sweep = sweep
        self._slice_halves = slice_halves

    async def run_once(self) -> SweepRound:
        """Pass one bounded slice of halves. Raises DatabaseUnavailable; nothing is lost then."""
        try:
            return await self._sweep.sweep(self._slice_halves)
        except CursorMoved:
            return SweepRound(looked=0, queued=0)

    def is_full(self, swept: SweepRound) -> bool:
        """Tell whether more halves are likely to be waiting."""
        return swept.looked >= self._slice_halves
