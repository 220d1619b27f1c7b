"""The invariants of every world (I1, I2, I6, I8, I9, I10) and of every quiet one (I3).

Each function returns what is wrong, or None. ``lost`` are the messages whose COMMIT went with a
tail: they had been decided, and PostgreSQL has forgotten it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from outbox.messages.manifest import PUBLISHED, START, Kind, Manifest
from outbox.relay.protocol.state import Found, HaltReason, require
from tests.model.scene import named, numbers
from tests.model.stores.kafka import Broker, all_manifests
from tests.model.stores.postgres import Database, positions

Lost = frozenset[int]


Invariant = Callable[[Database, Broker, Lost], str | None]


class Wrong(NamedTuple):
    """A broken invariant: its name, and what breaks it."""

    name: str
    text: str


def wrong(
    database: Database, broker: Broker, lost: Lost, *, quiet: bool, only: Collection[str] = ()
) -> Wrong | None:
    """Return the first invariant that a world breaks; in a ``quiet`` one nothing is left to do.

    ``only`` names the invariants to check, all if it is empty.
    """
    for name, invariant in (*_ALWAYS, *(_QUIET if quiet else ())):
        if not only or name in only:
            text = invariant(database, broker, lost)
            if text:
                return Wrong(name, text)
    return None


def _once(_: Database, broker: Broker, __: Lost) -> str | None:
    seen = Counter(record.message for record in broker.data)
    doubled = tuple(message for message, times in seen.items() if times > 1)
    return f"{named(doubled)} has more than one record" if doubled else None


def _only_committed(database: Database, broker: Broker, lost: Lost) -> str | None:
    opened = (each.open.records for each in broker.ids if each.open)
    records = sum(opened, broker.data)
    decided = database.committed | lost
    wild = tuple(r.message for r in records if r.message not in decided)
    return f"{named(wild)} has a record and was never committed" if wild else None


def _in_order(database: Database, broker: Broker, lost: Lost) -> str | None:
    """Order by the commit log, which is stronger than order by acknowledgement."""
    place = {message: at for at, message in positions(database, START) if message not in lost}
    read = [record.message for record in broker.data if record.message in place]
    return None if read == sorted(read, key=place.__getitem__) else f"read in order {read}"


def _whole(_: Database, broker: Broker, __: Lost) -> str | None:
    listed = [
        (message, manifest.batch_no, index)
        for manifest in map(_manifest, broker.manifests)
        for index, (message_id, status) in enumerate(manifest.entries)
        if status == PUBLISHED
        for message in numbers((message_id,))
    ]
    if listed == list(broker.data):
        return None
    return f"the records {list(map(tuple, broker.data))} are not the P entries {listed}"


def _manifest(seen: Found) -> Manifest:
    return require(seen.manifest)


def _chained(_: Database, broker: Broker, __: Lost) -> str | None:
    last_no, last_crc, gen, seen = 0, 0, 0, set[bytes]()
    for found in broker.manifests:
        manifest = _manifest(found)
        if (manifest.batch_no, manifest.prev_crc) != (last_no + 1, last_crc):
            return f"batch {manifest.batch_no} does not follow batch {last_no}"
        if manifest.gen < gen or manifest.to < manifest.after:
            return f"batch {manifest.batch_no} goes back"
        if seen & set(manifest.published):
            return f"batch {manifest.batch_no} publishes again"
        last_no, last_crc, gen = manifest.batch_no, found.crc, manifest.gen
        seen |= set(manifest.published)
    return None


def _ranges(database: Database, broker: Broker, _: Lost) -> str | None:
    """Without a lost tail, ranges join and list exactly the commit log."""
    if database.tails_lost:
        return None
    at = START
    for manifest in map(_manifest, broker.manifests):
        if manifest.kind is not Kind.BATCH:
            if not manifest.after == manifest.to == at:
                return f"batch {manifest.batch_no} releases and has a range"
            continue
        ids = tuple(i for p, i in positions(database, manifest.after) if p <= manifest.to)
        if manifest.after != at or numbers(tuple(e.message_id for e in manifest.entries)) != ids:
            return f"batch {manifest.batch_no} is not the commit log of its range"
        at = manifest.to
    return None


def _passed(database: Database, broker: Broker, _: Lost) -> str | None:
    cursor = database.row.cursor if database.row else None
    if cursor is None:
        return None
    if cursor.manifest_offset > len(broker.progress):
        return "the cursor is beyond the manifests"
    below = all_manifests(broker, 0, cursor.manifest_offset)
    listed = {i for found in below for i in numbers(_manifest(found).published)}
    passed = {i for at, i in positions(database, START) if at <= cursor.position}
    held = {row.message for row in database.held if not row.released}
    skipped = tuple(sorted(passed - listed - held - database.already_published))
    return f"the position has passed {named(skipped)}, in no manifest" if skipped else None


def _not_halted(database: Database, _: Broker, __: Lost) -> str | None:
    halt = database.row.halt if database.row else None
    return None if halt in (None, HaltReason.REPLAY_STUCK) else f"{halt} is stored without a cause"


def _not_lost(database: Database, broker: Broker, _: Lost) -> str | None:
    missing = tuple(sorted(database.committed - {record.message for record in broker.data}))
    return f"{named(missing)} is committed and never published" if missing else None


def _decided(database: Database, broker: Broker, _: Lost) -> str | None:
    """A published message is decided, or PostgreSQL knows that it has lost the message."""
    read = {record.message for record in broker.data} - database.committed
    unknown = tuple(sorted(read - database.already_published))
    if unknown:
        return f"{named(unknown)} is published, and PostgreSQL does not know it"
    open_ends = read - database.rolled_back
    undecided = tuple(sorted(filter(database.has_half, open_ends)))
    return f"{named(undecided)} is published and still PREPARED" if undecided else None


_ALWAYS: Final[tuple[tuple[str, Invariant], ...]] = (
    ("I1", _once),
    ("I2", _only_committed),
    ("I6", _in_order),
    ("I8", _whole),
    ("I9", _chained),
    ("I9", _ranges),
    ("I10", _passed),
    ("HALT", _not_halted),
)
_QUIET: Final[tuple[tuple[str, Invariant], ...]] = (("I3", _not_lost), ("I2", _decided))
