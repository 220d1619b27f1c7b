"""The advisory lock of a shard, which its relay holds for as long as its session lasts.

The lock is for liveness only. The fence in Kafka is what makes a second relay harmless.
"""

from __future__ import annotations

from typing import Final

from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load

SQL: Final = load(__name__)
LOCK_SPACE: Final = 0x6F757462
"""The first key of the relay's advisory locks; the second key is the shard."""


def try_lock(session: Connection, shard: int) -> bool:
    """Ask for a shard's lock without waiting; return whether the session has it."""
    row = session.execute(SQL["try_lock"], {"space": LOCK_SPACE, "shard": shard}).fetchone()
    return bool(row and row[0])


def hold_shards(session: Connection) -> list[int]:
    """Lock every shard until the transaction ends; return the shards that a relay holds."""
    return [row[0] for row in session.execute(SQL["hold_shards"], {"space": LOCK_SPACE})]
