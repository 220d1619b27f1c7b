"""The rows of a small run as they were read: manifests and records, without keys and values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from xxhash import xxh64_intdigest

from outbox.errors import InvalidManifest
from outbox.messages.content_digest import SEED
from outbox.messages.manifest import PUBLISHED, Manifest, crc_of, decode
from outbox.messages.message_id import SHARDS, HalfId, parse_message_id
from outbox.messages.record import PRODUCER_GROUP
from outbox.reconciliation.log import LogRecord, Partition
from spark.columns.digest import LEADING
from spark.columns.slot import MESSAGE_ID
from spark.cut.checkpoint import Mark
from spark.cut.log_history import digest_of
from spark.even.murmur2 import home_of

HEADERS: Final = (*LEADING, PRODUCER_GROUP)
"""The first headers of a record that the relay publishes for the first time."""
OUR_ID: Final = re.compile(MESSAGE_ID)
BATCH: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,18})\.([0-9]{1,9})")
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MOST_BYTES: Final = 256 << 20
"""Of keys and values: Spark reads more than that faster."""


class Uneven(Exception):
    """Something new is not as it must be at sight: Spark has to judge it."""


class ListedManifest(NamedTuple):
    """A manifest at its offset, with its checksum."""

    offset: int
    crc: int
    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRecord:
    """A record of a batch that was published in turn; the names are those of Spark's frames."""

    half_id: HalfId
    message_id: str
    topic: str
    partition: int
    offset: int
    published_at: datetime
    shard: int
    batch_no: int
    index: int
    digest: int
    key_hash: int | None
    home: int | None
    producer_group: str

    @property
    def place(self) -> Partition:
        """The partition that it is in."""
        return Partition(self.topic, self.partition)

    @property
    def slot(self) -> tuple[int, int, int]:
        """The place that it claims: shard, batch and index."""
        return self.shard, self.batch_no, self.index


def listed_manifests(
    found: Iterable[LogRecord], marks: Mapping[int, Mark], most: int
) -> dict[int, list[ListedManifest]]:
    """Return the manifests by shard, in order.

    Raises Uneven unless all are intact, and those after the known ones, which ``marks`` name by
    shard, list at most ``most`` messages, each of them as published.
    """
    listed: dict[int, list[ListedManifest]] = {}
    messages = 0
    for each in found:
        try:
            manifest = decode(each.value or b"")
            of_shard = listed.setdefault(each.partition.number, [])
            of_shard.append(ListedManifest(each.offset, crc_of(each.value or b""), manifest))
        except InvalidManifest as error:
            raise Uneven(f"no manifest at {_place(each)}: {error}") from None
        mark = marks.get(each.partition.number)
        if mark is not None and each.offset <= mark.offset:
            continue
        messages += len(manifest.entries)
        if messages > most or any(entry.status != PUBLISHED for entry in manifest.entries):
            raise Uneven(f"the manifest at {_place(each)} lists too many, or not as published")
    return listed


def plain_records(found: Iterable[LogRecord]) -> Iterator[PlainRecord]:
    """Yield what a run keeps of each record.

    Raises Uneven unless each has the headers of the relay, and for more than MOST_BYTES.
    """
    size = 0
    for each in found:
        size += len(each.key or b"") + len(each.value or b"")
        if size > MOST_BYTES:
            raise Uneven(f"the new records have more than {MOST_BYTES >> 20} MiB")
        yield _plain_record(each)


def _plain_record(found: LogRecord) -> PlainRecord:
    names = tuple(name for name, _ in found.headers[: len(HEADERS)])
    texts = [(value or b"").decode(errors="replace") for _, value in found.headers[: len(HEADERS)]]
    batch = BATCH.fullmatch(texts[1]) if names == HEADERS else None
    if batch is None or not OUR_ID.fullmatch(texts[0]):
        raise Uneven(f"the record at {_place(found)} was not published in turn")
    try:
        published_at = EPOCH + timedelta(milliseconds=found.written_at_ms)
    except OverflowError:
        raise Uneven(f"the record at {_place(found)} has an impossible time") from None
    shard, batch_no, index = map(int, batch.groups())
    hashed = None if found.key is None else xxh64_intdigest(found.key, SEED)
    return PlainRecord(
        half_id=parse_message_id(texts[0])[0],
        message_id=texts[0],
        topic=found.partition.topic,
        partition=found.partition.number,
        offset=found.offset,
        published_at=published_at,
        shard=shard,
        batch_no=batch_no,
        index=index,
        digest=digest_of(found),
        key_hash=hashed if hashed is None or hashed >> 63 == 0 else hashed - (1 << 64),
        home=None if found.key is None else home_of(found.key),
        producer_group=texts[3],
    )


def is_ahead(record: PlainRecord, cuts: Mapping[int, int], newest: Mapping[int, int]) -> bool:
    """Return whether a record is of a batch after its shard's cut that can be in the log.

    By shard, ``cuts`` is the last batch to judge, and ``newest`` the last one that can be there.
    """
    own_shard = record.shard % SHARDS == record.half_id & (SHARDS - 1)
    after, last = cuts.get(record.shard, 0), newest.get(record.shard, 0)
    return own_shard and after < record.batch_no <= last


def _place(found: LogRecord) -> str:
    return f"{found.partition.topic}/{found.partition.number}, offset {found.offset}"
