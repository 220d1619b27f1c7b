"""One run at a time: the second run is refused at once, and the lock of a dead run is free."""

from __future__ import annotations

import psycopg
import pytest

from outbox.errors import RunOvertaken
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from tests.fixtures_waiting import wait_for

pytestmark = pytest.mark.postgres

HOLDERS = (
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def test_while_one_run_has_the_lock_no_other_run_begins(database_url: str) -> None:
    one, other = PostgresRunStore(database_url), PostgresRunStore(database_url)
    with one.run_lock(), pytest.raises(RunOvertaken, match="in progress"), other.run_lock():
        pytest.fail("two runs have the lock")
    with other.run_lock():
        pass


def test_the_lock_is_free_after_its_session_died_and_a_run_that_lost_it_still_ends_well(
    database_url: str,
) -> None:
    """Only the condition in the last transaction decides which run is stored."""
    one, other = PostgresRunStore(database_url), PostgresRunStore(database_url)
    with one.run_lock(), psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute(f"SELECT pg_terminate_backend(pid) FROM ({HOLDERS}) held")
        wait_for(lambda: not admin.execute(HOLDERS).fetchall())
        with other.run_lock():
            assert len(admin.execute(HOLDERS).fetchall()) == 1
