"""Copies parked messages to the parked topic, for operators who watch Kafka and not the console.

Delivery is at least once: a copy is marked after Kafka has acknowledged it, so an interrupted copy
is written again. A message that is resumed and parked again is copied again. The copy is no
delivery: it takes no part in ordering or reconciliation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from checker.advisory_locks import AdvisoryLocks
from outbox.errors import KafkaUnavailable
from outbox.messages.message import HalfMessage
from outbox.messages.record import MESSAGE_ID, PRODUCER_GROUP, TRANSACTION_ID, Record
from outbox.operators.parked_messages import ParkedMessage
from outbox.telemetry.dependency_log import DependencyLog
from outbox.telemetry.events import Event, get_logger
from outbox.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from outbox.kafka.parked_topic import KafkaParkedTopic
    from outbox.postgres.maintenance.parked_messages import PostgresParkedMessages

BATCH: Final = 100
POLL_SECONDS: Final = 1.0
KAFKA_LOST_SECONDS: Final = 5.0
UNREADABLE: Final = "UNREADABLE"
"""The refusal of a message whose stored form is broken: it gets no copy and delays no other."""


class ParkedCopies:
    """Copies one batch of parked messages per step; one checker at a time."""

    def __init__(
        self,
        messages: PostgresParkedMessages,
        topic: KafkaParkedTopic,
        name: str,
        locks: AdvisoryLocks,
        metrics: Metrics,
    ) -> None:
        self._messages = messages
        self._topic = topic
        self._name = name
        self._locks = locks
        self._metrics = metrics
        self._kafka = DependencyLog("kafka", topic=name)

    async def step(self) -> float:
        """Copy parked messages without a copy; return the seconds until the next step."""
        async with self._locks.try_lock("parked") as held:
            if not held:
                return POLL_SECONDS
            found = await self._messages.uncopied(BATCH)
            if not found:
                return POLL_SECONDS
            records = [copy_of(each, each.half, self._name) for each in found if each.half]
            try:
                refusals = await asyncio.to_thread(self._topic.copy, records, _time_of(found))
            except KafkaUnavailable as error:
                self._kafka.lost(error)
                return KAFKA_LOST_SECONDS
            self._kafka.back()
            unreadable = [UNREADABLE for each in found if each.half is None]
            for refusal in filter(None, [*refusals, *unreadable]):
                self._note_refused(refusal)
            await self._messages.mark_copied(found)
        return 0.0 if len(found) == BATCH else POLL_SECONDS

    def _note_refused(self, refusal: str) -> None:
        self._metrics["publish_errors_total"].labels(self._name, refusal).inc()
        get_logger().warning(Event.PUBLISH_FAILED, topic=self._name, error=refusal)


def _time_of(found: Sequence[ParkedMessage]) -> int:
    """Return PostgreSQL's time (ms): this machine's clock may be days off."""
    return round(found[-1].read_at.timestamp() * 1000)


def copy_of(parked: ParkedMessage, half: HalfMessage, topic: str) -> Record:
    """Return the copy: same key and value; the facts in headers, then the caller's headers."""
    message = half.message
    facts = {
        MESSAGE_ID: str(half.message_id),
        PRODUCER_GROUP: message.producer_group,
        TRANSACTION_ID: message.transaction_id,
        "outbox_topic": message.topic,
        "outbox_parked_reason": parked.parked_reason.value,
        "outbox_parked_at": parked.parked_at.isoformat(),
        "outbox_check_count": str(parked.check_count),
        "content-type": message.content_type,
    }
    own = [(name, text.encode()) for name, text in facts.items() if text is not None]
    return Record(topic, message.key, message.value, None, (*own, *message.headers))
