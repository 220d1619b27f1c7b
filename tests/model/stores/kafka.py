"""The model's Kafka: one transactional id, its coordinator, the data topic and the progress log.

An EndTxn frame names transactional id, producer id and epoch, not which transaction: a second copy
of one ends whatever is open when it arrives, unless the epoch has moved on. Which relay holds the
handle of the current epoch is kept beside this value, in the world.

A marker may be skipped for the data partition or for the progress log: the coordinator has closed
the transaction, and the log has not. What hangs there takes the result of the next marker.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Flag, auto
from functools import cache
from typing import NamedTuple

from outbox.messages.manifest import Manifest, crc_of, encode
from outbox.relay.protocol.state import Found


class Record(NamedTuple):
    """A data record: the message and its place, as in the header ``outbox_batch``."""

    message: int
    batch_no: int
    place: int


class Open(NamedTuple):
    """The open transaction of the coordinator."""

    records: tuple[Record, ...] = ()
    manifest_at: int = -1
    heals: bool = False
    """It has a record without a message in the data partition."""
    gone: frozenset[int] = frozenset()
    """The messages whose records went with the data topic."""

    @property
    def has_data(self) -> bool:
        """Whether it has written to the data partition, which gets its marker then."""
        return self.heals or bool(self.records)


class Skip(Flag):
    """The logs for which the coordinator skips the markers of a transaction."""

    NOTHING = 0
    DATA = auto()
    PROGRESS = auto()


class Broker(NamedTuple):
    """The part of Kafka that one shard can change."""

    open: Open | None = None
    frame: bool = False
    """An EndTxn(commit) of the current epoch is still in the network."""
    old_frame: bool = False
    """An EndTxn(commit) of an earlier epoch is still in the network."""
    data: tuple[Record, ...] = ()
    """The records that a read_committed consumer reads."""
    progress: tuple[Manifest | None, ...] = ()
    """The progress log by offset; None is a marker or an aborted manifest."""
    hanging: tuple[Record, ...] = ()
    """Records of ended transactions that the data partition has not closed."""
    hanging_at: int = -1
    """The first manifest of an ended transaction that the progress log has not closed."""
    aborted: frozenset[int] = frozenset()
    """Offsets of aborted manifests that a read_uncommitted reader sees; kept after a skip."""
    skipped: bool = False
    """A marker was skipped once: records and manifests may differ until a repair."""
    former: tuple[Record, ...] = ()
    """The records that such a reader has read in the data topic before it was deleted."""
    gone: frozenset[int] = frozenset()
    """The messages of committed transactions whose records went with that topic."""

    @property
    def hangs(self) -> bool:
        """Whether a log is not closed for a transaction that has ended."""
        return bool(self.hanging) or self.hanging_at >= 0

    @property
    def manifests(self) -> tuple[Found, ...]:
        """The manifests that are committed or hang, by offset."""
        waiting = self.open.manifest_at if self.open else -1
        return tuple(
            found(offset, manifest)
            for offset, manifest in enumerate(self.progress)
            if manifest is not None and offset != waiting and offset not in self.aborted
        )

    @property
    def stable(self) -> int:
        """The last stable offset of the progress log: read_committed ends here."""
        if self.hanging_at >= 0:
            return self.hanging_at
        if self.open and self.open.manifest_at >= 0:
            return self.open.manifest_at
        return len(self.progress)


def all_manifests(broker: Broker, first: int, end: int) -> Iterator[Found]:
    """Yield the manifests of a range, whatever became of their transactions."""
    for offset, manifest in enumerate(broker.progress[first:end], first):
        if manifest is not None:
            yield found(offset, manifest)


def found(offset: int, manifest: Manifest) -> Found:
    """Return a manifest as the relay reads it back."""
    return Found(offset, manifest, _crc(manifest))


@cache
def _crc(manifest: Manifest) -> int:
    return crc_of(encode(manifest))


def produce(broker: Broker, records: tuple[Record, ...]) -> Broker:
    """Append data records to the open transaction, which begins with the first one."""
    if not records:
        return broker
    now = broker.open or Open()
    return broker._replace(open=now._replace(records=now.records + records))


def produce_manifest(broker: Broker, manifest: Manifest) -> Broker:
    """Append the manifest to the open transaction."""
    now = broker.open or Open()
    return broker._replace(
        open=now._replace(manifest_at=len(broker.progress)),
        progress=(*broker.progress, manifest),
    )


def produce_healing(broker: Broker) -> Broker:
    """Append a record without a message to the data partition."""
    return broker._replace(open=(broker.open or Open())._replace(heals=True))


def replace_topic(broker: Broker) -> Broker:
    """Delete the data topic and create it again: all of its records are gone."""
    lost, ended = broker.data + broker.hanging, broker.open
    if ended is not None:
        taken = ended.gone.union(record.message for record in ended.records)
        ended = ended._replace(records=(), heals=False, gone=taken)
    return broker._replace(
        open=ended,
        data=(),
        hanging=(),
        former=broker.former + broker.data,
        gone=broker.gone.union(record.message for record in lost),
    )


def end_transaction(broker: Broker, skip: Skip = Skip.NOTHING) -> Broker:
    """Commit the open transaction, if there is one: the coordinator answers OK either way."""
    ended = broker.open
    if ended is None:
        return broker
    after = _skipped(broker._replace(gone=broker.gone | ended.gone), ended, skip)
    if ended.has_data and Skip.DATA not in skip:
        visible = after.data + after.hanging + ended.records
        after = after._replace(data=visible, hanging=())
    if ended.manifest_at >= 0 and Skip.PROGRESS not in skip:
        after = after._replace(progress=(*after.progress, None), hanging_at=-1)
    return after


def abort(broker: Broker, skip: Skip = Skip.NOTHING) -> Broker:
    """Abort the open transaction and raise the epoch: after a fence or a timeout."""
    ended = broker.open
    aged = broker._replace(open=None, frame=False, old_frame=broker.old_frame or broker.frame)
    if ended is None:
        return aged
    after = _skipped(aged, ended, skip)
    if ended.has_data and Skip.DATA not in skip:
        after = after._replace(hanging=())
    if ended.manifest_at >= 0 and Skip.PROGRESS not in skip:
        first = ended.manifest_at if after.hanging_at < 0 else after.hanging_at
        after = _without_manifests(after, first)._replace(hanging_at=-1)
    return after


def _without_manifests(broker: Broker, first: int) -> Broker:
    """Abort the manifests from an offset on, and append the marker."""
    tail = broker.progress[first:]
    if not broker.skipped:
        return broker._replace(progress=(*broker.progress[:first], *(None for _ in tail), None))
    gone = (at for at, manifest in enumerate(tail, first) if manifest is not None)
    return broker._replace(progress=(*broker.progress, None), aborted=broker.aborted.union(gone))


def _skipped(broker: Broker, ended: Open, skip: Skip) -> Broker:
    """Close the transaction at the coordinator; leave it open where a marker is skipped."""
    after = broker._replace(open=None, skipped=broker.skipped or skip is not Skip.NOTHING)
    if Skip.DATA in skip:
        after = after._replace(hanging=after.hanging + ended.records)
    if Skip.PROGRESS in skip and ended.manifest_at >= 0 and after.hanging_at < 0:
        after = after._replace(hanging_at=ended.manifest_at)
    return after


def skips(broker: Broker) -> tuple[Skip, ...]:
    """Return the ways in which the markers of the open transaction may be skipped."""
    ended = broker.open or Open()
    data = (Skip.DATA,) if ended.has_data else ()
    progress = (Skip.PROGRESS,) if ended.manifest_at >= 0 else ()
    return (*data, *progress, *((Skip.DATA | Skip.PROGRESS,) if data and progress else ()))
