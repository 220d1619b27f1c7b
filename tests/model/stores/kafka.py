"""The model's Kafka: two transactional ids, their coordinator, the data topic, the progress log.

The shard uses the second id once it has left the first. An EndTxn frame names transactional id,
producer id and epoch, not which transaction: a second copy of one ends whatever is open when it
arrives, unless the epoch has moved on. Which relay holds the handle of an epoch is kept beside this
value, in the world.
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


class Id(NamedTuple):
    """A transactional id."""

    open: Open | None = None
    frame: bool = False
    """An EndTxn(commit) of the current epoch is still in the network."""
    old_frame: bool = False
    """An EndTxn(commit) of an earlier epoch is still in the network."""


class Broker(NamedTuple):
    """The part of Kafka that one shard can change."""

    ids: tuple[Id, ...] = (Id(), Id())
    data: tuple[Record, ...] = ()
    """The records that a read_committed consumer reads."""
    progress: tuple[Manifest | None, ...] = ()
    """The progress log by offset; None is a marker or an aborted manifest."""

    @property
    def manifests(self) -> tuple[Found, ...]:
        """The committed manifests, by offset."""
        return tuple(
            found(offset, manifest)
            for offset, manifest in enumerate(self.progress)
            if manifest is not None and offset not in self._waiting
        )

    @property
    def stable(self) -> int:
        """The last stable offset of the progress log: read_committed ends here."""
        return min(self._waiting, default=len(self.progress))

    @property
    def _waiting(self) -> list[int]:
        """The offsets of manifests of open transactions."""
        return [
            each.open.manifest_at for each in self.ids if each.open and each.open.manifest_at >= 0
        ]

    def with_id(self, number: int, **fields: object) -> Broker:
        """Return this Kafka with changed fields of an id."""
        changed = self.ids[number]._replace(**fields)  # type: ignore[arg-type]
        return self._replace(ids=(*self.ids[:number], changed, *self.ids[number + 1 :]))


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


def produce(broker: Broker, number: int, records: tuple[Record, ...]) -> Broker:
    """Append data records to the open transaction of an id, which begins with the first one."""
    if not records:
        return broker
    now = broker.ids[number].open or Open()
    return broker.with_id(number, open=now._replace(records=now.records + records))


def produce_manifest(broker: Broker, number: int, manifest: Manifest) -> Broker:
    """Append the manifest to the open transaction of an id."""
    now = broker.ids[number].open or Open()
    begun = broker.with_id(number, open=now._replace(manifest_at=len(broker.progress)))
    return begun._replace(progress=(*broker.progress, manifest))


def end_transaction(broker: Broker, number: int) -> Broker:
    """Commit the open transaction of an id, if any: the coordinator answers OK either way."""
    ended = broker.ids[number].open
    if ended is None:
        return broker
    after = broker.with_id(number, open=None)._replace(data=broker.data + ended.records)
    if ended.manifest_at >= 0:
        after = after._replace(progress=(*after.progress, None))
    return after


def abort(broker: Broker, number: int) -> Broker:
    """Abort the open transaction of an id and raise its epoch: after a fence or a timeout."""
    ended, frame, old_frame = broker.ids[number]
    aged = broker.with_id(number, open=None, frame=False, old_frame=old_frame or frame)
    if ended is None or ended.manifest_at < 0:
        return aged
    before, after = broker.progress[: ended.manifest_at], broker.progress[ended.manifest_at + 1 :]
    return aged._replace(progress=(*before, None, *after, None))
