"""What a takeover must settle in Kafka before it publishes, and the repairs that follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from outbox.errors import CursorMoved
from outbox.messages.manifest import Position
from outbox.messages.message_id import HalfId, Nonce, message_id_bytes, split_message_id
from outbox.postgres.messages.half_rows import bounds
from outbox.postgres.relay.held_records import is_owner
from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load
from outbox.relay.ports import InDoubt

SQL: Final = load(__name__)


def read_in_doubt(
    session: Connection, shard: int, listed: Sequence[bytes], position: Position, most: int
) -> InDoubt:
    """Return the topics of listed messages, and the next messages; see CommitLog."""
    asked = {"shard": shard, **position._asdict(), "most": most}
    following = [row[0] for row in session.execute(SQL["next_ids"], asked)]
    held = session.execute(SQL["next_held"], asked).fetchall()
    known = _named(session, [split_message_id(UUID(bytes=each))[0] for each in listed])
    coming = [*_named(session, following), *held]
    return InDoubt(
        topics={message_id_bytes(half_id, nonce): topic for half_id, nonce, topic in known},
        next_topics=frozenset(topic for _, _, topic in coming),
        next_ids=frozenset(message_id_bytes(half_id, nonce) for half_id, nonce, _ in coming),
    )


def _named(session: Connection, half_ids: Sequence[HalfId]) -> list[tuple[HalfId, Nonce, str]]:
    if not half_ids:
        return []
    asked = {"half_ids": half_ids, **bounds(half_ids)}
    return session.execute(SQL["named_topics"], asked).fetchall()


def order_repairs(
    session: Connection, name: str, shard: int, gen: int, message_ids: Sequence[bytes]
) -> int:
    """Store messages to be published again; see CommitLog. In the caller's transaction."""
    if not is_owner(session, name, gen):
        raise CursorMoved
    pairs = [split_message_id(UUID(bytes=each)) for each in message_ids]
    half_ids = [half_id for half_id, _ in pairs]
    asked = {
        "shard": shard,
        "repair": f"relay-{shard}-{gen}",
        "half_ids": half_ids,
        "nonces": [nonce for _, nonce in pairs],
        **bounds(half_ids),
    }
    return len(session.execute(SQL["order_repairs"], asked).fetchall())
