"""The manifest: the last record of a Kafka transaction; it lists every message of its batch.

It is the value of a record of ``outbox.progress``, partition = shard, in network byte order. Spark
reads the prefix by column expressions (``substring(value, offset + 1, size)``), so the layout is a
contract; a change is a new version.

====== ==== ==========================================================================
offset size field
====== ==== ==========================================================================
0      1    version, 1
1      16   installation, the UUID created by the first migration
17     2    shard
19     8    gen: counts the owners of the shard, never falls; the upper half is the number of
            the transactional id
27     1    kind: 1 batch, 2 release, 3 repair
28     8    batch_no: +1 from manifest to manifest of a shard
36     4    prev_crc: the crc of the previous manifest, 0 for the first
40     8    from.xid   (the batch starts after ``from``
48     4    from.n      and includes ``to``)
52     8    to.xid
60     4    to.n
64     4    number of entries
68     4    number of entries with status P
72     17 n entries in order: message id (16) and status (1), ASCII P, S or K
72+17n 4    crc: CRC-32 (zlib) over all bytes before it
====== ==== ==========================================================================

Pure: no I/O, no clock.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple
from uuid import UUID
from zlib import crc32

from outbox.errors import InvalidManifest

VERSION: Final = 1
PREFIX: Final = struct.Struct(">B16sHQBQIQIQIII")
"""The fixed-width prefix before the entries."""
ENTRY_BYTES: Final = 17
MAX_ENTRIES: Final = 4096

_CRC: Final = struct.Struct(">I")

PUBLISHED: Final = b"P"
"""The record is in this Kafka transaction."""
PUBLISHED_BEFORE: Final = b"S"
"""Kafka already had the record when this batch was read; nothing was produced."""
HELD: Final = b"K"
"""Kafka refuses the record, or it waits behind a refused one."""

_KINDS: Final = frozenset((1, 2, 3))
_STATUSES: Final = frozenset(PUBLISHED + PUBLISHED_BEFORE + HELD)


class Position(NamedTuple):
    """The progress of a shard: the first ``n`` ids of the commit log row ``xid`` are done."""

    xid: int
    n: int


START: Final = Position(0, 0)


class Kind(IntEnum):
    """The kind of a manifest."""

    BATCH = 1
    """The next range of the commit log; an empty one shows that the shard is alive."""
    RELEASE = 2
    """Held records that Kafka accepts again; its range is empty."""
    REPAIR = 3
    """Records that an operator ordered to publish again; its range is empty."""


class Entry(NamedTuple):
    """One message of a batch: the 16 bytes of its message id, and its status."""

    message_id: bytes
    status: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The content of one Kafka transaction of a shard."""

    installation: UUID
    shard: int
    gen: int
    kind: Kind
    batch_no: int
    prev_crc: int
    after: Position
    """``from``: the end of the previous batch."""
    to: Position
    entries: tuple[Entry, ...]

    @property
    def published(self) -> tuple[bytes, ...]:
        """The message ids whose records are in this transaction, in order."""
        return tuple(entry.message_id for entry in self.entries if entry.status == PUBLISHED)


def encode(manifest: Manifest) -> bytes:
    """Return the bytes of a manifest. Raises ValueError for more than MAX_ENTRIES entries."""
    entries = manifest.entries
    if len(entries) > MAX_ENTRIES:
        raise ValueError(f"{len(entries)} entries are more than {MAX_ENTRIES}")
    prefix = PREFIX.pack(
        *(VERSION, manifest.installation.bytes, manifest.shard, manifest.gen, manifest.kind),
        *(manifest.batch_no, manifest.prev_crc, *manifest.after, *manifest.to),
        *(len(entries), len(manifest.published)),
    )
    body = prefix + b"".join([message_id + status for message_id, status in entries])
    return body + _CRC.pack(crc32(body))


def decode(value: bytes) -> Manifest:
    """Read a manifest. Raises InvalidManifest for bytes that ``encode`` cannot return."""
    crc_of(value)
    (version, installation, shard, gen, kind, batch_no, prev_crc, *rest) = PREFIX.unpack_from(value)
    from_xid, from_n, to_xid, to_n, count, published = rest
    if version != VERSION:
        raise InvalidManifest(f"version {version} is not known")
    entries = _split(value, count)
    if kind not in _KINDS or sum(entry.status == PUBLISHED for entry in entries) != published:
        raise InvalidManifest("its prefix is contradictory")
    return Manifest(
        installation=UUID(bytes=installation),
        shard=shard,
        gen=gen,
        kind=Kind(kind),
        batch_no=batch_no,
        prev_crc=prev_crc,
        after=Position(from_xid, from_n),
        to=Position(to_xid, to_n),
        entries=entries,
    )


def crc_of(value: bytes) -> int:
    """Return the crc at the end of a manifest. Raises InvalidManifest if it is wrong."""
    if len(value) < PREFIX.size + _CRC.size:
        raise InvalidManifest(f"{len(value)} bytes are too few")
    (crc,) = _CRC.unpack_from(value, len(value) - _CRC.size)
    if crc != crc32(memoryview(value)[: -_CRC.size]):
        raise InvalidManifest("its checksum differs")
    return int(crc)


def _split(value: bytes, count: int) -> tuple[Entry, ...]:
    end = PREFIX.size + count * ENTRY_BYTES
    if count > MAX_ENTRIES or len(value) != end + _CRC.size:
        raise InvalidManifest(f"{len(value)} bytes are not those of {count} entries")
    starts = range(PREFIX.size, end, ENTRY_BYTES)
    if not _STATUSES.issuperset(value[PREFIX.size + ENTRY_BYTES - 1 : end : ENTRY_BYTES]):
        raise InvalidManifest("an entry has an unknown status")
    return tuple(Entry(value[at : at + 16], value[at + 16 : at + 17]) for at in starts)
