"""A topic with records of messages, written without a relay."""

from __future__ import annotations

from confluent_kafka import KafkaError, Message, Producer

from outbox.messages.record import MESSAGE_ID
from tests.fixtures_kafka import make_topic


class KafkaLog:
    """A topic of its own with one partition."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.topic = make_topic(bootstrap_servers, partitions=1)
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "log_level": 0})

    def write(self, message_id: str | None) -> tuple[str, int, int]:
        """Write a record, of a message if one is given; return topic, partition and offset."""
        offsets: list[int] = []

        def note(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            offsets.append(message.offset() or 0)

        headers: dict[str, str | bytes | None] = (
            {} if message_id is None else {MESSAGE_ID: message_id}
        )
        self._producer.produce(self.topic, b"v", partition=0, headers=headers, on_delivery=note)
        assert self._producer.flush(60) == 0
        return self.topic, 0, offsets[0]
