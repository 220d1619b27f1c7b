"""Reads the next committed messages of a shard: ids from the commit log, contents by key.

Two statements per batch. Rows are left as tuples: one batch has 2 000 of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import takewhile
from typing import Any, Final

from outbox.errors import CommittedMessageGone
from outbox.messages.manifest import HELD, Entry, Kind, Manifest, Position
from outbox.messages.message_id import HalfId, message_id_bytes, split_message_id
from outbox.messages.record import Committed
from outbox.postgres.messages.half_rows import bounds, headers_if_whole
from outbox.postgres.relay.relay_session import RelaySession
from outbox.postgres.schema.codes import DECIDED_BY_OF_CODE
from outbox.postgres.sessions.connections import Connection, connect
from outbox.postgres.sessions.statements import load
from outbox.relay.protocol.answers import THIS_CLOCK, Commits, Compared

SQL: Final = load(__name__)
BATCH_BYTES: Final = 4 << 20
"""The most bytes of values that a batch reads, except for one larger value."""
GONE: Final = b""
"""The id of a message whose half is gone: no manifest has it."""
COMPARISONS: Final = 3
"""In SQL mode a producer's transaction that is just ending may lower the watermark for a moment."""

_ROWS_FIRST: Final = 64
_GROUP, _TOPIC, _KEY, _KNOWN = 3, 5, 6, 12
"""Places in a row of ``read_contents``."""

Row = Sequence[Any]
Range = tuple[int, int, Sequence[HalfId], float, bool]
"""A commit log row: its xid, how many of its ids are done, the remaining ids, its age (s), and
whether a caller waits."""


class CommitReader(RelaySession):
    """Reads batches of one shard; remembers names, and how many rows the last batch had.

    Methods raise DatabaseUnavailable when the session is lost; their results are void then.
    """

    def __init__(
        self,
        database_url: str,
        shard: int,
        *,
        batch_max: int,
        connect: Callable[[str, str], Connection] = connect,
    ) -> None:
        super().__init__(database_url, f"relay-{shard}", connect, SQL["limit_session"])
        self._shard = shard
        self._batch_max = batch_max
        self._rows = min(batch_max, _ROWS_FIRST)
        self._topics: dict[int, str] = {}
        self._groups: dict[int, str] = {}

    def read(self, after: Position, most: int | None = None) -> Commits:
        """Read what follows a position and is below the watermark, up to the batch's bounds.

        ``most`` bounds the messages further.
        Raises CommittedMessageGone when the row of the next message is missing.
        """
        ranges, clock_ms, ever_held, any_open = self._read_ranges(after)
        due = any_open and self._due_head(after) is not None
        bound = self._batch_max if most is None else min(most, self._batch_max)
        ids = [half_id for _, _, half_ids, *_ in ranges for half_id in half_ids][:bound]
        if not ids:
            return Commits(after, due=due, clock_ms=clock_ms)
        run = self._read_contents(ids)
        held, released = self._read_holds(run, ranges) if ever_held else ((), ())
        message_ids = tuple([message_id_bytes(row[0], row[1]) for row in run])
        pairs = list(zip(message_ids, run, strict=True))
        to, newest = _end_of(len(run), ranges)
        ages = (next(age for _, _, half_ids, age, _ in ranges if half_ids), newest)
        awaited = any(each[-1] for each in ranges)
        return Commits(
            to,
            message_ids,
            self._committed(run),
            before=frozenset([each for each, row in pairs if row[_KNOWN] or row[0] in released]),
            held=frozenset([each for each, row in pairs if row[0] in held]),
            due=due,
            awaited=awaited,
            ages=ages,
            clock_ms=clock_ms,
        )

    def read_held(self, upto: Position, most: int | None = None) -> Commits:
        """Read the first messages of a due scope, at or below a position, in commit order.

        A record that was itself refused is returned alone. Each has the message id under which it
        is held: if its row had another one since, the digest tells. Raises CommittedMessageGone.
        """
        bound = self._batch_max if most is None else min(most, self._batch_max)
        asked = {"head": self._due_head(upto), **upto._asdict(), "most": bound}
        scope = self._fetch("read_scope", asked)
        if not scope:  # nothing is due, or an operator has just dropped it
            return Commits(upto, kind=Kind.RELEASE)
        nonces = {half_id: nonce for half_id, nonce, *_ in scope}
        read = self._read_contents([*nonces])
        run = [(half_id, nonces[half_id], *rest) for half_id, _, *rest in read]
        *_, redriven, clock_ms = scope[0]
        ids = tuple([message_id_bytes(row[0], row[1]) for row in run])
        known = (each for each, row in zip(ids, run, strict=True) if row[_KNOWN])
        return Commits(
            upto,
            ids,
            self._committed(run),
            before=frozenset(known if redriven is None else ()),
            kind=Kind.RELEASE if redriven is None else Kind.REPAIR,
            redriven=redriven,
            clock_ms=clock_ms,
        )

    def compare(self, after: Position, manifest: Manifest) -> Compared:
        """Read the commit log's ids in (after, manifest.to] in one snapshot."""
        is_batch = manifest.kind is Kind.BATCH
        listed = [e for e in manifest.entries if e.status == HELD or not is_batch]
        asked = {
            "shard": self._shard,
            "from_xid": after.xid,
            "from_n": after.n,
            "to_xid": manifest.to.xid,
            "to_n": manifest.to.n,
            "held": _half_ids(listed),
            **bounds(_half_ids(manifest.entries)),
        }
        for _ in range(COMPARISONS):
            [(below, identified, held)] = self._fetch("compare", asked)
            if below:
                break
        message_ids = tuple(each.bytes if each else GONE for each in identified or ())
        return Compared(message_ids, below, frozenset(each.bytes for each in held or ()))

    def _read_holds(
        self, run: Sequence[Row], ranges: Iterable[Range]
    ) -> tuple[Collection[HalfId], Collection[HalfId]]:
        """Return which messages must be listed as held, and which were released."""
        positions = [
            (xid, done + n)
            for xid, done, half_ids, *_ in ranges
            for n in range(1, len(half_ids) + 1)
        ][: len(run)]
        asked = {
            "shard": self._shard,
            "half_ids": [row[0] for row in run],
            "topics": [row[_TOPIC] for row in run],
            "keys": [row[_KEY] for row in run],
            "xids": [xid for xid, _ in positions],
            "ns": [n for _, n in positions],
        }
        rows = self._fetch("read_holds", asked)
        held = {half_id for half_id, is_held, _ in rows if is_held}
        return held, {half_id for half_id, _, is_released in rows if is_released}

    def _due_head(self, upto: Position) -> HalfId | None:
        """Return the first record of a scope that is due, at or below a position."""
        asked = {"shard": self._shard, **upto._asdict()}
        return next((row[0] for row in self._fetch("due_head", asked)), None)

    def _read_ranges(self, after: Position) -> tuple[list[Range], int, bool, bool]:
        """Return what the next commit log rows have after a position, and PostgreSQL's time (ms).

        Also whether anything was ever held, and whether a record of the shard may be.
        """
        asked = {"shard": self._shard, "xid": after.xid, "rows": self._rows}
        rows = self._fetch("read_commits", asked, binary=True)
        if not rows:
            return [], THIS_CLOCK, False, True
        self._rows = self._rows_for(rows)
        done = {after.xid: after.n}
        ranges = [
            (xid, done.get(xid, 0), ids[done.get(xid, 0) :], age, awaited)
            for xid, ids, age, awaited, *_ in rows
        ]
        return ranges, *rows[0][4:]

    def _rows_for(self, rows: Sequence[Row]) -> int:
        """Return how many rows like these make a batch: a row has 1 to 2 048 ids."""
        ids = sum(len(half_ids) for _, half_ids, *_ in rows)
        return min(self._batch_max + 1, self._batch_max * len(rows) // ids + 2)

    def _read_contents(self, ids: Sequence[HalfId]) -> list[Row]:
        """Return the contents of the first ids, in their order, and of one at least."""
        rows = self._read_rows(ids)
        if ids[0] not in rows and not (rows := self._read_rows(ids[:1])):
            raise CommittedMessageGone(ids[0])
        return [rows[half_id] for half_id in takewhile(rows.__contains__, ids)]

    def _read_rows(self, ids: Sequence[HalfId]) -> dict[HalfId, Row]:
        asked = {"half_ids": ids, "bytes": BATCH_BYTES, **bounds(ids)}
        return {row[0]: row for row in self._fetch("read_contents", asked, binary=True)}

    def _committed(self, rows: Sequence[Row]) -> list[Committed]:
        topics = self._names("topic_names", self._topics, {row[_TOPIC] for row in rows})
        groups = self._names("group_names", self._groups, {row[_GROUP] for row in rows})
        return [
            Committed(
                half_id,
                nonce,
                DECIDED_BY_OF_CODE[decided_by],
                groups[group],
                transaction_id,
                topics[topic],
                key,
                value,
                partition,
                content_type,
                traceparent,
                (headers_if_whole(headers) or ()) if headers else (),
                content_digest,
            )
            for (
                half_id,
                nonce,
                decided_by,
                group,
                transaction_id,
                topic,
                key,
                value,
                partition,
                content_type,
                traceparent,
                headers,
                _,
                content_digest,
            ) in rows
        ]

    def _names(self, statement: str, known: dict[int, str], ids: set[int]) -> dict[int, str]:
        """Return the known names, with those of these ids; names never change."""
        if not ids <= known.keys():
            known |= dict(self._fetch(statement, {"ids": list(ids)}))
        return known

    def _fetch(self, name: str, asked: dict[str, Any], *, binary: bool = False) -> list[Any]:
        with self._session() as session, session.cursor(binary=binary) as cursor:
            return cursor.execute(SQL[name], asked).fetchall()


def _end_of(count: int, ranges: Iterable[Range]) -> tuple[Position, float]:
    """Return the position after ``count`` ids and the last one's age; it may be inside a row."""
    for xid, done, half_ids, age, _ in ranges:
        if count <= len(half_ids):
            return Position(xid, done + count), age
        count -= len(half_ids)
    raise AssertionError("more ids than were read")


def _half_ids(entries: Sequence[Entry]) -> list[HalfId]:
    return [split_message_id(entry.message_id)[0] for entry in entries]
