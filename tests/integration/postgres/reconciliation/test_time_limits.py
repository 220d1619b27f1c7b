"""The time limits of an audit on a real PostgreSQL: above them the database is unavailable."""

from __future__ import annotations

from threading import Event

import psycopg
import pytest

from outbox.errors import DatabaseUnavailable
from outbox.postgres.reconciliation.audit_session import audit_session

pytestmark = pytest.mark.postgres

HALVES = "SELECT FROM outbox.half_message"


def test_a_statement_over_the_limit_is_cancelled(database_url: str) -> None:
    with psycopg.connect(database_url) as other:
        other.execute("LOCK TABLE outbox.half_message IN ACCESS EXCLUSIVE MODE")
        with (
            pytest.raises(DatabaseUnavailable, match="statement timeout"),
            audit_session(database_url, statement_seconds=1) as session,
        ):
            session.execute(HALVES)


def read_slowly(database_url: str) -> None:
    """Read twice in one snapshot, with a pause above its limit."""
    with audit_session(database_url, snapshot_seconds=1) as session, session.transaction():
        session.execute(HALVES)
        Event().wait(2)
        session.execute(HALVES)


def test_a_snapshot_over_the_limit_is_cancelled(database_url: str) -> None:
    with pytest.raises(DatabaseUnavailable, match="timeout"):
        read_slowly(database_url)
