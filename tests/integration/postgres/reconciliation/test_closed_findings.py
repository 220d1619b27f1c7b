"""Closed findings are kept for their time, whatever PostgreSQL's clock does."""

from __future__ import annotations

import psycopg
import pytest

from outbox.postgres.reconciliation.run_store import PostgresRunStore
from tests.integration.postgres.reconciliation.fixtures_stored_runs import make_run, statuses

pytestmark = pytest.mark.postgres


def test_a_finding_closed_long_ago_is_deleted_and_an_open_one_never(
    database_url: str,
) -> None:
    store = PostgresRunStore(database_url, keep_days=90)
    store.save(make_run("one", "open", "old", "new"))
    store.save(make_run("two", "open"))
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "UPDATE outbox.reconciliation_finding SET updated_at = clock_timestamp()"
            " - make_interval(days => CASE finding_id WHEN 'new' THEN 89 ELSE 91 END)"
        )
    store.save(make_run("three", "open", complete=False))
    assert statuses(database_url) == {"open": "open", "new": "resolved"}
