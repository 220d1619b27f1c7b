"""The model's Kafka: one transactional id, its coordinator, the data topic and the progress log.

An EndTxn frame names transactional id, producer id and epoch, not which transaction: a second copy
of one ends whatever is open when it arrives, unless the epoch has moved on. Which relay holds the
handle of the current epoch is kept beside this value, in the world.
"""

from __future__ import annotations

from collections.abc import Iterator
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

    @property
    def manifests(self) -> tuple[Found, ...]:
        """The committed manifests, by offset."""
        waiting = self.open.manifest_at if self.open else -1
        return tuple(
            found(offset, manifest)
            for offset, manifest in enumerate(self.progress)
            if manifest is not None and offset != waiting
        )

    @property
    def stable(self) -> int:
        """The last stable offset of the progress log: read_committed ends here."""
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


def end_transaction(broker: Broker) -> Broker:
    """Commit the open transaction, if there is one: the coordinator answers OK either way."""
    ended = broker.open
    if ended is None:
        return broker
    after = broker._replace(open=None, data=broker.data + ended.records)
    if ended.manifest_at >= 0:
        after = after._replace(progress=(*after.progress, None))
    return after


def abort(broker: Broker) -> Broker:
    """Abort the open transaction and raise the epoch: after a fence or a timeout."""
    ended = broker.open
    aged = broker._replace(open=None, frame=False, old_frame=broker.old_frame or broker.frame)
    if ended is None or ended.manifest_at < 0:
        return aged
    tail = broker.progress[ended.manifest_at :]
    before = broker.progress[: ended.manifest_at]
    return aged._replace(progress=(*before, *(None for _ in tail), None))
