"""The time limits of an audit on a real PostgreSQL: above them the database is unavailable."""

from __future__ import annotations

from threading import Event

import psycopg
import pytest

from outbox.errors import DatabaseUnavailable
from outbox.postgres.reconciliation.source import PostgresSource

pytestmark = pytest.mark.postgres


def test_a_statement_over_the_limit_is_cancelled(database_url: str) -> None:
    source = PostgresSource(database_url, statement_seconds=1)
    with psycopg.connect(database_url) as other:
        other.execute("LOCK TABLE outbox.half_message IN ACCESS EXCLUSIVE MODE")
        with (
            pytest.raises(DatabaseUnavailable, match="statement timeout"),
            source.snapshot() as snapshot,
        ):
            snapshot.undecided()


def test_a_snapshot_over_the_limit_is_cancelled(database_url: str) -> None:
    source = PostgresSource(database_url, snapshot_seconds=1)
    with source.snapshot() as snapshot:
        Event().wait(2)
        with pytest.raises(DatabaseUnavailable, match="timeout"):
            snapshot.undecided()
