"""One flush of half messages: one transaction, in two round trips to PostgreSQL.

The first takes the xid and claims the transaction ids. The half ids contain the xid, so only the
second can have the rows; COMMIT follows them at once.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from psycopg.errors import DuplicatePreparedStatement, InvalidSqlStatementName
from psycopg.pq import Escaping, ExecStatus

from outbox.failpoints import armed, hit
from outbox.messages.message import Message, Prepared
from outbox.messages.message_id import (
    NONCE_BITS,
    HalfId,
    Nonce,
    Shard,
    half_id_of,
    shard_of,
)
from outbox.postgres.messages.half_rows import COPY_HALVES, copy_data, new_half
from outbox.postgres.sessions.array_literal import number_array, text_array
from outbox.postgres.sessions.copy_exchange import begin_copy, end_copy
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load(__name__)
PREPARED: Final = (SQL["prepare_begin_flush"], SQL["prepare_claim"])
COPY: Final = COPY_HALVES.encode()
COMMIT: Final = b";COMMIT"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class GroupsDeleted(Exception):
    """Groups of the flush were deleted, so nothing was stored; has their ids."""

    def __init__(self, group_ids: frozenset[int]) -> None:
        super().__init__(sorted(group_ids))
        self.group_ids = group_ids


Flushed = Sequence[tuple[Prepared, bool]]
"""What a committed flush made of its messages, and which of them were stored."""


async def flush(connection: AsyncConnection, messages: Sequence[Message]) -> Flushed:
    """Store the messages and commit, except those whose transaction ids are taken.

    Raises GroupsDeleted, which ends the session, and psycopg's errors; there is no transaction
    then.
    """
    with suppress(InvalidSqlStatementName):  # psycopg drops all statements after a rollback
        if connection.shards is not None:
            return await _flush(connection, messages, connection.shards)
    connection.shards = await _prepare_statements(connection)
    return await _flush(connection, messages, connection.shards)


async def _prepare_statements(connection: AsyncConnection) -> int:
    """Prepare what the session has not got; return the number of shards in use."""
    for statement in PREPARED:
        with suppress(DuplicatePreparedStatement):
            await connection.execute(statement, prepare=False)
    cursor = await connection.execute(SQL["shards_in_use"])
    ((shards,),) = await cursor.fetchall()
    return int(shards)


async def _flush(connection: AsyncConnection, messages: Sequence[Message], shards: int) -> Flushed:
    rows = [row for message in messages for row in (message, *message.followers)]
    nonces = _nonces(len(rows))
    # The bits of the half ids below the xid, which is not known yet.
    low_ids = [
        half_id_of(0, n, Shard(shard_of(message.topic, message.key, nonce) % shards))
        for n, (message, nonce) in enumerate(zip(rows, nonces, strict=True))
    ]
    leaders = accumulate((1 + len(message.followers) for message in messages[:-1]), initial=0)
    begin = _begin(connection.pgconn, messages, [low_ids[row] for row in leaders])
    kill = armed("api.prepare.before_commit")
    answers = await begin_copy(connection, begin + COPY + (b"" if kill else COMMIT))
    xid, at, gone, won = _read(answers)
    if gone:
        await connection.close()
        raise GroupsDeleted(gone)
    first = half_id_of(xid, 0, Shard(0))
    identities = iter(zip([HalfId(first + low_id) for low_id in low_ids], nonces, strict=True))
    prepared = [_prepared(message, identities, at) for message in messages]
    flushed = [
        (each, each.half.message.transaction_id is None or each.half.half_id in won)
        for each in prepared
    ]
    stored = [half for each, is_new in flushed if is_new for half in (each.half, *each.followers)]
    await end_copy(connection, copy_data(stored))
    if kill:
        hit("api.prepare.before_commit")
        await connection.commit()
    hit("api.prepare.after_commit")
    return flushed


def _prepared(
    message: Message, identities: Iterator[tuple[HalfId, Nonce]], at: datetime
) -> Prepared:
    """Return the half of a message, and of each follower, with the next identities."""
    half_id, nonce = next(identities)
    followers = tuple(
        new_half(follower, *next(identities), at, leader_id=half_id)
        for follower in message.followers
    )
    half = new_half(message, half_id, nonce, at, tuple(each.half_id for each in followers))
    return Prepared(half=half, followers=followers)


def _begin(pgconn: PGconn, messages: Sequence[Message], low_ids: Sequence[HalfId]) -> bytes:
    """Return the statements before the COPY."""
    groups = number_array(sorted({message.producer_group_id for message in messages}))
    begin = f"BEGIN;EXECUTE outbox_begin_flush('{groups}');".encode()
    keyed = [
        (message.producer_group_id, message.transaction_id, low_id)
        for message, low_id in zip(messages, low_ids, strict=True)
        if message.transaction_id is not None
    ]
    if not keyed:
        return begin
    owners, texts, lows = zip(*keyed, strict=True)
    arrays = (number_array(owners), text_array(texts), number_array(lows))
    escaping = Escaping(pgconn)
    claimed = b",".join([escaping.escape_literal(array.encode()) for array in arrays])
    return begin + b"EXECUTE outbox_claim(" + claimed + b");"


def _read(answers: Sequence[PGresult]) -> tuple[int, datetime, frozenset[int], frozenset[HalfId]]:
    """Return the xid, the database's time, the deleted groups and the half ids that won."""
    begun, *claimed = [each for each in answers if each.status == ExecStatus.TUPLES_OK]
    xid, micros, deleted = (_value(begun, 0, column) for column in range(3))
    at = _EPOCH + timedelta(microseconds=int(micros))
    gone = frozenset(map(int, deleted.split(b","))) if deleted else frozenset[int]()
    won = frozenset(
        HalfId(int(_value(table, row, 0))) for table in claimed for row in range(table.ntuples)
    )
    return int(xid), at, gone, won


def _value(table: PGresult, row: int, column: int) -> bytes:
    return table.get_value(row, column) or b""


def _nonces(count: int) -> list[Nonce]:
    """Return random bits for a whole flush with one call to the system."""
    shift = 64 - NONCE_BITS
    words = struct.unpack(f"{count}Q", secrets.token_bytes(8 * count))
    return [Nonce(word >> shift) for word in words]
