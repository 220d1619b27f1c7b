"""What an operator's decision on a halted shard writes; each decision goes with its audit row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg.types.json import Jsonb

from outbox.errors import CursorMoved, DatabaseUnavailable
from outbox.messages.message_id import HalfId, Nonce
from outbox.operators.message_view import OperatorAction
from outbox.postgres.messages.half_rows import bounds
from outbox.postgres.sessions.connections import connect
from outbox.postgres.sessions.statements import load
from outbox.relay.protocol.state import Cursor, HaltReason, Identity

SQL: Final = load("outbox.postgres.operators.shard_admin")
COMMIT_LOG: Final = load("outbox.postgres.relay.commit_log")
AUDIT: Final = load("outbox.postgres.operators.operations")["audit"]


class ShardAdmin:
    """One session; every method raises DatabaseUnavailable."""

    def __init__(self, database_url: str, shard: int) -> None:
        with _available():
            self._session = connect(database_url, "cli")
        self._shard = shard

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    def topics(self) -> list[str]:
        """Return the topics that this installation has messages for."""
        with _available():
            return [row[0] for row in self._session.execute(SQL["topics"])]

    def learn(self, published: Sequence[tuple[HalfId, Nonce]], offset: int) -> None:
        """Store ids that Kafka has, and commit those of them that nobody has decided.

        One transaction; the same ids may be learned again. What a relay learns from a manifest in
        HISTORY is learned here from the topics.
        """
        asked = {
            "shard": self._shard,
            "offset": offset,
            "half_ids": [half_id for half_id, _ in published],
            "nonces": [nonce for _, nonce in published],
            **bounds([half_id for half_id, _ in published]),
        }
        with _available(), self._session.transaction():
            self._session.execute(COMMIT_LOG["note_published"], asked)
            self._session.execute(COMMIT_LOG["recover_commits"], asked)
            self._session.execute(COMMIT_LOG["audit_rolled_back"], asked)

    def settle(
        self,
        halt: HaltReason,
        way: str,
        cursor: Cursor | None,
        identity: Identity | None,
        action: OperatorAction,
    ) -> None:
        """Let the shard go on from a cursor, its position unchanged; audited.

        None leaves what is stored. Raises CursorMoved when it no longer waits for that reason.
        """
        row = {
            "name": f"relay:{self._shard}",
            "halt_reason": halt.value,
            "manifest_offset": cursor and cursor.manifest_offset,
            "batch_no": cursor and cursor.batch_no,
            "crc": cursor and cursor.crc,
            "gen": cursor and cursor.gen,
            "cluster_id": identity and identity.cluster_id,
            "topic_id": identity and identity.topic_id,
            "pg_system_id": identity and identity.pg_system_id,
        }
        audited = {
            "action": "shard.resolve",
            "target": f"shard {self._shard}",
            "half_id": None,
            "key_id": action.key_id,
            "operator": action.operator,
            "reason": action.reason,
            "detail": Jsonb({**row, "way": way}),
        }
        with _available(), self._session.transaction():
            if self._session.execute(SQL["settle"], row).fetchone() is None:
                raise CursorMoved("the shard no longer waits for this decision")
            self._session.execute(AUDIT, audited)


@contextmanager
def _available() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise DatabaseUnavailable(str(error).strip().splitlines()[0]) from error
