"""Live readers of the data topics: what consumers received during the faults."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition

from chaos.history.recovery import Recoveries
from chaos.history.writer import HistoryWriter
from outbox.messages.message_id import parse_message_id, shard_in

POLL_SECONDS: Final = 0.1
MOST: Final = 500
STOP_SECONDS: Final = 10.0


class LiveReader:
    """A consumer in a thread that records every received record in order."""

    def __init__(
        self,
        bootstrap: str,
        topics: Mapping[str, int],
        run: Any,
        *,
        committed: bool,
        recoveries: Recoveries | None = None,
    ) -> None:
        """Prepare the reader; it begins at the first record of each partition."""
        self.name = "committed" if committed else "uncommitted"
        self.seen = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"chaos-{self.name}",
                "isolation.level": f"read_{self.name}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 50,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self._places = [
            TopicPartition(topic, number, 0)
            for topic, partitions in topics.items()
            for number in range(partitions)
        ]
        self._history = HistoryWriter(run, f"reader-{self.name}")
        self._recoveries = recoveries
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name=self.name, daemon=True)

    def start(self) -> None:
        """Start reading."""
        places = [[place.topic, place.partition] for place in self._places]
        self._history.write("assigned", "ok", reader=self.name, places=places)
        self._consumer.assign(self._places)
        self._thread.start()

    def stop(self) -> None:
        """End reading, also if librdkafka waits for a killed broker for ever when it closes."""
        self._stop.set()
        self._thread.join(STOP_SECONDS)
        closing = threading.Thread(target=self._consumer.close, name="closing", daemon=True)
        closing.start()
        closing.join(STOP_SECONDS)
        self._history.close()

    def _read(self) -> None:
        while not self._stop.is_set():
            messages = self._consumer.consume(MOST, POLL_SECONDS)
            records = [message for message in messages if message.error() is None]
            if records:
                self._note(records)

    def _note(self, records: Iterable[Any]) -> None:
        by_topic: dict[str, list[list[Any]]] = defaultdict(list)
        for record in records:
            message_id = _message_id(record.headers() or ())
            by_topic[record.topic()].append([record.partition(), record.offset(), message_id])
        for topic, recs in by_topic.items():
            self._history.write("read", "ok", reader=self.name, topic=topic, recs=recs)
            self.seen += len(recs)
        if self._recoveries is not None:
            ids = (message_id for recs in by_topic.values() for _, _, message_id in recs)
            self._recoveries.record_records({_shard(each) for each in ids if each})


def _message_id(headers: Iterable[tuple[str, bytes]]) -> str | None:
    for name, value in headers:
        if name == "outbox_message_id":
            return value.decode()
    return None


def _shard(message_id: str) -> int:
    return shard_in(parse_message_id(message_id)[0])
