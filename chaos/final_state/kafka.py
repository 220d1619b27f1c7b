"""Dumps Kafka: all records as both isolation levels show them, and the ends of the partitions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from outbox.kafka.log_reader import KafkaLogReader
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.messages.content_digest import content_digest
from outbox.messages.record import (
    BATCH,
    DECIDED_BY,
    MESSAGE_ID,
    PRODUCER_GROUP,
    REDRIVEN,
    TRANSACTION_ID,
    is_reserved,
)
from outbox.operators.message_view import header_value
from outbox.reconciliation.log import LogEnd

ISOLATIONS: Final = {"records": "read_committed", "uncommitted": "read_uncommitted"}
SCAN_SECONDS: Final = 180.0
"""How long Kafka may show no record before the ends are reached."""
POLL_SECONDS: Final = 0.5
AT_ONCE: Final = 1_000
ENDS: Final = {
    "start": LogEnd.START,
    "stable": LogEnd.LAST_STABLE,
    "end": LogEnd.HIGH_WATERMARK,
}
UNCOVERED: Final = frozenset({MESSAGE_ID, BATCH, DECIDED_BY, REDRIVEN})


def dump_kafka(folder: Path, bootstrap: str, topics: Mapping[str, int]) -> None:
    """Write the records, the ids that read_uncommitted readers see, and the watermarks."""
    ends = _watermarks(bootstrap, topics)
    (folder / "watermarks.json").write_text(json.dumps(ends, indent=1))
    data = {place: end for place, end in ends.items() if not place.startswith(PROGRESS_TOPIC)}
    for name, isolation in ISOLATIONS.items():
        describe = _record if name == "records" else _identity
        with (folder / f"{name}.jsonl").open("w") as file:
            for message in _scan(bootstrap, data, isolation):
                file.write(json.dumps(describe(message), separators=(",", ":")) + "\n")


def _watermarks(bootstrap: str, topics: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return log start, last stable offset and high watermark of each ``topic/partition``."""
    facts = KafkaLogReader(bootstrap)
    places = facts.partitions([*topics, PROGRESS_TOPIC])
    found = {name: facts.offsets(places, end).offsets for name, end in ENDS.items()}
    return {
        f"{place.topic}/{place.number}": {name: found[name][place] for name in ENDS}
        for place in places
    }


def _config(bootstrap: str, isolation: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": "chaos-leftovers",
        "isolation.level": isolation,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "log_level": 0,
    }


def _scan(
    bootstrap: str, ends: Mapping[str, Mapping[str, int]], isolation: str
) -> Iterator[Message]:
    """Yield every record below the ends. Raises TimeoutError if none comes before that."""
    left: set[Any] = {_place(name) for name, end in ends.items() if end["end"] > end["start"]}
    consumer = Consumer(_config(bootstrap, isolation))
    consumer.assign(
        [TopicPartition(topic, part, ends[f"{topic}/{part}"]["start"]) for topic, part in left]
    )
    deadline = monotonic() + SCAN_SECONDS
    try:
        while left:
            if monotonic() > deadline:
                raise TimeoutError(f"{isolation}: the ends of {sorted(left)} are not reached")
            for message in consumer.consume(AT_ONCE, POLL_SECONDS):
                error = message.error()
                deadline = monotonic() + SCAN_SECONDS
                if error is None:
                    yield message
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                else:
                    left.discard((message.topic(), message.partition()))
    finally:
        consumer.close()


def _place(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("/")
    return topic, int(partition)


def _identity(message: Any) -> dict[str, Any]:
    headers = dict(message.headers() or ())
    found = headers.get(MESSAGE_ID)
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "id": found.decode() if found else None,
    }


def _record(message: Any) -> dict[str, Any]:
    encoded = message.headers() or ()
    headers = {name: value.decode() for name, value in encoded if is_reserved(name)}
    value, key = message.value(), message.key()
    callers = [[name, header_value(value)] for name, value in encoded if not is_reserved(name)]
    covered = [pair for pair in encoded if pair[0] not in UNCOVERED]
    message_id = headers.get(MESSAGE_ID, "").encode()
    return {
        **_identity(message),
        "tx": headers.get(TRANSACTION_ID),
        "producer_group": headers.get(PRODUCER_GROUP),
        "key": None if key is None else key.hex(),
        "sha": None if value is None else hashlib.sha256(value).hexdigest(),
        "headers": hashlib.sha256(json.dumps(callers, separators=(",", ":")).encode()).hexdigest(),
        "content_digest": content_digest(message_id, message.topic(), key, value, covered),
    }
