"""Stores messages that were ended one by one: each has its own transaction id and commit row.

That many transactions would take hours. The base of ids is raised by their number instead: to the
installation this is the same as transactions that have passed, and their ids are free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Final, LiteralString

import psycopg

from outbox.messages.message import Message
from outbox.messages.message_id import LEAF_BITS, Nonce, half_id_of, shard_of
from outbox.messages.record import digest_of
from outbox.postgres.sessions.connections import Connection

_AHEAD: Final = 1 << LEAF_BITS
_LEAVES: Final = """SELECT outbox.create_leaf(leaf) FROM outbox.watermark() w
    CROSS JOIN generate_series(w >> 20, (w + %s) >> 20) leaf"""
_RAISE_BASE: Final = """UPDATE outbox.installation SET base = base + %s
    RETURNING pg_current_xact_id()::text::int8 + base"""
_GIVEN: Final = """CREATE TEMP TABLE given
    (half_id int8, nonce int8, digest int8, key bytea, value bytea) ON COMMIT DROP"""
_COPY: Final = "COPY given FROM STDIN (FORMAT BINARY)"
_COPY_TYPES: Final = ("int8", "int8", "int8", "bytea", "bytea")
_APPEND: Final[tuple[LiteralString, ...]] = (
    "INSERT INTO outbox.half_message (half_id, nonce, prepared_at, content_digest,"
    " producer_group_id, topic_id, key, value)"
    " SELECT half_id, nonce, now(), digest, %(group)s, %(topic)s, key, value FROM given",
    "INSERT INTO outbox.op_message (half_id, xid, decided_at, decision, decided_by)"
    " SELECT half_id, half_id >> 15, now(), 1, 1 FROM given",
    "INSERT INTO outbox.commit_log (shard, xid, committed_at, half_ids, content_digests)"
    " SELECT half_id & 15, half_id >> 15, now(), ARRAY[half_id], ARRAY[digest] FROM given",
)


def commit_one_by_one(connection: Connection, messages: Sequence[Message], count: int) -> None:
    """Store so many committed messages, the given ones in turn, all in one transaction.

    Nothing else may store messages meanwhile.
    """
    connection.execute(_LEAVES, (count + _AHEAD,))
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(_RAISE_BASE, (count,))
        row = cursor.fetchone()
        assert row is not None
        cursor.execute(_GIVEN)
        with cursor.copy(_COPY) as copy:
            copy.set_types(_COPY_TYPES)
            for each in _rows(messages, range(row[0] - count, row[0])):
                copy.write_row(each)
        _append(cursor, messages[0])


def _rows(
    messages: Sequence[Message], xids: range
) -> Iterator[tuple[int, int, int, object, object]]:
    placed = [(each, shard_of(each.content.topic, each.content.key)) for each in messages]
    for xid, (message, shard) in zip(xids, cycle(placed), strict=False):
        half_id, nonce, content = half_id_of(xid, 0, shard), Nonce(xid), message.content
        digest = digest_of(half_id, nonce, content, message.producer_group, message.transaction_id)
        yield half_id, nonce, digest, content.key, content.value


def _append(cursor: psycopg.Cursor[tuple[object, ...]], message: Message) -> None:
    names = {"group": message.producer_group_id, "topic": message.topic_id}
    for statement in _APPEND:
        cursor.execute(statement, names)
