"""Stores in PostgreSQL what Kafka proves to be published, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from outbox.messages.message_id import HalfId, Nonce
from outbox.postgres.messages.half_rows import bounds
from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load

SQL: Final = load(__name__)


def recover_published(
    session: Connection, shard: int, offset: int, published: Sequence[tuple[HalfId, Nonce]]
) -> int:
    """Note ids that Kafka has, and commit those of them without a decision.

    The same ids may be recovered again. Returns how many of them this PostgreSQL has rolled back.
    """
    asked = {
        "shard": shard,
        "offset": offset,
        "half_ids": [half_id for half_id, _ in published],
        "nonces": [nonce for _, nonce in published],
        **bounds([half_id for half_id, _ in published]),
    }
    session.execute(SQL["note_published"], asked)
    session.execute(SQL["recover_commits"], asked)
    return len(session.execute(SQL["audit_rolled_back"], asked).fetchall())
