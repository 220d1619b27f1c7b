"""Reports at low cost which shards have new final commits, so that idle relays need not ask.

While the watermark is unchanged, no commit has become final: one small statement answers for all
shards. The result is only a hint: each relay reads with the watermark of its own session.
"""

from __future__ import annotations

from typing import Final

from outbox.messages.message_id import SHARDS
from outbox.postgres.relay.relay_session import RelaySession
from outbox.postgres.sessions.connections import connect
from outbox.postgres.sessions.statements import load

SQL: Final = load(__name__)
ALL_SHARDS: Final = frozenset(range(SHARDS))


class PostgresCommitWatch(RelaySession):
    """Finds cheaply the shards with new commits, on a session of its own; only a hint."""

    def __init__(self, database_url: str) -> None:
        super().__init__(database_url, "relay-watch", connect)
        self._seen: int | None = None

    def close(self) -> None:
        """Close the session; never raises."""
        super().close()
        self._seen = None

    def fresh_shards(self) -> frozenset[int]:
        """Return the shards with commits that became final since the last call.

        Raises DatabaseUnavailable.
        """
        with self._session() as session:
            row = session.execute(SQL["watermark"]).fetchone()
            assert row is not None
            seen, self._seen = self._seen, row[0]
            if seen is None:
                return ALL_SHARDS
            if seen == self._seen:
                return frozenset()
            rows = session.execute(SQL["fresh_shards"], {"low": seen, "high": self._seen})
            return frozenset(shard for (shard,) in rows)
