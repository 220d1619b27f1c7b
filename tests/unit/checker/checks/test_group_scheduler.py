from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from checker.checks.check_back import CheckBack
from checker.checks.check_caller import ASKING_SECONDS, CheckCaller
from checker.checks.check_observer import CheckObserver
from checker.checks.fair_semaphore import FairSemaphore
from checker.checks.group_scheduler import (
    PAUSE_SECONDS,
    GroupScheduler,
)
from outbox.checks.answer import CheckAnswer, Outcome
from outbox.checks.breaker import BreakerState
from outbox.checks.check_round import DueSlice, GroupDue, QueueRow
from outbox.checks.producer_group import ProducerGroup
from outbox.telemetry.metrics import Metrics
from tests.fixtures_messages import make_group
from tests.unit.checker.checks.fixtures_fakes import FreeLocks, ListedQueue, ManualClock
from tests.unit.checker.checks.fixtures_queue_rows import make_half, make_row, make_slice

UNKNOWN = CheckAnswer(outcome=Outcome.UNKNOWN, http_status=200)


class Endpoint:
    """Answers UNKNOWN after the clock has moved."""

    def __init__(self, clock: ManualClock, seconds: float = 0.0) -> None:
        self._clock = clock
        self._seconds = seconds
        self.calls: list[list[int]] = []

    async def ask(
        self, group: ProducerGroup, rows: Sequence[QueueRow], now: datetime
    ) -> Sequence[CheckAnswer]:
        self.calls.append([row.half_id >> 15 for row in rows])
        self._clock.seconds += self._seconds
        await asyncio.sleep(0)
        return [UNKNOWN] * len(rows)


def check_back_of(queue: ListedQueue, endpoint: Endpoint, clock: ManualClock) -> CheckBack:
    observer = CheckObserver(Metrics())
    caller = CheckCaller(endpoint, FairSemaphore(256), clock, observer, batch_max=100)
    return CheckBack(queue, caller, observer)


def slice_of(count: int, **group: Any) -> DueSlice:
    rows = [make_row(n) for n in range(1, count + 1)]
    return make_slice(*rows, group=make_group(**group))


async def test_a_round_starts_no_call_after_its_asking_time() -> None:
    queue, clock = ListedQueue([slice_of(5, max_inflight=1)]), ManualClock()
    endpoint = Endpoint(clock, seconds=ASKING_SECONDS / 2)
    round_ = await check_back_of(queue, endpoint, clock).run_once(1)
    assert endpoint.calls == [[1], [2]]
    assert (round_.asked, round_.more) == (2, True)
    assert queue.settled[0].moves == {30: (0, 2)}


async def test_a_batch_stays_below_what_an_endpoint_takes() -> None:
    values = (1_000_000, 1_000_000, 1_000_000, 10, 10)
    rows = [
        make_row(n, half=make_half(n << 15, value=b"v" * size)) for n, size in enumerate(values, 1)
    ]
    group = make_group(batch_check=True, check_payload=True, max_inflight=1)
    queue, clock = ListedQueue([make_slice(*rows, group=group)]), ManualClock()
    endpoint = Endpoint(clock)
    await check_back_of(queue, endpoint, clock).run_once(1)
    assert endpoint.calls == [[1, 2], [3, 4, 5]]


# -- Groups side by side --------------------------------------------------------------------------


def scheduler_of(queue: ListedQueue, locks: FreeLocks, clock: ManualClock) -> GroupScheduler:
    check_back = check_back_of(queue, Endpoint(clock), clock)
    return GroupScheduler(check_back, queue, locks, clock, CheckObserver(Metrics()))


def due(number: int, overdue_seconds: float = 1.0, **fields: Any) -> GroupDue:
    name = f"g{number}"
    return GroupDue(
        producer_group_id=number, producer_group=name, overdue_seconds=overdue_seconds, **fields
    )


async def test_only_groups_that_are_due_get_a_round() -> None:
    groups = [due(1), due(2, -0.1), due(3, 0.0), due(4, rests=True)]
    groups += [due(5, breaker=BreakerState.OPEN), due(6, breaker=BreakerState.HALF_OPEN)]
    groups += [due(7, rests=True, aged=True), due(8, breaker=BreakerState.OPEN, aged=True)]
    queue = ListedQueue(groups=groups)
    scheduler = scheduler_of(queue, FreeLocks(), ManualClock())
    await scheduler.step()
    await scheduler.drain()
    assert queue.claimed == [1, 3, 6, 7, 8]


async def test_after_a_failed_round_only_its_own_group_pauses() -> None:
    queue, clock = ListedQueue(groups=[due(1)]), ManualClock()
    queue.unavailable = True
    scheduler = scheduler_of(queue, FreeLocks(), clock)
    for seconds in (0.0, PAUSE_SECONDS / 2, PAUSE_SECONDS):
        clock.seconds = seconds
        await scheduler.step()
        await scheduler.drain()
    assert queue.claimed == [1, 1]
