"""The model's PostgreSQL: flushes take xids, commit or abort, and the WAL's tail may be lost.

Only what one shard of the relay can see. Message ids are small numbers, given out in the order in
which their first flush begins. Every function is pure; a write that the relay or a client makes is
one database transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from outbox.messages.manifest import Position
from outbox.relay.protocol.state import Cursor, HaltReason, Identity, Progress, first_gen, number_of

Ids = tuple[int, ...]
IDENTITY = Identity("cluster", "topic", "pg")


class Flush(NamedTuple):
    """An open transaction that decides messages: it has its xid, and is not visible yet."""

    xid: int
    ids: Ids
    commit: bool


class Held(NamedTuple):
    """A row of ``held_record``: a message that Kafka refuses, or that waits behind one."""

    at: Position
    message: int
    refused: bool
    """Kafka refused this record itself."""
    released: bool = False


class Database(NamedTuple):
    """The durable data, and the open flushes."""

    next_xid: int = 1
    tails_lost: int = 0
    open: tuple[Flush, ...] = ()
    halves: int = 0
    """The number of prepared messages, which are the first ones."""
    forgotten: frozenset[int] = frozenset()
    """Among these, the prepares that were lost with a tail."""
    commit_log: tuple[tuple[int, Ids], ...] = ()
    """Rows (xid, ids) by xid."""
    rolled_back: frozenset[int] = frozenset()
    already_published: frozenset[int] = frozenset()
    held: tuple[Held, ...] = ()
    """By position. All messages have one key, so there is one scope."""
    row: Progress | None = None

    @property
    def committed(self) -> frozenset[int]:
        """The ids with op COMMIT."""
        return frozenset(i for _, ids in self.commit_log for i in ids)

    @property
    def watermark(self) -> int:
        """Every xid below it has ended."""
        return min((flush.xid for flush in self.open), default=self.next_xid)

    def has_half(self, message: int) -> bool:
        """Return whether the message is stored, decided or not."""
        return message < self.halves and message not in self.forgotten


def positions(database: Database, after: Position) -> Iterator[tuple[Position, int]]:
    """Yield the commit log after a position, in order."""
    for xid, ids in database.commit_log:
        for n, message in enumerate(ids, 1):
            if (xid, n) > after:
                yield Position(xid, n), message


def undecided(database: Database) -> Ids:
    """Return the stored messages that are neither decided nor part of an open flush."""
    taken = database.committed | database.rolled_back
    taken |= {i for flush in database.open for i in flush.ids}
    return tuple(i for i in range(database.halves) if database.has_half(i) and i not in taken)


def begin(database: Database, ids: Ids, *, commit: bool) -> Database:
    """Begin a flush; messages that are new are prepared just before it."""
    flush = Flush(database.next_xid, ids, commit)
    return database._replace(
        next_xid=flush.xid + 1,
        open=(*database.open, flush),
        halves=max(database.halves, *(i + 1 for i in ids)),
    )


def end(database: Database, flush: Flush, *, committed: bool) -> Database:
    """Commit or abort an open flush."""
    rest = database._replace(open=tuple(f for f in database.open if f != flush))
    if not committed:
        return rest
    if not flush.commit:
        return rest._replace(rolled_back=rest.rolled_back | set(flush.ids))
    return rest._replace(commit_log=tuple(sorted((*rest.commit_log, (flush.xid, flush.ids)))))


def open_held(database: Database) -> tuple[Held, ...]:
    """Return the held rows that are not released, in commit order."""
    return tuple(row for row in database.held if not row.released)


def hold(database: Database, rows: Iterable[Held]) -> Database:
    """Add held rows; a message that has one keeps it."""
    known = {row.message for row in database.held}
    added = (row for row in rows if row.message not in known)
    return database._replace(held=tuple(sorted((*database.held, *added))))


def postpone(database: Database, message: int) -> Database:
    """Store that a held message was refused itself."""
    rows = (r._replace(refused=True) if r.message == message else r for r in database.held)
    return database._replace(held=tuple(rows))


def mark_released(database: Database, ids: Collection[int]) -> Database:
    """Mark the rows of messages that Kafka has."""
    rows = (r._replace(released=True) if r.message in ids else r for r in database.held)
    return database._replace(held=tuple(rows))


def owns(database: Database, gen: int) -> bool:
    """Return whether a generation is the stored one, and not halted."""
    row = database.row
    return bool(row and row.cursor and row.cursor.gen == gen and row.halt is None)


def save(database: Database, cursor: Cursor, *, begins: bool = False) -> Database | None:
    """Write the progress row; None when the stored one is ahead, of a newer owner, or halted.

    A generation ``begins`` once: then None also when another relay has started it.
    """
    stored = database.row.cursor if database.row else None
    if database.row and stored:
        halted = database.row.halt not in (None, HaltReason.REPLAY_STUCK)
        newer = stored.gen > cursor.gen - begins
        if newer or stored.batch_no > cursor.batch_no or halted:
            return None
    return database._replace(row=Progress(cursor, IDENTITY, None))


def leave_id(database: Database, gen: int) -> Database | None:
    """Store the next transactional id under a new generation; None if ``gen`` is not the stored."""
    row = database.row
    if row is None or row.cursor is None or row.cursor.gen != gen:
        return None
    later = row.cursor._replace(gen=first_gen(number_of(gen) + 1))
    return database._replace(row=row._replace(cursor=later))


def store_halt(database: Database, reason: HaltReason) -> Database:
    """Write the reason into the progress row, which may be missing."""
    row = database.row or Progress(None, None, None)
    if row.cursor and reason is HaltReason.CURSOR_MISSING:
        return database
    return database._replace(row=row._replace(halt=reason))


def recover(database: Database, ids: Ids, cursor: Cursor) -> Database | None:
    """Store a batch of Kafka: store the ids, commit the undecided among them, move the cursor.

    None when the cursor may not move; then nothing was written.
    """
    noted = database._replace(already_published=database.already_published | set(ids))
    noted = mark_released(noted, ids)
    return save(commit_undecided(noted, ids), cursor)


def commit_undecided(database: Database, ids: Ids) -> Database:
    """Commit those of the ids that are stored and undecided, in their order, as one row."""
    known = undecided(database)
    lacking = tuple(i for i in ids if i in known)
    if not lacking:
        return database
    flush = Flush(database.next_xid, lacking, commit=True)
    return end(database._replace(next_xid=flush.xid + 1), flush, committed=True)


def standby_of(database: Database) -> Database:
    """Return a standby that has replayed this database: xids are issued again."""
    xids = [xid for xid, _ in database.commit_log]
    return database._replace(open=(), next_xid=max(xids, default=0) + 1)


def promote(standby: Database, old: Database) -> Database:
    """Make the standby the primary; message ids given out since then are never given out again."""
    gone = frozenset(range(standby.halves, old.halves))
    return standby._replace(
        tails_lost=standby.tails_lost + 1,
        halves=old.halves,
        forgotten=standby.forgotten | gone,
    )
