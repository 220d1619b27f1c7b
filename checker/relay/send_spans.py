"""The spans of records that the relay sends. Used only when tracing is on.

A record whose prepare was not recorded has none, so sampling at the prepare limits these too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from outbox.clock import Clock
from outbox.messages.message_id import message_id_text
from outbox.messages.record import Committed
from outbox.relay.protocol.answers import DeliveryReport

if TYPE_CHECKING:
    from outbox.telemetry.spans import Spans

RECORDED: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f][13579bdf]")
"""A trace context whose span is recorded. SQL mode stores any text."""
NANOSECONDS: Final = 1_000_000_000


class SendSpans:
    """Records one span for each record, when its outcome is known."""

    def __init__(self, spans: Spans, clock: Clock) -> None:
        self._spans = spans
        self._clock = clock

    def sent(self, messages: Sequence[Committed], delivery: DeliveryReport, seconds: float) -> None:
        """Record what Kafka has acknowledged, ``seconds`` after its transaction began."""
        ended = round(self._clock.now().timestamp() * NANOSECONDS)
        started = ended - round(seconds * NANOSECONDS)
        places = zip(messages, delivery.partitions, delivery.offsets, strict=True)
        for message, partition, offset in places:
            if not _is_recorded(message.traceparent):
                continue
            facts = {
                "messaging.destination.partition.id": str(partition),
                "messaging.kafka.offset": offset,
            }
            self._start(message, started, facts).end(ended)

    def refused(self, message: Committed, error: str) -> None:
        """Record a record that Kafka refuses, with Kafka's error."""
        if _is_recorded(message.traceparent):
            now = round(self._clock.now().timestamp() * NANOSECONDS)
            span = self._start(message, now, {})
            self._spans.fail(span, error)
            span.end()

    def _start(self, message: Committed, started: int, facts: dict[str, Any]) -> Any:
        assert message.traceparent is not None
        return self._spans.producer(
            f"send {message.topic}",
            message.traceparent,
            {
                "messaging.operation.name": "send",
                "messaging.operation.type": "send",
                "messaging.destination.name": message.topic,
                "messaging.message.id": message_id_text(message.half_id, message.nonce),
                "outbox.producer_group": message.producer_group,
                **facts,
            },
            started,
        )


def _is_recorded(traceparent: str | None) -> bool:
    return traceparent is not None and RECORDED.fullmatch(traceparent) is not None
