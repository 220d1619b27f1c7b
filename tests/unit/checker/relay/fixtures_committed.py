"""Committed messages of a shard, and a producer for them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from outbox.kafka.publisher import KafkaPublisher
from outbox.messages.message_id import HalfId, Nonce
from outbox.messages.record import Committed, Record, digest_in, record_of
from outbox.relay.protocol.answers import THIS_CLOCK, DeliveryReport

SHARD = 3


def message_of(xid: int) -> Committed:
    """Return the one message of a transaction."""
    half_id = HalfId(xid << 15 | SHARD)
    made = Committed(
        *(half_id, Nonce(7), "producer", "billing", None, "invoices", None, b"v", None),
        *(None, None, (), 0),
    )
    return made._replace(content_digest=digest_in(record_of(made, "")))


class AcceptingPublisher(KafkaPublisher):
    """The producer of a shard whose records Kafka accepts."""

    def __init__(self) -> None:
        self.at_ms = THIS_CLOCK
        """The time of the records."""
        self.served = 0

    def fence(self, installation: UUID, *_: float) -> None:
        """Do nothing: there is no other producer."""

    def begin(self) -> None:
        """Do nothing: each call of publish is a transaction."""

    def publish(
        self,
        records: Sequence[Record],
        manifest: bytes,
        at_ms: int = THIS_CLOCK,
        *,
        apart: bool = False,
    ) -> DeliveryReport:
        """Report all as delivered."""
        self.at_ms, places = at_ms, [0] * len(records)
        return DeliveryReport(len(records), offset=0, partitions=places, offsets=places)

    def commit(self) -> None:
        """Do nothing: what was published stays."""

    def serve(self) -> None:
        """Count the call."""
        self.served += 1
