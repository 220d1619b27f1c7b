"""What the programs did, by minute and group: each process adds what it did every few seconds.

A process counts in its metrics, so counting costs no statement in the way of a message. What it has
not written yet is lost with it: at most WRITE_SECONDS of its work.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from outbox.checks.answer import Outcome
from outbox.telemetry.metrics import Metrics

WRITE_SECONDS: Final = 5.0
LIVE_MINUTES: Final = 5
"""The last minutes, whose outcomes of checks are counted separately."""
CHECK: Final = "check_"
"""Begins the names of the counts of checks; their outcome follows."""
COUNTS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "prepared": ("half_prepared_total", {}),
    "committed": ("half_ended_total", {"decision": "COMMIT"}),
    "rolled_back": ("half_ended_total", {"decision": "ROLLBACK"}),
    "published": ("publish_total", {}),
    "parked": ("half_parked_total", {}),
    **{CHECK + each.value: ("checks_total", {"outcome": each.value}) for each in Outcome},
}
"""The name of each count, and the metric with the labels that it is the sum of."""

Growth = Mapping[tuple[str, str], Mapping[str, int]]
"""Counts by name, of a producer group and of the key that prepared; its id is else empty."""


class ProcessActivity:
    """What this process did since it was written last; ``store`` adds it to the present minute."""

    def __init__(self, metrics: Metrics, store: Callable[[Growth], Awaitable[None]]) -> None:
        self._metrics = metrics
        self._store = store
        self._written: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._note(self._growth())  # a worker of the API may continue the files of a dead one

    async def step(self) -> float:
        """Write what is new; return the seconds until the next step. Raises as ``store`` does."""
        growth = self._growth()
        if growth:
            await self._store(growth)
            self._note(growth)
        return WRITE_SECONDS

    def _growth(self) -> Growth:
        """Return what is not written yet; groups that did nothing are left out."""
        found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for name, (metric, wanted) in COUNTS.items():
            for labels, value in self._metrics.values(metric):
                if wanted.items() <= labels.items():
                    found[labels["producer_group"], labels.get("key_id", "")][name] += int(value)
        grown = {group: counts - self._written[group] for group, counts in found.items()}
        return {group: counts for group, counts in grown.items() if counts}

    def _note(self, growth: Growth) -> None:
        for group, counts in growth.items():
            self._written[group].update(counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteSeries:
    """Messages of each minute, the oldest first: prepared, committed, published, or checks."""

    name: str
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupActivity:
    """What a group did in the last hour, by the names of COUNTS.

    ``busiest_minute`` is the largest number of messages that it prepared in one minute.
    """

    producer_group: str
    busiest_minute: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyActivity:
    """What was prepared with an API key, and with those it created, in the last hour."""

    key_id: str
    busiest_minute: int
    prepared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeCount:
    """The checks with an outcome: of the last LIVE_MINUTES, and of the last day."""

    outcome: str
    live: int
    day: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastHour:
    """What the last hour did; its first minute began at ``begins_at``.

    ``groups`` and ``api_keys`` are those with the busiest minutes, ``check_outcomes`` counts the
    checks of the last day. Each process adds what it did every five seconds, so the figures are
    that late.
    """

    begins_at: datetime | None
    data: tuple[MinuteSeries, ...]
    groups: tuple[GroupActivity, ...]
    api_keys: tuple[KeyActivity, ...]
    check_outcomes: tuple[OutcomeCount, ...]
