"""Writes an operator's decision on a halted shard, with its audit row."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

import psycopg

from outbox.errors import CursorMoved
from outbox.messages.message_id import HalfId, Nonce
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.audit_log import audit_command
from outbox.postgres.relay.recovery import recover_published
from outbox.postgres.sessions.availability import unavailable_on
from outbox.postgres.sessions.connections import connect
from outbox.postgres.sessions.statements import load
from outbox.postgres.sessions.verified_sessions import refuse_ids_behind
from outbox.relay.protocol.state import Cursor, HaltReason, Identity

SQL: Final = load(__name__)


class ShardAdmin:
    """One session; every method raises DatabaseUnavailable."""

    def __init__(self, database_url: str, shard: int) -> None:
        """Connect; raises IdsBehind for a restored database whose new ids would be too low."""
        with unavailable_on(psycopg.Error), ExitStack() as unless_behind:
            self._session = unless_behind.enter_context(connect(database_url, "cli"))
            refuse_ids_behind(self._session)
            unless_behind.pop_all()
        self._shard = shard

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    def topics(self) -> list[str]:
        """Return the topics that this installation has messages for."""
        with unavailable_on(psycopg.Error):
            return [row[0] for row in self._session.execute(SQL["topics"])]

    def learn(self, published: Sequence[tuple[HalfId, Nonce]], offset: int) -> None:
        """Store ids that Kafka has, and commit those of them without a decision.

        One transaction; the same ids may be passed again. A relay reads them from manifests during
        recovery; here they come from the topics.
        """
        with unavailable_on(psycopg.Error), self._session.transaction():
            recover_published(self._session, self._shard, offset, published)

    def mark_released(self, published: Sequence[tuple[int, HalfId, Nonce]], known: int) -> None:
        """Mark the held records that batches above ``known`` published.

        ``known`` is the last batch that PostgreSQL knew. What a repair repeats is in a batch up to
        it, because a repair is ordered after its batch is known.
        """
        batch_nos, half_ids, nonces = ([*column] for column in zip(*published, strict=True))
        asked = {"batch_nos": batch_nos, "half_ids": half_ids, "nonces": nonces, "known": known}
        with unavailable_on(psycopg.Error), self._session.transaction():
            self._session.execute(SQL["mark_released"], asked)

    def settle(
        self,
        halt: HaltReason,
        way: str,
        cursor: Cursor | None,
        identity: Identity | None,
        action: OperatorAction,
    ) -> None:
        """Let the shard continue from a cursor, its position unchanged; audited.

        None keeps what is stored. Raises CursorMoved when the shard is no longer halted for that
        reason.
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
        target, detail = f"shard {self._shard}", {**row, "way": way}
        with unavailable_on(psycopg.Error), self._session.transaction():
            if self._session.execute(SQL["settle"], row).fetchone() is None:
                raise CursorMoved("the shard no longer waits for this decision")
            audit_command(self._session, "shard.resolve", target, action, detail)
