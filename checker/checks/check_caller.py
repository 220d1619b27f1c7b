"""Asks about all halves of a round by due time, within the limits of the group and the process.

No call starts after the round's asking time, or after the endpoint has answered that it is gone. A
call that cannot be built stops no other: its half is skipped. The halves of such a batch are asked
one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

from checker.checks.check_observer import CheckObserver
from checker.checks.fair_semaphore import FairSemaphore
from outbox.checks.answer import CheckAnswer
from outbox.checks.check_round import DueSlice, QueueRow
from outbox.checks.producer_group import ProducerGroup
from outbox.clock import Clock
from outbox.failpoints import hit
from outbox.messages.message import HalfMessage

ASKING_SECONDS: Final = 1.0
"""A round starts no further call after this time, so that its results are stored soon."""
BATCH_CONTENT_BYTES: Final = 2 * 1024 * 1024
"""Keys, values and headers of a batch: JSON makes at most six bytes of one; 16 MiB is the limit."""


class CheckEndpoint(Protocol):
    """Asks a producer group for the results of its local transactions."""

    async def ask(
        self, group: ProducerGroup, rows: Sequence[QueueRow], now: datetime
    ) -> Sequence[CheckAnswer]:
        """Make one call and answer for each readable row in order; never raises for a response.

        ``now``, by the database's clock, is the time in the call's signature. More than one row
        needs a group with the batch form. A response without one valid verdict for the
        id that was asked is a CheckAnswer without a verdict.
        """


class CheckCaller:
    """Makes the calls of all rounds of a process."""

    def __init__(
        self,
        endpoint: CheckEndpoint,
        semaphore: FairSemaphore,
        clock: Clock,
        observer: CheckObserver,
        *,
        batch_max: int,
    ) -> None:
        self._endpoint = endpoint
        self._semaphore = semaphore
        self._clock = clock
        self._observer = observer
        self._batch_max = batch_max

    async def ask_all(self, due: DueSlice, rows: Sequence[QueueRow]) -> list[QueueRow]:
        """Ask about readable rows until all are asked or the asking time is over.

        Return the rows that were asked about, with their answers, in the order in which these
        arrived. A half whose call cannot be built has no answer.
        """
        size = self._batch_max if due.group.batch_check else 1
        round_ = _Round(due=due, batches=_batches(rows, size), started=self._clock.monotonic())
        async with asyncio.TaskGroup() as workers:
            for _ in range(min(due.group.max_inflight, len(rows))):
                workers.create_task(self._work(round_))
        return round_.asked

    async def _work(self, round_: _Round) -> None:
        group = round_.due.group
        for batch in round_.batches:
            async with self._semaphore.call(group.id):
                late = self._clock.monotonic() - round_.started >= ASKING_SECONDS
                if late or any(each.answer and each.answer.gone for each in round_.asked):
                    return
                with self._observer.on_the_wire(group):
                    await self._call(round_, batch)

    async def _call(self, round_: _Round, batch: Sequence[QueueRow]) -> None:
        """Make one call; the halves of a batch that cannot be built are asked one by one."""
        group = round_.due.group
        sent = self._clock.monotonic()
        asked_at = round_.due.now + timedelta(seconds=sent - round_.started)
        try:
            answers = await self._endpoint.ask(group, batch, asked_at)
        except Exception as error:
            if len(batch) > 1:
                for row in batch:
                    await self._call(round_, [row])
                return
            self._observer.skipped(group, batch[0], type(error).__name__)
            round_.asked.extend(batch)
            return
        latency = self._clock.monotonic() - sent
        hit("checker.after_call")
        self._observer.called(group, batch[0], answers, latency)
        round_.calls += 1
        for row, answer in zip(batch, answers, strict=True):
            timed = replace(
                answer, call=round_.calls, asked_at=asked_at, latency_ms=round(latency * 1000)
            )
            round_.asked.append(replace(row, answer=timed))


@dataclass(slots=True, kw_only=True)
class _Round:
    """The calls of one round while they run."""

    due: DueSlice
    batches: Iterator[list[QueueRow]]
    started: float
    asked: list[QueueRow] = field(default_factory=list)
    calls: int = 0


def _batches(rows: Sequence[QueueRow], size: int) -> Iterator[list[QueueRow]]:
    """Yield calls of at most ``size`` checks; several fit only within BATCH_CONTENT_BYTES."""
    batch: list[QueueRow] = []
    batch_bytes = 0
    for row in rows:
        row_bytes = _content_bytes(row.readable)
        if batch and (len(batch) == size or batch_bytes + row_bytes > BATCH_CONTENT_BYTES):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(row)
        batch_bytes += row_bytes
    if batch:
        yield batch


def _content_bytes(half: HalfMessage) -> int:
    message = half.message
    headers = sum(len(name) + len(value or b"") for name, value in message.headers)
    return len(message.key or b"") + len(message.value or b"") + headers
