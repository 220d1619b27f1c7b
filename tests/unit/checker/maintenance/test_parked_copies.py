"""While Kafka is away nothing counts as copied, and its absence is one line.

What is copied, with real stores: tests/integration/checker/maintenance/test_parked_copies.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from structlog.testing import capture_logs

from checker.maintenance.parked_copies import KAFKA_LOST_SECONDS, POLL_SECONDS, ParkedCopies
from outbox.errors import KafkaUnavailable
from outbox.kafka.parked_topic import KafkaParkedTopic
from outbox.messages.message import ParkedReason
from outbox.messages.message_id import HalfId
from outbox.messages.record import Record
from outbox.operators.parked_messages import ParkedMessage
from outbox.postgres.maintenance.parked_messages import PostgresParkedMessages
from outbox.telemetry.metrics import Metrics
from tests.unit.checker.checks.fixtures_fakes import FreeLocks

NOW = datetime(2026, 9, 21, tzinfo=UTC)
PARKED = ParkedMessage(
    half_id=HalfId(1),
    half=None,
    parked_at=NOW,
    read_at=NOW,
    parked_reason=ParkedReason.CHECK_MAX,
    check_count=15,
)


class OneParked(PostgresParkedMessages):
    """One parked message, until it is marked as copied."""

    def __init__(self) -> None:
        self.waiting: Sequence[ParkedMessage] = [PARKED]

    async def uncopied(self, limit: int) -> Sequence[ParkedMessage]:
        return self.waiting

    async def mark_copied(self, copied: Sequence[ParkedMessage]) -> None:
        self.waiting = []


class Topic(KafkaParkedTopic):
    """A topic that is away while the test says so."""

    def __init__(self) -> None:
        self.away = True

    def copy(self, records: Sequence[Record], at_ms: int) -> Sequence[str | None]:
        if self.away:
            raise KafkaUnavailable("no broker answers")
        return [None for _ in records]


async def test_what_is_not_copied_while_kafka_is_away_is_copied_when_it_is_back() -> None:
    topic, parked = Topic(), OneParked()
    task = ParkedCopies(parked, topic, "parked", FreeLocks(), Metrics())
    with capture_logs() as lines:
        assert [await task.step() for _ in range(2)] == [KAFKA_LOST_SECONDS] * 2
        assert parked.waiting == [PARKED]
        topic.away = False
        assert [await task.step() for _ in range(2)] == [POLL_SECONDS] * 2
    assert parked.waiting == []
    about_kafka = [line for line in lines if line.get("dependency") == "kafka"]
    assert [(line["event"], line["topic"]) for line in about_kafka] == [
        ("dependency_lost", "parked"),
        ("dependency_back", "parked"),
    ]
