"""What a takeover must settle in Kafka before it publishes, and the repairs that follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from outbox.errors import CursorMoved
from outbox.messages.manifest import Position
from outbox.messages.message_id import HalfId, message_id_bytes, split_message_id
from outbox.postgres.messages.half_rows import bounds
from outbox.postgres.relay.held_records import is_owner
from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load
from outbox.relay.doubt import Destination, InDoubt

SQL: Final = load(__name__)


def read_in_doubt(
    session: Connection, shard: int, listed: Sequence[bytes], position: Position, most: int
) -> InDoubt:
    """Return where listed messages were sent, and the next messages; see CommitLog."""
    asked = {"shard": shard, **position._asdict(), "most": most}
    following = [row[0] for row in session.execute(SQL["next_ids"], asked)]
    held = session.execute(SQL["next_held"], asked).fetchall()
    known = _sent(session, [split_message_id(each)[0] for each in listed])
    coming = _sent(session, following)
    topics = {message_id_bytes(half_id, nonce): topic for half_id, nonce, topic in held}
    topics |= {message_id: sent.topic for message_id, sent in coming.items()}
    return InDoubt(
        listed=known,
        next_topics=frozenset(topics.values()),
        next_ids=frozenset(topics),
    )


def _sent(session: Connection, half_ids: Sequence[HalfId]) -> dict[bytes, Destination]:
    if not half_ids:
        return {}
    asked = {"half_ids": half_ids, **bounds(half_ids)}
    rows = session.execute(SQL["destinations"], asked).fetchall()
    return {message_id_bytes(half_id, nonce): Destination(*sent) for half_id, nonce, *sent in rows}


def order_repairs(
    session: Connection, shard: int, gen: int, message_ids: Sequence[bytes], batch_no: int
) -> int:
    """Store messages to be published again; see CommitLog. In the caller's transaction."""
    if not is_owner(session, f"relay:{shard}", gen):
        raise CursorMoved
    pairs = [split_message_id(each) for each in message_ids]
    half_ids = [half_id for half_id, _ in pairs]
    asked = {
        "shard": shard,
        "repair": f"relay-{shard}-{gen}",
        "batch_no": batch_no,
        "half_ids": half_ids,
        "nonces": [nonce for _, nonce in pairs],
        **bounds(half_ids),
    }
    return len(session.execute(SQL["order_repairs"], asked).fetchall())
