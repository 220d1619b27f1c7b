"""Stores half messages with their COMMIT by COPY: a backlog for the relay."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import psycopg

from outbox.messages.message import Message
from outbox.messages.message_id import (
    NONCE_BITS,
    HalfId,
    Nonce,
    Shard,
    half_id_of,
    shard_in,
    shard_of,
)
from outbox.messages.record import digest_of
from outbox.postgres.sessions.connections import Connection

_HALVES: Final = """COPY outbox.half_message (half_id, nonce, prepared_at, content_digest,
    producer_group_id, topic_id, "partition", transaction_id, key, value, headers, content_type,
    traceparent) FROM STDIN (FORMAT BINARY)"""
_HALF_TYPES: Final = (
    *("int8", "int8", "timestamptz", "int8", "int4", "int4", "int4"),
    *("text", "bytea", "bytea", "bytea[]", "text", "text"),
)
_OPS: Final = """COPY outbox.op_message (half_id, xid, decided_at, decision, decided_by)
    FROM STDIN (FORMAT BINARY)"""
_OP_TYPES: Final = ("int8", "int8", "timestamptz", "int2", "int2")
_LOG: Final = "INSERT INTO outbox.commit_log VALUES (%s, %s, %s, %s, %s)"


def commit_directly(
    connection: Connection, messages: Sequence[Message], shard: int | None = None
) -> list[HalfId]:
    """Store at most 2 048 messages and their COMMIT in one flush; return their ids in order.

    ``shard`` puts them all into one shard, whatever their key.
    """
    with connection.transaction(), connection.cursor() as cursor:
        return append_committed(cursor, messages, shard)


def append_committed(
    cursor: psycopg.Cursor[tuple[object, ...]],
    messages: Sequence[Message],
    shard: int | None = None,
) -> list[HalfId]:
    """Do the same inside the caller's transaction."""
    cursor.execute("SELECT outbox.current_xid(), clock_timestamp()")
    row = cursor.fetchone()
    assert row is not None
    xid, now = int(str(row[0])), row[1]
    ids: list[HalfId] = []
    with cursor.copy(_HALVES) as copy:
        copy.set_types(_HALF_TYPES)
        digests = []
        for n, message in enumerate(messages):
            half_id, nonce = _identity(message, xid, n, shard)
            digests.append(_digest(half_id, nonce, message))
            ids.append(half_id)
            copy.write_row(_row(half_id, nonce, now, digests[-1], message))
    with cursor.copy(_OPS) as copy:
        copy.set_types(_OP_TYPES)
        for half_id in ids:
            copy.write_row((half_id, xid, now, 1, 1))
    shards: dict[int, list[tuple[HalfId, int]]] = defaultdict(list)
    for half_id, digest in zip(ids, digests, strict=True):
        shards[shard_in(half_id)].append((half_id, digest))
    for number, pairs in shards.items():
        columns = [list(column) for column in zip(*pairs, strict=True)]
        cursor.execute(_LOG, (number, xid, now, *columns))
    return ids


def register(connection: Connection, topic: str, group: str = "account") -> Message:
    """Intern a topic and a group; return a template message of them."""
    topic_id = _one(
        connection,
        "INSERT INTO outbox.topic (name) VALUES (%s) ON CONFLICT (name) DO UPDATE"
        " SET name = EXCLUDED.name RETURNING id",
        topic,
    )
    group_id = _one(
        connection,
        "INSERT INTO outbox.producer_group (name, check_url, check_interval_seconds, check_max,"
        " check_timeout_seconds, transaction_timeout_seconds, on_check_max, backoff, max_inflight,"
        " batch_check, check_payload, topics, max_age_seconds, secret)"
        " VALUES (%s, 'http://127.0.0.1:1/', 30, 15, 5, 6, 'park', 'fixed', 8, false, false, '{}',"
        " 259200, '') ON CONFLICT (name) DO UPDATE SET name = EXCLUDED.name RETURNING id",
        group,
    )
    return Message(
        topic=topic,
        value=b"",
        producer_group=group,
        producer_group_id=group_id,
        topic_id=topic_id,
    )


def _one(connection: Connection, statement: str, name: str) -> int:
    row = connection.execute(statement.encode(), (name,)).fetchone()
    assert row is not None
    return int(row[0])


def _identity(message: Message, xid: int, n: int, shard: int | None) -> tuple[HalfId, Nonce]:
    nonce = Nonce(secrets.randbits(NONCE_BITS))
    own = shard_of(message.topic, message.key, nonce)
    return half_id_of(xid, n, own if shard is None else Shard(shard)), nonce


def _digest(half_id: HalfId, nonce: Nonce, message: Message) -> int:
    return digest_of(half_id, nonce, message)


def _row(
    half_id: HalfId, nonce: Nonce, now: object, digest: int, message: Message
) -> tuple[object, ...]:
    return (
        half_id,
        nonce,
        now,
        digest,
        message.producer_group_id,
        message.topic_id,
        message.partition,
        message.transaction_id,
        message.key,
        message.value,
        [each for name, value in message.headers for each in (name.encode(), value)] or None,
        message.content_type,
        message.traceparent,
    )
