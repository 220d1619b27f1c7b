"""Connections of an audit to PostgreSQL, limited in time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import psycopg

from outbox.postgres.sessions.availability import REFUSED, UNAVAILABLE, unavailable_on
from outbox.postgres.sessions.connections import Connection, connect
from outbox.postgres.sessions.statements import load

SQL: Final = load(__name__)


SNAPSHOT_SECONDS: Final = 3600
"""A longer run fails, nothing stored; before PostgreSQL 17 only a pause of that length does."""
STATEMENT_SECONDS: Final = 600
LOCK_SECONDS: Final = 30
"""How long an audit waits for a lock; a leaf is removed in less than two seconds."""
SPENT: Final = (*UNAVAILABLE, *REFUSED, psycopg.errors.SnapshotTooOld)
"""The errors of a server that cannot be used any more. The last one ends an audit where releases
before 17 have `old_snapshot_threshold`."""


@contextmanager
def audit_session(
    database_url: str,
    snapshot_seconds: int = SNAPSHOT_SECONDS,
    statement_seconds: int = STATEMENT_SECONDS,
) -> Iterator[Connection]:
    """Open a connection whose transactions and statements are limited in time.

    Before PostgreSQL 17 a transaction is limited only while it is idle.
    """
    silence = statement_seconds + LOCK_SECONDS
    with (
        database_errors(),
        connect(database_url, "reconcile", answer_seconds=silence) as connection,
    ):
        timeouts = {
            "idle_in_transaction_session_timeout": snapshot_seconds,
            "transaction_timeout": snapshot_seconds,
            "statement_timeout": statement_seconds,
            "lock_timeout": LOCK_SECONDS,
        }
        texts = [f"{seconds}s" for seconds in timeouts.values()]
        connection.execute(SQL["set_timeouts"], {"names": [*timeouts], "texts": texts})
        yield connection


def database_errors() -> AbstractContextManager[None]:
    """Turn a broken connection or a refusing server into DatabaseUnavailable."""
    return unavailable_on(*SPENT, prefix="PostgreSQL: ")
