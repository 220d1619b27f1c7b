"""Held records as the relay reads and writes them, on the session that has the shard's lock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from outbox.errors import CursorMoved
from outbox.messages.manifest import Manifest, Position
from outbox.messages.message_id import HalfId, split_message_id
from outbox.postgres.messages.half_rows import bounds
from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load
from outbox.relay.protocol.answers import Places
from outbox.relay.protocol.record_hold import RETRY_FIRST_SECONDS, RETRY_LAST_SECONDS
from outbox.relay.protocol.state import Refusal, Refused

SQL: Final = load(__name__)
WAITS: Final = "waits behind a refused record"
"""The ``publish_error`` of a message that was not itself refused."""


def read_holds(
    session: Connection,
    shard: int,
    batch: Iterable[tuple[HalfId, int, bytes | None, Position]],
) -> tuple[Collection[HalfId], Collection[HalfId]]:
    """Return which messages of a batch must be listed as held, and which were released.

    Of each message: its half id, topic id, key and own position.
    """
    messages = [*batch]
    asked = {
        "shard": shard,
        "half_ids": [half_id for half_id, *_ in messages],
        "topics": [topic for _, topic, *_ in messages],
        "keys": [key for _, _, key, _ in messages],
        "xids": [at.xid for *_, at in messages],
        "ns": [at.n for *_, at in messages],
    }
    rows = session.execute(SQL["read_holds"], asked).fetchall()
    held = {half_id for half_id, is_held, _ in rows if is_held}
    return held, {half_id for half_id, _, is_released in rows if is_released}


def due_head(session: Connection, shard: int, position: Position) -> HalfId | None:
    """Return the first record of a scope that is due, at or below a position."""
    asked = {"shard": shard, **position._asdict()}
    row = session.execute(SQL["due_head"], asked).fetchone()
    return None if row is None else row[0]


def hold(
    session: Connection,
    name: str,
    batch: Manifest,
    message_ids: Sequence[bytes],
    refusal: Refusal | None,
) -> None:
    """Store messages of a batch as held, in the caller's transaction; see PostgresCommitLog."""
    if session.execute(SQL["owns"], {"name": name, "gen": batch.gen}).fetchone() is None:
        raise CursorMoved
    half_ids = [split_message_id(message_id)[0] for message_id in message_ids]
    row = {
        "shard": batch.shard,
        "from_xid": batch.after.xid,
        "to_xid": batch.to.xid,
        "half_ids": half_ids,
        "topic_wide": refusal is not None and refusal.refused is Refused.TOPIC,
        "error": refusal.error if refusal else WAITS,
        "attempts": 1 if refusal else 0,
        "wait": RETRY_FIRST_SECONDS if refusal else 0.0,
        **bounds(half_ids),
    }
    session.execute(SQL["hold"], row)


def read_scope(
    session: Connection, shard: int, position: Position, most: int
) -> Sequence[tuple[HalfId, str | None, int]]:
    """Read the first messages of a scope that is due, at or below a position, in commit order.

    Of each: its half id, the repair it belongs to, and PostgreSQL's time (ms).
    """
    head = due_head(session, shard, position)
    if head is None:
        return []
    asked = {"head": head, **position._asdict(), "most": most}
    return session.execute(SQL["read_scope"], asked).fetchall()


def postpone(session: Connection, message_id: bytes, refusal: Refusal) -> None:
    """Count one more refusal; see PostgresCommitLog."""
    row = {
        "half_id": split_message_id(message_id)[0],
        "error": refusal.error,
        "topic_wide": refusal.refused is Refused.TOPIC,
        "first": RETRY_FIRST_SECONDS,
        "last": RETRY_LAST_SECONDS,
    }
    session.execute(SQL["postpone"], row)


def mark_published(
    session: Connection, manifest: Manifest, message_ids: Sequence[bytes], places: Places | None
) -> None:
    """Mark the rows, if any, of messages that Kafka has, by a manifest.

    ``places`` are those of its P entries, None if they are not known.
    """
    placed: dict[bytes, tuple[int, int]] = {}
    if places is not None:
        pairs = zip(places.partitions, places.offsets, strict=True)
        placed = dict(zip(manifest.published, pairs, strict=True))
    ids = [split_message_id(message_id) for message_id in message_ids]
    found = [placed.get(message_id, (None, None)) for message_id in message_ids]
    row = {
        "batch_no": manifest.batch_no,
        "half_ids": [half_id for half_id, _ in ids],
        "nonces": [nonce for _, nonce in ids],
        "partitions": [partition for partition, _ in found],
        "offsets": [offset for _, offset in found],
    }
    session.execute(SQL["mark_released"], row)
