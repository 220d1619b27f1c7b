"""One run at a time: who comes second is told so at once, and nobody waits for the dead."""

from __future__ import annotations

import psycopg
import pytest

from outbox.errors import RunUnderWay
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from tests.fixtures_waiting import wait_for

pytestmark = pytest.mark.postgres

HOLDERS = (
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def test_while_one_run_holds_the_chain_no_other_one_begins(database_url: str) -> None:
    one, other = PostgresRunStore(database_url), PostgresRunStore(database_url)
    with one.hold(), pytest.raises(RunUnderWay), other.hold():
        pytest.fail("two runs hold the chain")
    with other.hold():
        pass


def test_the_chain_is_free_when_its_holder_has_died_and_a_holder_that_lost_it_still_ends_well(
    database_url: str,
) -> None:
    """Only the condition in the last transaction decides which run is stored."""
    one, other = PostgresRunStore(database_url), PostgresRunStore(database_url)
    with one.hold(), psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute(f"SELECT pg_terminate_backend(pid) FROM ({HOLDERS}) held")
        wait_for(lambda: not admin.execute(HOLDERS).fetchall())
        with other.hold():
            assert len(admin.execute(HOLDERS).fetchall()) == 1
