"""How many messages a minute were prepared, committed, published and checked in the last hour.

The logs are not counted: a bounded sample of each slice of their ids is read. What fits into its
sample is exact; of a longer slice the rest is estimated from the sample. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

MINUTES: Final = 60
"""How many minutes the series have."""
LIVE_MINUTES: Final = 5
"""The last minutes, of which the outcomes of checks are counted too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSlice:
    """What was read of the ids from ``low`` to before ``high``: flushes in the order of their ids.

    ``minutes`` count from the beginning of the hour, one for each flush, as do ``messages``.
    ``cut_off``: there are flushes after the ``last`` one; the slice ends in ``last_minute``.
    """

    low: int
    high: int
    last: int
    minutes: Sequence[int]
    messages: Sequence[int]
    cut_off: bool
    last_minute: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RateSeries:
    """The messages of each minute, the oldest minute first.

    ``estimated``: of some minutes a sample was read. ``searched_back_to``: messages that were
    prepared earlier are not counted; None: all are.
    """

    name: str
    counts: tuple[int, ...]
    estimated: bool = False
    searched_back_to: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeCount:
    """The checks with an outcome: of the last LIVE_MINUTES, and of the last day."""

    outcome: str
    live: int
    """Among the checks that the series ``checked`` counts."""
    day: int
    """Of messages that were prepared in the last day."""
    estimated: bool
    """A sample was read of the day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The last hour, which began at ``begins_at``; and the checks of the last day by outcome."""

    begins_at: datetime
    series: tuple[RateSeries, ...]
    outcomes: tuple[OutcomeCount, ...]


def series_of(name: str, slices: Iterable[LogSlice]) -> RateSeries:
    """Return the messages of each minute."""
    counts, estimated = [0.0] * MINUTES, False
    for each in slices:
        estimated = estimated or each.cut_off
        minutes, weight = each.minutes, 1.0
        if each.cut_off:
            # The sample is the beginning of the slice: the whole of it lasted until its last flush.
            minutes = range(each.minutes[0], max(each.last_minute, each.minutes[0]) + 1)
            share = (each.high - each.low) / (each.last + 1 - each.low)
            weight = share * sum(each.messages) / len(minutes)
        messages = [1] * len(minutes) if each.cut_off else each.messages
        for minute, count in zip(minutes, messages, strict=True):
            if minute >= 0:
                counts[min(minute, MINUTES - 1)] += count * weight
    return RateSeries(name=name, counts=tuple(round(each) for each in counts), estimated=estimated)
