"""Dumps Kafka: all records as both isolation levels show them, and every manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from outbox.errors import InvalidManifest
from outbox.kafka.log_reader import KafkaLogReader
from outbox.messages.content_digest import content_digest
from outbox.messages.manifest import crc_of, decode
from outbox.messages.record import (
    BATCH,
    DECIDED_BY,
    HEAL,
    MESSAGE_ID,
    PRODUCER_GROUP,
    REDRIVEN,
    TRANSACTION_ID,
    is_reserved,
)
from outbox.reconciliation.log import LogEnd

PROGRESS: Final = "outbox.progress"
ISOLATIONS: Final = {"records": "read_committed", "uncommitted": "read_uncommitted"}
FILES: Final = {isolation.removeprefix("read_"): name for name, isolation in ISOLATIONS.items()}
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
    """Write records, the ids that read_uncommitted readers see, manifests and watermarks."""
    ends = _watermarks(bootstrap, topics)
    (folder / "watermarks.json").write_text(json.dumps(ends, indent=1))
    data = {place: end for place, end in ends.items() if not place.startswith(f"{PROGRESS}/")}
    manifests = {place: end for place, end in ends.items() if place not in data}
    for name, isolation in ISOLATIONS.items():
        describe = _record if name == "records" else _identity
        _write(folder / f"{name}.jsonl", _scan(bootstrap, data, isolation), describe)
    _write(folder / "manifests.jsonl", _scan(bootstrap, manifests, "read_committed"), _manifest)


def records_of(run: Path, reader: str, topics: Collection[str]) -> int:
    """Return the number of records of these topics that a reader of this isolation can receive."""
    with (run / "leftovers" / f"{FILES[reader]}.jsonl").open() as file:
        return sum(1 for line in file if json.loads(line)["topic"] in topics)


def _write(path: Path, messages: Iterator[Message], describe: Any) -> None:
    with path.open("w") as file:
        for message in messages:
            file.write(json.dumps(describe(message), separators=(",", ":")) + "\n")


def _watermarks(bootstrap: str, topics: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return log start, last stable offset and high watermark of each ``topic/partition``."""
    facts = KafkaLogReader(bootstrap)
    places = facts.partitions([*topics, PROGRESS])
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
        "heal": HEAL in headers,
    }


def _record(message: Any) -> dict[str, Any]:
    pairs = [(name, value.decode()) for name, value in message.headers() or ()]
    headers, value, key = dict(pairs), message.value(), message.key()
    callers = [[name, text] for name, text in pairs if not is_reserved(name)]
    covered = [pair for pair in pairs if pair[0] not in UNCOVERED]
    message_id = headers.get(MESSAGE_ID, "")
    return {
        **_identity(message),
        "tx": headers.get(TRANSACTION_ID),
        "producer_group": headers.get(PRODUCER_GROUP),
        "decided_by": headers.get(DECIDED_BY),
        "batch": headers.get(BATCH),
        "key": None if key is None else key.hex(),
        "sha": None if value is None else hashlib.sha256(value).hexdigest(),
        "headers": hashlib.sha256(json.dumps(callers, separators=(",", ":")).encode()).hexdigest(),
        "content_digest": content_digest(message_id, message.topic(), key, value, covered),
    }


def _manifest(message: Any) -> dict[str, Any]:
    about: dict[str, Any] = {"shard": message.partition(), "offset": message.offset()}
    try:
        manifest = decode(message.value() or b"")
    except InvalidManifest as error:
        return {**about, "error": str(error)}
    return {
        **about,
        "named_shard": manifest.shard,
        "gen": manifest.gen,
        "kind": manifest.kind.name,
        "batch_no": manifest.batch_no,
        "prev_crc": manifest.prev_crc,
        "crc": crc_of(message.value()),
        "after": list(manifest.after),
        "to": list(manifest.to),
        "before": None if manifest.before is None else [list(run) for run in manifest.before],
        "entries": [[_uuid(entry.message_id), entry.status.decode()] for entry in manifest.entries],
    }


def _uuid(sixteen: bytes) -> str:
    digits = sixteen.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
