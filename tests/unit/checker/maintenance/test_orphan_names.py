"""Kafka's absence and its return are one line each in the log of the task that names orphans.

What is named, with real stores: tests/integration/checker/relay/settlement/test_orphan_names.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from structlog.testing import capture_logs

from checker.maintenance.orphan_names import KAFKA_LOST_SECONDS, POLL_SECONDS, OrphanNames
from outbox.errors import KafkaUnavailable
from outbox.messages.message_id import HalfId, Nonce
from outbox.messages.record import RecordName, UnnamedRecord
from tests.unit.checker.checks.fixtures_fakes import FreeLocks


class OneOrphan:
    """One id without a name, until it was searched."""

    def __init__(self) -> None:
        self.waiting: Sequence[UnnamedRecord] = [UnnamedRecord(HalfId(1), Nonce(2), 0, 7)]

    async def unnamed(self, limit: int) -> Sequence[UnnamedRecord]:
        return self.waiting

    async def topics(self) -> Sequence[str]:
        return ["points-earned"]

    async def note(self, sought: Sequence[UnnamedRecord], named: Sequence[RecordName]) -> None:
        self.waiting = []


class Records:
    """Records of topics that are away while the test says so."""

    def __init__(self) -> None:
        self.away = True

    def read(self, sought: Sequence[UnnamedRecord], topics: Sequence[str]) -> Sequence[RecordName]:
        if self.away:
            raise KafkaUnavailable("no broker answers")
        return []


async def test_kafka_is_lost_once_and_back_once() -> None:
    records = Records()
    task = OrphanNames(cast(Any, OneOrphan()), cast(Any, records), FreeLocks())
    with capture_logs() as lines:
        assert [await task.step() for _ in range(2)] == [KAFKA_LOST_SECONDS] * 2
        records.away = False
        assert [await task.step() for _ in range(2)] == [POLL_SECONDS] * 2
    assert [(line["event"], line["dependency"], line["task"]) for line in lines] == [
        ("dependency_lost", "kafka", "orphans"),
        ("dependency_back", "kafka", "orphans"),
    ]
