"""Asks all halves of a round: in due order, within the group's and everybody's limit of calls.

No call begins after the round's asking time, nor once the endpoint has said that it is gone. A call
that cannot even be built stops nobody: its half is skipped, a batch is then asked one by one (D10).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from checker.checks.check_observer import CheckObserver
from checker.checks.check_result import CheckResult
from checker.checks.fair_semaphore import FairSemaphore
from outbox.checks.check_round import Answer, DueSlice, Question, QueueRow
from outbox.checks.policy import CheckBack
from outbox.checks.ports import CheckEndpoint
from outbox.clock import Clock
from outbox.failpoints import hit

ASKING_SECONDS: Final = 1.0
"""A round begins no further call after this long, so that what it knows is soon durable."""


BATCH_CONTENT_BYTES: Final = 2 * 1024 * 1024
"""Keys, values and headers of a batch: JSON makes six bytes of one at worst, of 16 MiB at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A row that is to be asked, the look that says so, and its question."""

    row: QueueRow
    look: CheckBack
    question: Question


class CheckCaller:
    """Makes the calls of all rounds of a process."""

    def __init__(
        self,
        endpoint: CheckEndpoint,
        turns: FairSemaphore,
        clock: Clock,
        facts: CheckObserver,
        *,
        batch_max: int,
    ) -> None:
        self._endpoint = endpoint
        self._turns = turns
        self._clock = clock
        self._facts = facts
        self._batch_max = batch_max

    async def ask_all(self, due: DueSlice, asking: Sequence[Asking]) -> list[CheckResult]:
        """Ask until all are asked or the asking time is up; findings in order of arrival."""
        size = self._batch_max if due.group.batch_check else 1
        round_ = _Round(due=due, batches=_batches(asking, size), started=self._clock.monotonic())
        async with asyncio.TaskGroup() as workers:
            for _ in range(min(due.group.max_inflight, len(asking))):
                workers.create_task(self._work(round_))
        return round_.findings

    async def _work(self, round_: _Round) -> None:
        group = round_.due.group
        for batch in round_.batches:
            async with self._turns.call(group.id):
                late = self._clock.monotonic() - round_.started >= ASKING_SECONDS
                if late or round_.gone:
                    return
                with self._facts.on_the_wire(group):
                    round_.add(await self._call(round_, batch))

    async def _call(self, round_: _Round, batch: Sequence[Asking]) -> list[CheckResult]:
        """Make one call; a batch that cannot be built is asked singly."""
        group = round_.due.group
        sent = self._clock.monotonic()
        asked_at = round_.due.now + timedelta(seconds=sent - round_.started)
        try:
            answers: Sequence[Answer | None] = await self._endpoint.ask(
                group, [asked.question for asked in batch], asked_at
            )
        except Exception as error:
            if len(batch) > 1:
                singly = [await self._call(round_, [asked]) for asked in batch]
                return [finding for findings in singly for finding in findings]
            self._facts.skipped(group, batch[0].row, type(error).__name__)
            answers = [None]
        latency, call = self._clock.monotonic() - sent, round_.next_call()
        hit("checker.after_call")
        self._facts.called(group, batch[0].question, answers, latency)
        return [
            CheckResult(
                row=asked.row,
                look=asked.look,
                answer=answer,
                asked_at=asked_at,
                latency_ms=round(latency * 1000),
                call=call,
            )
            for asked, answer in zip(batch, answers, strict=True)
        ]


@dataclass(slots=True, kw_only=True)
class _Round:
    """One round's calls while they run."""

    due: DueSlice
    batches: Iterator[list[Asking]]
    started: float
    findings: list[CheckResult] = field(default_factory=list)
    gone: bool = False
    calls: int = 0

    def next_call(self) -> int:
        """Count a call and return its number."""
        self.calls += 1
        return self.calls

    def add(self, findings: Sequence[CheckResult]) -> None:
        """Note findings in order of arrival."""
        self.findings.extend(findings)
        self.gone = self.gone or any(each.answer and each.answer.gone for each in findings)


def _batches(asking: Sequence[Asking], size: int) -> Iterator[list[Asking]]:
    """Cut into calls of at most ``size`` checks, several only within BATCH_CONTENT_BYTES."""
    batch: list[Asking] = []
    held = 0
    for asked in asking:
        weight = _content_bytes(asked.question)
        if batch and (len(batch) == size or held + weight > BATCH_CONTENT_BYTES):
            yield batch
            batch, held = [], 0
        batch.append(asked)
        held += weight
    if batch:
        yield batch


def _content_bytes(question: Question) -> int:
    content = question.half.message.content
    headers = sum(len(name) + len(value) for name, value in content.headers)
    return len(content.key or b"") + len(content.value or b"") + headers
