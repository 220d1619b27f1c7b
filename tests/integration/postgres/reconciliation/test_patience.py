"""How long an audit may burden a real PostgreSQL: beyond that the database is away."""

from __future__ import annotations

from threading import Event

import psycopg
import pytest

from outbox.errors import DatabaseUnavailable
from outbox.postgres.reconciliation.source import Patience, PostgresSource

pytestmark = pytest.mark.postgres


def test_a_statement_that_takes_too_long_is_given_up(database_url: str) -> None:
    source = PostgresSource(database_url, patience=Patience(statement_seconds=1))
    with psycopg.connect(database_url) as other:
        other.execute("LOCK TABLE outbox.half_message IN ACCESS EXCLUSIVE MODE")
        with (
            pytest.raises(DatabaseUnavailable, match="statement timeout"),
            source.snapshot() as snapshot,
        ):
            snapshot.undecided()


def test_a_snapshot_that_is_kept_too_long_is_given_up(database_url: str) -> None:
    source = PostgresSource(database_url, patience=Patience(snapshot_seconds=1))
    with source.snapshot() as snapshot:
        Event().wait(2)
        with pytest.raises(DatabaseUnavailable, match="timeout"):
            snapshot.undecided()
