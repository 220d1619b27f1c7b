"""Held records as the relay reads and writes them, on the session that has the shard's lock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from outbox.errors import CursorMoved
from outbox.messages.manifest import Manifest, Position
from outbox.messages.message_id import HalfId, split_message_id
from outbox.postgres.messages.half_rows import bounds
from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load
from outbox.relay.ports import Places, Refusal
from outbox.relay.protocol.record_hold import RETRY_FIRST_SECONDS, RETRY_LAST_SECONDS
from outbox.relay.protocol.state import Refused

SQL: Final = load(__name__)
WAITS: Final = "waits behind a refused record"
"""The ``publish_error`` of a message that was not itself refused."""


class BatchHolds(NamedTuple):
    """How held records affect a batch."""

    held: frozenset[HalfId]
    """The half ids of the batch that must be listed as held."""
    released: frozenset[HalfId]
    due: bool


NO_HOLDS: Final = BatchHolds(frozenset(), frozenset(), due=False)


class AnyHeld(NamedTuple):
    """PostgreSQL's time, whether anything was ever held, and whether a record of the shard is."""

    clock_ms: int
    ever: bool
    any_open: bool


def read_any_held(session: Connection, shard: int) -> AnyHeld:
    """Read what says whether held records can matter at all."""
    found = session.execute(SQL["any_held"], {"shard": shard}).fetchone()
    assert found is not None
    return AnyHeld(*found)


def read_holds(
    session: Connection,
    shard: int,
    after: Position,
    batch: Iterable[tuple[HalfId, int, bytes | None, Position]],
    any_held: AnyHeld,
) -> BatchHolds:
    """Read how held records affect a batch that begins after a position.

    Of each message: its half id, topic id, key and own position.
    """
    if not any_held.ever:
        return NO_HOLDS
    due = any_held.any_open and is_due(session, shard, after)
    messages = [*batch]
    if not messages:
        return NO_HOLDS._replace(due=due)
    asked = {
        "shard": shard,
        "half_ids": [half_id for half_id, *_ in messages],
        "topics": [topic for _, topic, *_ in messages],
        "keys": [key for _, _, key, _ in messages],
        "xids": [at.xid for *_, at in messages],
        "ns": [at.n for *_, at in messages],
    }
    rows = session.execute(SQL["read_holds"], asked).fetchall()
    held = frozenset(half_id for half_id, is_held, _ in rows if is_held)
    released = frozenset(half_id for half_id, _, is_released in rows if is_released)
    return BatchHolds(held, released, due)


def is_due(session: Connection, shard: int, position: Position) -> bool:
    """Return whether a scope of held records at or below a position is due."""
    return _due_head(session, shard, position) is not None


def _due_head(session: Connection, shard: int, position: Position) -> int | None:
    """Return the first record of a scope that is due."""
    asked = {"shard": shard, **position._asdict()}
    row = session.execute(SQL["due_head"], asked).fetchone()
    return None if row is None else row[0]


def is_owner(session: Connection, name: str, gen: int) -> bool:
    """Return whether a generation is the stored one; it stays so until the transaction ends."""
    return session.execute(SQL["owns"], {"name": name, "gen": gen}).fetchone() is not None


def hold(
    session: Connection,
    name: str,
    batch: Manifest,
    message_ids: Sequence[bytes],
    refusal: Refusal | None,
) -> None:
    """Store messages of a batch as held; see CommitLog. Runs in the caller's transaction."""
    if not is_owner(session, name, batch.gen):
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
    head = _due_head(session, shard, position)
    if head is None:
        return []
    asked = {"head": head, **position._asdict(), "most": most}
    return session.execute(SQL["read_scope"], asked).fetchall()


def postpone(session: Connection, message_id: bytes, refusal: Refusal) -> None:
    """Count one more refusal; see CommitLog."""
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
